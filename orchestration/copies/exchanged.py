"""Two directories that change places."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

_HERE = -100
_EXCHANGE = 2
_NOT_KNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a system, or a file system, says that cannot do it in one step."""


def exchange(one: Path, other: Path) -> None:
    """Gives two directories of one file system each other's names.

    It is one step where Linux can do that; elsewhere there is a moment in which `other` is not
    there.

    Raises:
        OSError: one of them is not there, or may not be renamed.
    """
    if _exchanged(one, other):
        return
    between = one.with_name(f"{one.name}.between")
    other.rename(between)
    one.rename(other)
    between.rename(one)


def _exchanged(one: Path, other: Path) -> bool:
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    problem = ctypes.get_errno()
    if problem in _NOT_KNOWN:
        return False
    raise OSError(problem, os.strerror(problem), str(one), None, str(other))
