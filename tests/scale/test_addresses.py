"""A password in an address is refused before anything is printed or stored; what storage libraries say is one line."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from h2htalk.addresses import PASSWORD_MASK, holds_password, without_passwords
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.links import add_link
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from h2htalk.scale.merge import merge
from h2htalk.scale.storage_folder import StorageFolder
from support.command_line import h2htalk_here

SECRET = "wJalr/K7MDENG+bPx"
HELD = [
    f"s3://AKIA:{SECRET}@bucket/run",
    f"https://user:{SECRET}@host/run",
    f"https://host/run?token={SECRET}",
    f"https://host/run?a=1&X-Amz-Signature={SECRET}",
    f"abfs://c@account.dfs.core.windows.net/run?sv=1&sig={SECRET}",
    f"simplecache::s3://AKIA:{SECRET}@bucket/run",
    f"ftp://:{SECRET}@host/run",
    f"S3://K:{SECRET}@B",
    f"https://{SECRET.replace('/', '')}@github.com/run",
    f"webdav://anna@mail.example:{SECRET}@host/run",
    f"https://host/run?access%5Ftoken={SECRET}",
    f"https://host/run?%74oken={SECRET}",
    f"abfs://c/run?account_key={SECRET}",
    f"abfs://c/run?connection_string=Protocol=https;AccountKey={SECRET}",
    f"https://host/run?jwt={SECRET}",
]
PLAIN = [
    "s3://bucket/run",
    "s3://bucket/run:2024@v1",
    "http://127.0.0.1:8000/a@b",
    "http://anna@127.0.0.1:8000/a@b",
    "http://[::1]:8000/a@b",
    "sftp://anna@host/run",
    "abfs://container@account.dfs.core.windows.net/run",
    "memory://bucket/run?page=2",
    "write to anna@host.example about http://host/: it works",
]


@pytest.mark.parametrize("address", HELD)
def test_a_password_is_found_and_not_shown(address: str) -> None:
    assert holds_password([address])
    assert SECRET not in without_passwords(address)
    assert SECRET.replace("/", "") not in without_passwords(address)
    assert PASSWORD_MASK in str(DataError(f"{address}: is not there"))


@pytest.mark.parametrize("address", PLAIN)
def test_other_addresses_stay(address: str) -> None:
    assert not holds_password([address])
    assert without_passwords(address) == address


@pytest.mark.parametrize("address", [*HELD, f"s3://AKIA:{SECRET[:4]} {SECRET[4:]}@bucket/run"])
@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "scripted:script.jsonl", "--split", "mini", "--shard", "1/2", "--out", "URL"),
        ("evaluate", "scripted:script.jsonl", "--split", "mini", "--out=URL"),
        ("evaluate", "scripted:script.jsonl", "--split", "URL", "--out", "run"),
        ("merge", "URL", "--out", "merged"),
        ("show", "URL"),
        ("no-such-command", "URL"),
    ],
)
def test_no_command_prints_or_stores_it(
    command: tuple[str, ...], address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--out s3://KEY:SECRET@bucket` was stored in manifests and links, and printed."""
    monkeypatch.chdir(tmp_path)
    done = h2htalk_here(*(word.replace("URL", address) for word in command))
    assert done.returncode == 2
    assert "an address holds a user with a password" in done.stderr
    for part in (SECRET, SECRET[4:], SECRET.replace("/", "")):
        assert part not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def test_a_suite_and_the_library_refuse_it(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(
        f'storage = "{HELD[0]}"\n[[models]]\nmodel = "baseline:constant"\n', encoding="utf-8"
    )
    done = h2htalk_here("launch", "slurm", suite)
    assert done.returncode == 2
    assert "an address holds a user with a password" in done.stderr
    assert SECRET not in done.stderr
    settings = {"model": "baseline:constant", "split": "mini"}
    for call in (
        lambda: EvaluateSpec(**settings, out=HELD[0]),
        lambda: merge([HELD[0]], tmp_path / "merged"),
        lambda: add_link(tmp_path, "attempt", HELD[0]),
    ):
        with pytest.raises(H2HTalkError, match="an address holds a user with a password") as raised:
            call()
        assert SECRET not in str(raised.value)


def test_a_link_of_an_earlier_version_is_followed_and_not_shown(tmp_path: Path) -> None:
    target = f"memory://AKIA:{SECRET}@bucket/run/1-of-1/20260101T000000-00000000"
    line = json.dumps({"kind": "attempt", "target": target})
    (tmp_path / "links.jsonl").write_text(f"{line}\n", encoding="utf-8")
    swept = list(sweep(tmp_path, ErasedIds(frozenset({"made-00003"}))))
    assert len(swept) == 1
    assert "is not there any more" in str(swept[0].messages)
    assert SECRET not in str(swept)


@pytest.mark.parametrize(
    "address",
    ["github://folder/run", "nothing://bucket/run", "ftp://127.0.0.1:1/run", "reference://run"],
)
def test_a_library_that_cannot_open_storage_ends_in_one_line(address: str) -> None:
    """Some ended in a traceback of TypeError or OSError."""
    with pytest.raises((ConfigError, DataError)) as raised:
        StorageFolder(address).names()
    assert "\n" not in str(raised.value)
    assert str(raised.value).startswith(address)


@pytest.mark.parametrize(
    "error", [OSError("<Error>\n<Code>SlowDown</Code>" + "x" * 5000), TypeError("no\nregion")]
)
def test_what_storage_says_is_one_short_line(error: Exception) -> None:
    with (
        patch.object(MemoryFileSystem, "exists", side_effect=error),
        pytest.raises(DataError) as raised,
    ):
        StorageFolder("memory://bucket/run").names()
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
