"""A server of the S3 protocol on this machine, in a process of its own, with what goes wrong with
one: every request passes here, is counted, and may be answered as a store answers that is busy.
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from moto.server import ThreadedMotoServer

from hydro_core.storage.remote import RemotePath, remote_at
from hydro_core.storage.settings import StorageSettings
from hydro_core.storage.store import bucket_store
from tests.support.quick_store import Answer, QuickStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEY, SECRET = "AKIAHYDROTICKTESTS00", "never-to-be-seen-9f3a7c"
BUCKET = "landing"

Outcome = tuple[int, str] | tuple[int, str, bool] | None
Fault = Callable[[int, str, str], Outcome]
"""What becomes of a request, by its number, method and path: a status and a code, or nothing; with
True behind them it is done all the same, and the answer alone is wrong. With the status 0 there is
no answer at all: the connection ends."""


class Mirror:
    """A directory whose files are in a bucket as they are in it, whenever that is asked for."""

    def __init__(self, server: StoreServer, directory: Path, name: str) -> None:
        self.server, self.directory, self.name = server, directory, name
        self._there: dict[str, tuple[int, int]] = {}

    def sync(self) -> None:
        """Writes what has changed in the directory, and removes what is there no more."""
        now = {
            str(file.relative_to(self.directory)): (file.stat().st_size, file.stat().st_mtime_ns)
            for file in self.directory.rglob("*")
            if file.is_file()
        }
        for name, stat in now.items():
            if self._there.get(name) != stat:
                self.server.put(f"{self.name}/{name}", (self.directory / name).read_bytes())
        gone = [f"{self.name}/{name}" for name in self._there if name not in now]
        self.server.at(self.name).store.delete(gone)
        self._there = now
        self.server.asked.clear()


@dataclass
class StoreServer:
    """A server, and what has been asked of it."""

    url: str
    asked: list[tuple[str, str]] = field(default_factory=list)
    fault: Fault | None = None
    sent: int = 0
    """How many bytes were answered."""
    taken: int = 0
    """How many bytes were sent to it."""
    memory: QuickStore | None = None
    """What it holds, where that is in memory: it is had be there without requests."""

    @property
    def settings(self) -> StorageSettings:
        """How it is reached."""
        return StorageSettings(self.url, "us-east-1", patience=20)

    def at(self, name: str) -> RemotePath:
        """A place in its bucket."""
        return remote_at(f"s3://{BUCKET}/{name}", self.settings)

    def put(self, name: str, content: bytes) -> None:
        """Writes a file."""
        self.at(name).store.write(name, content)

    def hold(self, files: Mapping[str, bytes]) -> None:
        """Has many files be there; of a store in memory."""
        assert self.memory is not None
        self.memory.hold(files)

    @property
    def counted(self) -> Counter[str]:
        """How many requests of each method there were."""
        return Counter(method for method, _ in self.asked)

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Within it requests fail as is said."""
        self.asked.clear()
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None


Behind = Callable[[str, str, Mapping[str, str], bytes], Answer]
"""Who answers a request: by its method, path, headers and content."""


def _asked_of(host: str, port: int) -> Behind:
    """Another server answers."""

    def answer(method: str, path: str, headers: Mapping[str, str], content: bytes) -> Answer:
        link = http.client.HTTPConnection(host, port)
        link.request(method, path, content, dict(headers))
        found = link.getresponse()
        told = {k: v for k, v in found.getheaders() if k.lower() != "connection"}
        answered = found.read()
        link.close()
        return Answer(found.status, told, answered)

    return answer


def _wrong(status: int, code: str) -> Answer:
    said = f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    return Answer(status, {"Content-Type": "application/xml"}, said)


def _handler(server: StoreServer, behind: Behind) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 1 << 16

        def _pass(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server.asked.append((self.command, self.path))
            server.taken += len(content)
            fault = server.fault and server.fault(len(server.asked), self.command, self.path)
            if not fault or len(fault) == 3:  # with the third it is done all the same
                found = behind(self.command, self.path, dict(self.headers), content)
            self._answer(_wrong(*fault[:2]) if fault else found)

        def _answer(self, answer: Answer) -> None:
            if not answer.status:
                self.close_connection = True
                return
            status, headers, content = answer.status, answer.headers, answer.content
            self.send_response_only(status)
            for name, value in {"Date": self.date_time_string(), **headers}.items():
                if name.lower() not in ("content-length", "transfer-encoding"):
                    self.send_header(name, value)
            size = headers.get("Content-Length") or headers.get("content-length")
            head = self.command == "HEAD"
            self.send_header("Content-Length", (size or "0") if head else str(len(content)))
            self.end_headers()
            server.sent += 0 if head else len(content)
            if not head:
                with suppress(BrokenPipeError):  # who asked has enough
                    self.wfile.write(content)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _pass  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    return Handler


@contextmanager
def store_server() -> Iterator[StoreServer]:
    """A server with an empty bucket; it ends with the block."""
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    behind = moto.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{behind[1]}",
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=BUCKET)
    # What was written to a server of before is there still: it is kept by the process.
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for found in page.get("Contents", ()):
            client.delete_object(Bucket=BUCKET, Key=found["Key"])
    try:
        with _served(_asked_of("127.0.0.1", behind[1])) as server:
            yield server
    finally:
        moto.stop()


@contextmanager
def quick_store_server() -> Iterator[StoreServer]:
    """The same without moto, for tests that ask ten thousand times."""
    behind = QuickStore(BUCKET)
    with _served(behind.answer) as server:
        server.memory = behind
        yield server


@contextmanager
def _served(behind: Behind) -> Iterator[StoreServer]:
    server = StoreServer("")
    before = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server, behind))
    before.daemon_threads = True
    server.url = f"http://127.0.0.1:{before.server_address[1]}"
    threading.Thread(target=before.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        before.shutdown()
        before.server_close()


def refused_from(first: int, *, lost: bool = False) -> Fault:
    """Requests are refused from a number on; with `lost` that one alone, which is done all the
    same.
    """

    def fault(number: int, *_: str) -> tuple[int, str] | tuple[int, str, bool] | None:
        if lost:
            return (403, "AccessDenied", True) if number == first else None
        return (403, "AccessDenied") if number >= first else None

    return fault


def emptied(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> StoreServer:
    """The same with an empty bucket, of which nothing was asked; a test has credentials for it."""
    with_credentials(monkeypatch)
    bucket_store.cache_clear()
    server.at("x").store.delete_below("")
    server.asked.clear()
    return server


def with_credentials(monkeypatch: pytest.MonkeyPatch, key: str = KEY, secret: str = SECRET) -> None:
    """The environment has credentials."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def with_credentials_in_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment has credentials, and so has the JVM, which has one of its own."""
    with_credentials(monkeypatch)
    given = {"aws.accessKeyId": KEY, "aws.secretAccessKey": SECRET}
    for name, value in given.items():
        spark._jvm.System.setProperty(name, value)
    bucket_store.cache_clear()
    yield
    for name in given:
        spark._jvm.System.clearProperty(name)
