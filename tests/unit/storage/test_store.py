"""What a store answers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hydro_core.errors import InfrastructureError
from hydro_core.storage import delta
from hydro_core.storage.arrow import let_go_of, opened_in_store
from hydro_core.storage.credentials import s3_credentials
from hydro_core.storage.delta import delta_table
from hydro_core.storage.places import entries_in
from hydro_core.storage.problems import problem
from hydro_core.storage.remote import RemotePath
from hydro_core.storage.settings import StorageSettings
from hydro_core.storage.store import FileStore, bucket_store
from tests.support.refused import Refused
from tests.support.store_server import BUCKET, SECRET, StoreServer, with_credentials


@pytest.fixture(params=["quick", "moto"])
def server(request: pytest.FixtureRequest) -> StoreServer:
    """The two servers of tests, which are to answer alike."""
    found: StoreServer = request.getfixturevalue(f"{request.param}_server")
    return found


@pytest.fixture
def store(server: StoreServer) -> FileStore:
    return server.at("x").store


def test_what_is_written_is_there_as_a_whole(store: FileStore) -> None:
    store.write("a/one", b"first")
    assert (store.read("a/one"), store.read_range("a/one", 1, 3)) == (b"first", b"irs")
    assert (store.exists("a/one"), store.exists("a/two"), store.exists("a")) == (True, False, False)
    store.write("a/one", b"second")
    assert store.read("a/one") == b"second"
    found = store.look("a/one")
    assert found is not None
    assert (found.name, found.size) == ("a/one", 6)


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ((403, "RequestTimeTooSkewed"), "the clock of this machine is not the store's"),
        ((403, "InvalidAccessKeyId"), "the credentials are not those of anybody it knows"),
        ((400, "ExpiredToken"), "the credentials have expired"),
        ((403, "AccessDenied"), "these credentials have not the right to read it"),
    ],
)
def test_a_look_that_is_refused_says_why(
    server: StoreServer, store: FileStore, said: tuple[int, str], match: str, refused: Refused
) -> None:
    """The answer to a request for what is known of a file alone has no content."""
    store.write("a", b"1")
    with server.failing(lambda *_: said), refused(InfrastructureError, "config"):
        store.look("a")


def test_of_two_who_write_if_absent_one_does(store: FileStore) -> None:
    assert store.write_if_absent("lease", b"mine") is not None
    assert store.write_if_absent("lease", b"yours") is None
    assert store.read("lease") == b"mine"


def test_what_has_changed_meanwhile_is_not_replaced(store: FileStore) -> None:
    first = store.write("lease", b"1")
    second = store.replace_if("lease", first, b"2")
    assert second is not None
    assert store.replace_if("lease", first, b"3") is None
    assert store.read("lease") == b"2"
    assert store.replace_if("gone", first, b"3") is None
    assert not store.exists("gone")


def test_files_are_listed_below_a_folder(store: FileStore) -> None:
    for name in ("b/1", "b/2", "b/c/3", "bb/4"):
        store.write(name, name.encode())
    assert sorted(file.name for file in store.list("b")) == ["b/1", "b/2", "b/c/3"]
    assert sorted(file.name for file in store.list("b", after="b/1")) == ["b/2", "b/c/3"]
    assert len(list(store.list())) == 4


def test_files_are_copied_and_removed(store: FileStore) -> None:
    store.write("a/1", b"one")
    store.copy("a/1", "b/1")
    store.delete(["a/1", "a/never"])
    assert [file.name for file in store.list()] == ["b/1"]
    store.write("b/2", b"two")
    store.delete_below("b")
    assert not list(store.list())
    with pytest.raises(FileNotFoundError, match="b/1 is not there"):
        store.read("b/1")


def test_more_files_than_a_list_has_are_listed(quick_server: StoreServer) -> None:
    store = quick_server.at("x").store
    quick_server.hold({f"many/{number:04}": b"" for number in range(1_003)})
    quick_server.asked.clear()
    assert len(list(store.list("many"))) == 1_003
    assert quick_server.counted["GET"] == 2


def test_a_store_that_is_busy_is_asked_again(server: StoreServer) -> None:
    store = server.at("x").store
    store.write("one", b"1")
    for answer in ((503, "SlowDown"), (429, "TooManyRequests"), (500, "InternalError")):
        with server.failing(lambda number, *_, said=answer: said if number < 4 else None):
            assert store.read("one") == b"1"
            assert len(server.asked) == 4


def test_patience_ends(server: StoreServer) -> None:
    store = bucket_store("s3", "s3", BUCKET, StorageSettings(server.url, "us-east-1", patience=1))
    with (
        server.failing(lambda *_: (503, "SlowDown")),
        pytest.raises(InfrastructureError) as caught,
    ):
        store.read("one")
    (told,) = caught.value.diagnostics
    assert told.message == (
        "s3://landing/one: the store is busy, and was asked again and again (503 SlowDown)"
    )
    assert (told.code, "`patience`" in told.help) == ("runtime", True)
    assert len(server.asked) > 2


WRONG = [
    ((403, "AccessDenied"), "s3://landing/one: these credentials have not the right to write it"),
    (
        (403, "InvalidAccessKeyId"),
        "s3://landing/one: the credentials are not those of anybody it knows (InvalidAccessKeyId)",
    ),
    ((400, "ExpiredToken"), "s3://landing/one: the credentials have expired (ExpiredToken)"),
    ((404, "NoSuchBucket"), "s3://landing/one: there is no bucket `landing`"),
    (
        (400, "AuthorizationHeaderMalformed"),
        "s3://landing/one: the bucket `landing` is in another region",
    ),
    ((418, "Teapot"), "s3://landing/one: the store says 418 Teapot"),
]


@pytest.mark.parametrize(("answer", "says"), WRONG)
def test_what_is_wrong_is_told_with_a_cure(
    server: StoreServer, answer: tuple[int, str], says: str
) -> None:
    store = server.at("x").store
    with server.failing(lambda *_: answer), pytest.raises(InfrastructureError) as caught:
        store.write("one", b"1")
    (told,) = caught.value.diagnostics
    assert told.message == says
    assert told.help
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_bucket_that_is_not_there(server: StoreServer, refused: Refused) -> None:
    store = bucket_store("s3", "s3", "not-there", server.settings)
    with refused(InfrastructureError, "config"):
        list(store.list("x"))
    with refused(InfrastructureError, "config"):
        store.write("x", b"1")


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch, refused: Refused) -> None:
    with_credentials(monkeypatch)
    settings = StorageSettings("http://127.0.0.1:9", "us-east-1", patience=1)
    with refused(InfrastructureError, "runtime"):
        list(bucket_store("s3", "s3", BUCKET, settings).list("x"))


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Refused) -> None:
    with_credentials(monkeypatch)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("HOME", str(tmp_path))
    with refused(InfrastructureError, "config"):
        bucket_store("s3", "s3", BUCKET, StorageSettings(region="eu-north-1"))
    with refused(InfrastructureError, "config"):
        bucket_store("s3", "s3", BUCKET, StorageSettings(profile="shop"))


def test_keys_of_a_profile(
    server: StoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: Refused
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    file = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    file.write_text(f"[shop]\naws_access_key_id = AKIAPROFILE\naws_secret_access_key = {SECRET}\n")
    settings = StorageSettings(server.url, "us-east-1", "shop", patience=5)
    store = bucket_store("s3", "s3", BUCKET, settings)
    assert store.write("one", b"1")
    file.write_text(f"{SECRET}: no section")
    bucket_store.cache_clear()
    with refused(InfrastructureError, "config") as caught:
        bucket_store("s3", "s3", BUCKET, settings)
    assert SECRET not in str(caught.value)


def test_a_process_waits_until_files_are_let_go_of(quick_server: StoreServer) -> None:
    place = quick_server.at("one")
    place.write_bytes(b"1")
    held = [opened_in_store(place)]
    assert not let_go_of(0.01)
    threading.Timer(0.05, held.clear).start()
    assert let_go_of(5.0)


def test_what_is_not_there_is_not_there_though_the_first_question_is_refused(
    server: StoreServer,
) -> None:
    """An answer to HEAD has no words: another question is asked, and that is answered."""
    place = server.at("project/there")
    with server.failing(lambda _, method, __: (403, "AccessDenied") if method == "HEAD" else None):
        assert not place.is_file()
        place.write_bytes(b"now it is")
        with pytest.raises(InfrastructureError):
            place.is_file()


@pytest.mark.parametrize("read", [RemotePath.open, opened_in_store])
def test_an_answer_that_breaks_off_is_asked_for_again(
    server: StoreServer,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[RemotePath], Any],
    refused: Refused,
) -> None:
    content = bytes(range(256)) * 1000
    server.at("x").store.write("a", content)
    whole, asked = FileStore.read_range, list[int]()

    def broken_off(store: FileStore, name: str, start: int, length: int) -> bytes:
        asked.append(length)
        return whole(store, name, start, length)[
            : max(1, length // 2) if len(asked) < breaks else None
        ]

    monkeypatch.setattr(FileStore, "read_range", broken_off)
    breaks = 3
    assert read(server.at("a")).read() == content
    asked.clear()
    breaks = 1000
    with refused(InfrastructureError, "runtime"):
        read(server.at("a")).read()
    assert len(asked) == 4


@pytest.mark.parametrize("read", [RemotePath.open, opened_in_store])
def test_a_file_that_is_shorter_than_listed_is_said_to_be(
    server: StoreServer, read: Callable[[RemotePath], Any], refused: Refused
) -> None:
    server.at("x").store.write("folder/a", b"abc" * 100_000)
    (file,) = server.at("folder").files()
    opened = read(file)
    file.write_bytes(b"ab")
    with refused(InfrastructureError, "runtime") as caught:
        opened.read()
    assert "listed with 300,000 bytes" in str(caught.value)


def test_names_of_files_are_no_causes(quick_server: StoreServer) -> None:
    """The store's answer decides, whatever words are in the name of the file."""
    names = ("b/credentials/x", "AccessDenied/x", "NoSuchBucket/status 403/x")
    store = bucket_store(
        "s3", "s3", BUCKET, StorageSettings(quick_server.url, "us-east-1", patience=1)
    )
    for name in names:
        for answer, says in (((503, "SlowDown"), "is busy"), ((418, "Teapot"), "says 418 Teapot")):
            with (
                quick_server.failing(lambda *_, said=answer: said),
                pytest.raises(InfrastructureError, match=says) as caught,
            ):
                store.read(name)
            assert caught.value.diagnostics[0].code == "runtime"


def test_a_busy_service_of_credentials_gives_none() -> None:
    said = "Error performing GET http://169.254.169.254/latest - status code: 503"
    assert "there are no credentials" in str(problem(said, "s3://b/x", "b", "read"))
    assert "there are no credentials" in str(
        problem("no provider in the chain gave credentials", "s3://b/x", "b", "read")
    )


def test_a_machine_that_answered_late_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_credentials(monkeypatch)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.socket() as service:
        service.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{service.getsockname()[1]}")
        asked = []
        connect = socket.create_connection

        def counted(*args: Any) -> socket.socket:
            asked.append(args)
            return connect(*args)

        monkeypatch.setattr(socket, "create_connection", counted)
        for _ in range(2):
            with pytest.raises(InfrastructureError, match="there are no credentials"):
                s3_credentials(StorageSettings())
        # For some seconds its silence is remembered.
        assert len(asked) == 1
        service.listen()
        moment = time.monotonic() + 60
        monkeypatch.setattr(time, "monotonic", lambda: moment)
        for _ in range(2):
            assert s3_credentials(StorageSettings()) is None
        assert len(asked) == 2


def test_entries_of_a_folder_are_in_the_order_of_their_names(
    quick_server: StoreServer, tmp_path: Path
) -> None:
    for folder in (quick_server.at("x"), tmp_path):
        for name in ("a", "b/1", "c"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(b"")
        assert [entry.name for entry in entries_in(folder)] == ["a", "b", "c"]
    assert entries_in(tmp_path / "gone") == []


def test_the_tables_asked_for_last_are_cached(
    quick_server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    class Table:
        def version(self) -> int:
            return 0

    def open_table(place: RemotePath, version: int | None) -> Table:
        opened.append(place.name)
        return Table()

    monkeypatch.setattr(delta, "opened_table", open_table)
    monkeypatch.setattr(delta, "_LAST", {})
    monkeypatch.setattr(delta, "_MOST", 2)
    for name, version in (("a", 0), ("b", 0), ("b", None), ("a", 0)):
        delta_table(quick_server.at(name), version)
    # The latest version of `b` was opened anew, and `a` stayed.
    assert opened == ["a", "b", "b"]
    for name in ("c", "a", "b"):
        delta_table(quick_server.at(name), 0)
    # `b` made way for `c`, since `a` was asked for after it.
    assert opened == ["a", "b", "b", "c", "b"]
