r"""Functions of text programs that try to reach more than their argument: to import `MODULE`.

`escapes` gives them with the code of the error that each must end in, None where it has a result.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json

MODULE = "lies_beside"
_IMPORT = f"__import__('{MODULE}')"
_FROM_HOOK = f'__import__("time", {{"__package__": "{MODULE}"}}, None, [], 1)'
ESCAPES: dict[str, tuple[str, str | None]] = {
    "a brace escaped in a format": (rf"lambda x: f'{{x:\x7b{_FROM_HOOK}\x7d}}'", "runtime"),
    "the same by name": (
        rf"lambda x: f'{{x:\N{{LEFT CURLY BRACKET}}{_FROM_HOOK}\175}}'",
        "runtime",
    ),
    "the same in a nested one": (
        rf"""lambda x: f'{{f"{{x:\x7b{MODULE}\x7d}}"}}'""",
        "syntax" if sys.version_info < (3, 12) else "runtime",  # a backslash within braces
    ),
    "the same in a text": (rf"""lambda x: f"\x7b{_IMPORT}\x7d{{x}}\x7b{{{{" """, None),
    "the same in a comprehension": (
        rf"lambda x: ''.join([f'{{y:\x7b{_FROM_HOOK}\x7d}}' for y in [x]])",
        "runtime",
    ),
    "a computed format": (f'lambda x: f"{{x:{{{_IMPORT}}}}}"', "name"),
    "a format with a dunder": ('lambda x: f"{x:{().__class__}}"', "name"),
    "str.format": ("lambda x: '{0.__class__.__init__.__globals__}'.format(x)", "name"),
    "str.format as a key": ("lambda x: str(sorted([x], key='{0.__class__}'.format))", "type"),
    "str.format_map": ("lambda x: '{x.__class__}'.format_map({'x': x})", "name"),
    "a builtin": (f"lambda x: {_IMPORT}", "name"),
    "a homoglyph of it": (f"lambda x: _\uff3fimport\uff3f_('{MODULE}')", "name"),
    "a homoglyph of a letter": (f"lambda x: __\U0001d4bemport__('{MODULE}')", "name"),
    "a homoglyph of an attribute": ("lambda x: str(x.__\U0001d4b8lass__)", "name"),
    "a ligature": ("lambda x: str((lambda: 1).__de\ufb01ned__)", "name"),
    "builtins as a parameter": (f"lambda __builtins__: {_IMPORT}", "name"),
    "builtins as a target": (f"lambda x: [{_IMPORT} for __builtins__ in [x]]", "name"),
    "builtins by walrus": (f"lambda x: (__builtins__ := x) and {_IMPORT}", "name"),
    "the import as a target": (
        f"lambda x: [__import__('{MODULE}') for __import__ in [len]]",
        "name",
    ),
    "a guard's name by walrus": ("lambda x: (attribute := str) and x.__class__", "name"),
    "a default": (f"lambda x, y={_IMPORT}: y", "type"),
    "a default inside": (f"lambda x: (lambda y={_IMPORT}: y)()", "type"),
    "a keyword's default": (f"lambda x, *, y={_IMPORT}: y", "type"),
    "an annotation": ("lambda x: (y: int)", "syntax"),
    "a frame of a generator": ("lambda x: (y for y in [1]).gi_frame.f_builtins", "type"),
    "globals of a lambda": ("lambda x: (lambda: 1).__globals__", "name"),
    "globals of a method that the guard wraps": (
        "lambda x: str(date(2024, 1, 1).strftime.func_globals)",
        "type",
    ),
    "self of a builtin": ("lambda x: len.__self__", "name"),
    "a class": ("lambda x: ().__class__.__base__.__subclasses__()", "name"),
    "mro": ("lambda x: str(x.mro)", "type"),
    "a dunder as a key": ("lambda x: str({'a': x}['__class__'])", "type"),
    "a dunder as a keyword": (f"lambda x: str(dict(__class__={_IMPORT}))", "name"),
    "strptime": (f"lambda x: str(datetime.strptime('{MODULE}', '{MODULE}').year)", None),
    "strftime": (f"lambda x: date(2024, 1, 1).strftime('{MODULE}')", None),
    "a date's format": (f"lambda x: f'{{date(2024, 1, 1):{MODULE}}}'", None),
    "a codec": (f"lambda x: str(x.encode('{MODULE}'))", "runtime"),
    "a codec in a package": (f"lambda x: str(b'1'.decode('..{MODULE}'))", "type"),
    "a codec with code": (r"lambda x: b'\\x5f\\x5f'.decode('unicode_escape')", None),
    "a closure's line": (
        f'lambda x: f"""{{x}}\nwhere x = {_IMPORT}"""',
        None,
    ),
    "a literal that needs a backslash": ("lambda x: f\"{x + '\u200b'}\"", None),
}
_BESIDE = "from pathlib import Path\nPath({marker!r}).touch()\n"


def lay(folder: Path, module: str = MODULE) -> Path:
    """Puts a module beside the program; gives the file that it makes when it is imported."""
    marker = folder / f"{module} was imported"
    (folder / f"{module}.py").write_text(_BESIDE.format(marker=str(marker)))
    return marker


def run(function: str, options: Options) -> object:
    """What a program of one function gives for the item "5"."""
    graph = parse(f'a = source("string")\na -> map({function}, returns="string") -> out')
    return run_json(graph, {}, [{"a": ["5"]}], options)
