"""The objects of a bucket in memory, asked by S3's protocol: enough of it to keep a pipeline.

moto's server takes a hundredth of a second for a request, and a test that tries every request of
long work makes some ten thousand. What is asked here is asked of moto's, too, by tests that run
once; they say that the two answer alike.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from time import time
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

_AT_ONCE = 1_000


@dataclass(frozen=True)
class Answer:
    """What is answered to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


@dataclass(frozen=True)
class _Object:
    content: bytes
    etag: str
    written: float


class QuickStore:
    """One bucket; requests are answered one at a time."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket
        self._objects: dict[str, _Object] = {}
        self._uploads: dict[str, dict[int, bytes]] = {}
        self._numbers = itertools.count(1)
        self._guard = threading.Lock()
        self._names: list[str] | None = None
        """All names in order, until another one is there."""

    def hold(self, files: Mapping[str, bytes]) -> None:
        """Has files be there without a request for each."""
        with self._guard:
            for name, content in files.items():
                self._kept(name, content)

    def hold_below(self, folder: str, to: str) -> None:
        """Has what is below a folder be there below another one, too, without a request."""
        with self._guard:
            found = {n: o for n, o in self._objects.items() if n.startswith(f"{folder}/")}
            self._objects |= {f"{to}{name[len(folder) :]}": one for name, one in found.items()}
            self._names = None

    def below(self, folder: str) -> Mapping[str, bytes]:
        """The files below a folder, by their names there."""
        with self._guard:
            found = {n: o for n, o in self._objects.items() if n.startswith(f"{folder}/")}
        return {name[len(folder) + 1 :]: one.content for name, one in found.items()}

    def lose_below(self, folder: str) -> None:
        """Has nothing be there below a folder."""
        with self._guard:
            kept = {n: o for n, o in self._objects.items() if not n.startswith(f"{folder}/")}
            self._objects, self._names = kept, None

    def answer(self, method: str, path: str, headers: Mapping[str, str], content: bytes) -> Answer:
        """Does what a request asks for."""
        url = urlsplit(path)
        asked = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        bucket, _, name = unquote(url.path).lstrip("/").partition("/")
        if bucket and bucket != self._bucket:
            return _refused(404, "NoSuchBucket")
        known = {k.lower(): v for k, v in headers.items()}
        with self._guard:
            match method:
                case "GET" if not name:
                    return self._list(asked)
                case "GET" | "HEAD":
                    return self._read(name, known, whole=method == "GET")
                case "PUT":
                    return self._put(name, asked, known, _body(known, content))
                case "POST":
                    return self._posted(name, asked, known, content)
                case "DELETE":
                    self._removed(name)
                    self._uploads.pop(asked.get("uploadId", ""), None)
                    return Answer(204)
        return Answer(405)

    def _list(self, asked: Mapping[str, str]) -> Answer:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        entries: dict[str, str] = {}
        if self._names is None:
            self._names = sorted(self._objects)
        for place in range(bisect_left(self._names, max(prefix, after)), len(self._names)):
            name = self._names[place]
            if not name.startswith(prefix) or len(entries) > _AT_ONCE:
                break
            rest = name[len(prefix) :]
            folder = prefix + rest.partition(delimiter)[0] + delimiter if delimiter else ""
            key = folder if folder and delimiter in rest else name
            if key > after:
                entries.setdefault(key, "" if key == folder else name)
        shown = list(itertools.islice(entries.items(), _AT_ONCE))
        more = len(entries) > _AT_ONCE
        said = "".join(self._listed(key, name) for key, name in shown)
        if more:
            said += f"<NextContinuationToken>{escape(shown[-1][0])}</NextContinuationToken>"
        said += f"<KeyCount>{len(shown)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated>"
        return _xml(f"<ListBucketResult>{said}</ListBucketResult>")

    def _listed(self, key: str, name: str) -> str:
        if not name:
            return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
        found = self._objects[name]
        return (
            f"<Contents><Key>{escape(key)}</Key><Size>{len(found.content)}</Size>"
            f"<LastModified>{_moment(found.written)}</LastModified>"
            f"<ETag>{escape(found.etag)}</ETag><StorageClass>STANDARD</StorageClass></Contents>"
        )

    def _read(self, name: str, headers: Mapping[str, str], *, whole: bool) -> Answer:
        found = self._objects.get(name)
        if found is None:
            return _refused(404, "NoSuchKey")
        told = {
            "ETag": found.etag,
            "Last-Modified": formatdate(found.written, usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Length": str(len(found.content)),
        }
        part = headers.get("range", "")
        if not whole or not part:
            return Answer(200, told, found.content if whole else b"")
        first, _, last = part.removeprefix("bytes=").partition("-")
        size = len(found.content)
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= size:
            return _refused(416, "InvalidRange")
        told |= {"Content-Range": f"bytes {start}-{end - 1}/{size}"}
        told["Content-Length"] = str(end - start)
        return Answer(206, told, found.content[start:end])

    def _put(
        self, name: str, asked: Mapping[str, str], headers: Mapping[str, str], content: bytes
    ) -> Answer:
        if "uploadId" in asked:
            self._uploads[asked["uploadId"]][int(asked["partNumber"])] = content
            return Answer(200, {"ETag": _etag(content)})
        source = headers.get("x-amz-copy-source")
        if source is not None:
            found = self._objects.get(unquote(source).lstrip("/").partition("/")[2])
            if found is None:
                return _refused(404, "NoSuchKey")
            etag = self._kept(name, found.content)
            moment = _moment(self._objects[name].written)
            said = f"<ETag>{escape(etag)}</ETag><LastModified>{moment}</LastModified>"
            return _xml(f"<CopyObjectResult>{said}</CopyObjectResult>")
        return self._conditional(name, headers) or Answer(200, {"ETag": self._kept(name, content)})

    def _conditional(self, name: str, headers: Mapping[str, str]) -> Answer | None:
        there = self._objects.get(name)
        wanted = headers.get("if-match")
        if headers.get("if-none-match") == "*" and there is not None:
            return _refused(412, "PreconditionFailed")
        if wanted is not None and there is None:
            return _refused(404, "NoSuchKey")
        if wanted is not None and there is not None and there.etag != wanted:
            return _refused(412, "PreconditionFailed")
        return None

    def _posted(
        self, name: str, asked: Mapping[str, str], headers: Mapping[str, str], content: bytes
    ) -> Answer:
        if "delete" in asked:
            gone = list(_keys(content))
            for key in gone:
                self._removed(key)
            said = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in gone)
            return _xml(f"<DeleteResult>{said}</DeleteResult>")
        if "uploads" in asked:
            number = str(next(self._numbers))
            self._uploads[number] = {}
            return _xml(
                f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        refused = self._conditional(name, headers)
        if refused is not None:
            return refused
        parts = self._uploads.pop(asked["uploadId"])
        etag = self._kept(name, b"".join(parts[number] for number in sorted(parts)))
        return _xml(
            f"<CompleteMultipartUploadResult><Key>{escape(name)}</Key><ETag>{escape(etag)}</ETag>"
            "</CompleteMultipartUploadResult>"
        )

    def _removed(self, name: str) -> None:
        if self._objects.pop(name, None) is not None:
            self._names = None

    def _kept(self, name: str, content: bytes) -> str:
        if name not in self._objects:
            self._names = None
        self._objects[name] = _Object(content, _etag(content), time())
        return self._objects[name].etag


def _keys(content: bytes) -> Iterator[str]:
    for found in ET.fromstring(content).iter():
        if found.tag.rpartition("}")[2] == "Key":
            yield found.text or ""


def _body(headers: Mapping[str, str], content: bytes) -> bytes:
    """What is written: what is sent in chunks has their sizes between them."""
    if "aws-chunked" not in headers.get("content-encoding", ""):
        return content
    found, rest = b"", content
    while rest:
        line, _, rest = rest.partition(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        if not size:
            break
        found, rest = found + rest[:size], rest[size + 2 :]
    return found


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _moment(written: float) -> str:
    return datetime.fromtimestamp(written, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _xml(said: str) -> Answer:
    return Answer(200, {"Content-Type": "application/xml"}, said.encode())


def _refused(status: int, code: str) -> Answer:
    said = f"<Error><Code>{code}</Code><Message>no</Message></Error>"
    return Answer(status, {"Content-Type": "application/xml"}, said.encode())
