"""What a server in the Hub's place may send: nothing keeps a command for ever, or takes the memory or the disk."""

from __future__ import annotations

import itertools
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest
from huggingface_hub import __version__ as client_version
from huggingface_hub import close_session, constants, set_client_factory
from huggingface_hub.utils import _http

from h2htalk.data.bounded import hub_replies
from h2htalk.data.bounded.request_time import RequestTime, bound_request_time
from h2htalk.data.releases.hub import hub_errors, load_release, publish, pull
from h2htalk.data.splits import load_split
from h2htalk.errors import HubError, PublishError
from support.doubles.hub_double import Answer, HubDouble
from support.hubs import hub_here
from support.releases import make_release

NAME = "hub:lab/made@v1.0.0"
# The kinds of addresses that the client asks when it loads a release, by what their paths hold.
PLACES = {"refs": "/refs", "info": "/revision/", "tree": "/tree/", "file": "/resolve/"}
OLDER_CLIENT = int(client_version.partition(".")[0]) < 2
DRIPPING = ["drip head", "drip 102", "drip chunk"]


class Hostile(HubDouble):
    """The double that, at one kind of address, does something else."""

    place = ""
    answer: Answer | str = ""
    pages: Iterator[int] | None = None

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        if (
            not self.place
            or PLACES[self.place] not in target
            or (self.place == "file" and method == "HEAD")
        ):
            return super().serve(method, target, headers, body)
        if self.pages is not None:
            number = next(self.pages)
            following = f"{self.url}{target.partition('?')[0]}?page={number}"
            return Answer([], headers={"Link": f'<{following}>; rel="next"'})
        return self.answer


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hostile]:
    with hub_here(tmp_path, monkeypatch, Hostile()) as hub:
        assert isinstance(hub, Hostile)
        publish(make_release(tmp_path / "release"), "lab/made")
        yield hub


def refusal() -> str:
    with pytest.raises(HubError) as caught:
        load_release(NAME)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("lab/made: ")
    return str(caught.value)


@pytest.mark.parametrize("place", PLACES)
def test_a_reply_that_drips_ends(hub: Hostile, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte began the client's timeout again, so that a command never ended."""
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.3)
    hub.place, hub.answer = place, "drip"
    began = time.monotonic()
    assert "no whole reply came in 0 seconds" in refusal()
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("fault", DRIPPING)
@pytest.mark.parametrize("place", PLACES)
def test_what_drips_before_a_body_ends(
    hub: Hostile, place: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a request was counted when its head had come and between parts of its body, so never here."""
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.3)
    hub.place, hub.answer = place, fault
    began = time.monotonic()
    assert "no whole reply came in 0 seconds" in refusal()
    assert time.monotonic() - began < 20


def test_the_head_of_a_file_that_drips_ends(hub: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.3)
    hub.fault("head", "drip head")
    assert "no whole reply came in 0 seconds" in refusal()


def test_redirects_have_one_time_together(hub: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each redirect that comes late would begin the time again, twenty times."""
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.5)
    hub.place = "info"
    hub.answer = Answer(
        "", 302, {"Location": f"{hub.url}/datasets/lab/made{PLACES['info']}x"}, delay=0.2
    )
    assert "no whole reply came in" in refusal()


def test_the_time_that_a_slow_reply_had_is_the_one_named(
    hub: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message named the time of a small reply where a larger one had had longer."""
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.1)
    monkeypatch.setattr(
        hub_replies, "SLOWEST", 100
    )  # half of it comes, after some 200 bytes of the request
    hub.place, hub.answer = "refs", "drip"
    seconds = re.search(r"no whole reply came in (\d+) seconds", refusal())
    assert seconds is not None
    assert int(seconds[1]) >= 2


def test_a_server_that_takes_what_is_sent_slowly_ends() -> None:
    """Each byte that is taken begins the timeout of a write again."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        httpx2.Client(timeout=60, trust_env=False) as client,
    ):
        bound_request_time(client, lambda request: RequestTime(seconds=0.3, error=HubError))
        with pytest.raises(HubError, match="no whole reply came in 0 seconds"):
            client.put(f"http://127.0.0.1:{listener.getsockname()[1]}/", content=bytes(50_000_000))


@pytest.mark.parametrize("place", PLACES)
def test_a_reply_without_an_end_is_cut(
    hub: Hostile, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("H2HTALK_LARGEST_REPLY", "1000000")
    monkeypatch.setenv("H2HTALK_LARGEST_DOWNLOAD", "1000000")
    hub.place, hub.answer = place, "giant"
    assert re.search(r"of more than 1,000,000 bytes; .* set H2HTALK_LARGEST_\w+=4000000", refusal())


def test_a_compressed_reply_that_was_not_asked_for_is_cut_earlier(
    hub: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A megabyte unfolds into a gigabyte."""
    monkeypatch.setenv("H2HTALK_LARGEST_REPLY", "1000000")
    hub.place, hub.answer = (
        "refs",
        Answer(b"\x1f\x8b" + b"x" * 5000, headers={"Content-Encoding": "gzip"}),
    )
    refused = refusal()
    assert "a compressed reply, which was not asked for, of more than 1,000 bytes" in refused
    assert "set H2HTALK_LARGEST_REPLY=4000000" in refused


@pytest.mark.parametrize("kind", ["itself", "each other", "new"])
def test_pages_without_an_end_end(hub: Hostile, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that link to themselves, or to ever new ones, were read for ever."""
    monkeypatch.setenv("H2HTALK_MOST_LISTED", "5000")
    hub.place = "tree"
    hub.pages = {
        "itself": itertools.repeat(1),
        "each other": itertools.cycle((1, 2)),
        "new": itertools.count(),
    }[kind]
    expected = (
        "a list of more than 5,000 entries" if kind == "new" else "its pages lead to each other"
    )
    assert expected in refusal()


@pytest.mark.parametrize("place", PLACES)
def test_redirects_without_an_end_end(hub: Hostile, place: str) -> None:
    hub.place = place
    hub.answer = Answer("", 302, {"Location": f"{hub.url}/datasets/lab/made{PLACES[place]}x"})
    assert "redirects" in refusal()


WAITS = [
    {"Retry-After": "999999999999"},
    {"Retry-After": " 000086400 "},
    {"RateLimit": '"api";r=0;t=86400'},
    {"RateLimit": '"api"; r = 0; t = 86400'},
    {"RateLimit": '"api";r=00;t=86400'},
    {"RateLimit": '"pages";r=5;t=1, "api"\t;\tr=0;\tt=086400'},
]


@pytest.mark.parametrize("headers", WAITS, ids=str)
def test_a_wait_of_a_day_is_refused(hub: Hostile, headers: dict[str, str]) -> None:
    """The client slept for as long as a server asked; it reads spellings that were not refused."""
    hub.place, hub.answer = "tree", Answer({"error": "slow down"}, 429, headers)
    assert "asks to wait" in refusal()


ODD_WAITS = [
    {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"},
    {"Retry-After": "\u0669" * 5},
    {"RateLimit": '"api";r=\u0660;t=\u0669\u0669\u0669\u0669\u0669'},
    {"RateLimit": '"api";r=3;t=86400'},
    {"RateLimit": '"api";r=0;t=30'},
]


@pytest.mark.parametrize("headers", ODD_WAITS, ids=ascii)
def test_the_client_waits_for_no_longer_than_was_read(
    hub: Hostile, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("huggingface_hub.utils._http.time", SimpleNamespace(sleep=waits.append))
    hub.place, hub.answer = "tree", Answer({"error": "slow down"}, 429, headers)
    assert "wait some minutes" in refusal()
    assert waits or OLDER_CLIENT  # which does not wait
    assert max(waits, default=0) <= 31


@contextmanager
def in_one_line(*errors: type[Exception]) -> Iterator[None]:
    """Nothing may be raised but these errors, each of one line."""
    message = "nothing"
    try:
        yield
    except errors as error:
        message = str(error)
    assert message.strip()
    assert "\n" not in message


ODD = [
    "null",
    "[1]",
    '"text"',
    "[" * 100_000,
    "{}",
    '[{"type": "file"}]',
    '{"tags": [1]}',
    '{"branches": 1, "tags": 1}',
]


@pytest.mark.parametrize("body", ODD)
@pytest.mark.parametrize("place", ["refs", "info", "tree"])
def test_odd_json_is_one_line(hub: Hostile, place: str, body: str) -> None:
    """The client takes the fields of a reply as if they were there: a TypeError with its traceback."""
    hub.place, hub.answer = place, Answer(body, headers={"Content-Type": "application/json"})
    with in_one_line(HubError):  # some of these are what an empty data set has
        load_release(NAME)


COMMIT = "a" * 40
NO_TAGS: dict[str, object] = {"branches": [], "converts": []}
ODD_FIELDS: list[tuple[str, object]] = [
    *(
        ("refs", NO_TAGS | {"tags": [{"name": "v1.0.0", "ref": "r", "targetCommit": odd}]})
        for odd in (5, None, ["a"])
    ),
    *(
        ("refs", NO_TAGS | {"tags": [{"name": odd, "ref": "r", "targetCommit": COMMIT}]})
        for odd in (5, None, ["a"])
    ),
    (
        "refs",
        {"branches": [{"name": None, "ref": "r", "targetCommit": 1}], "tags": [], "converts": []},
    ),
    *(
        ("info", {"id": "lab/made", "sha": odd, "siblings": []})
        for odd in (5, None, ["a"], {}, True, 1.5)
    ),
    *(
        ("info", {"id": "lab/made", "sha": COMMIT, "siblings": odd})
        for odd in (5, [5], [{"rfilename": None}])
    ),
    ("info", {"id": "lab/made", "sha": COMMIT, "siblings": [], "lastModified": 5}),
    *(("tree", [{"type": "file", "path": odd, "size": 1, "oid": "x"}]) for odd in (5, None, ["a"])),
    *(
        ("tree", [{"type": "file", "path": "a", "size": 1, "oid": "x", "lfs": odd}])
        for odd in (5, [1], {"oid": 5})
    ),
]


@pytest.mark.parametrize(("place", "body"), ODD_FIELDS, ids=str)
def test_an_odd_field_is_one_line(hub: Hostile, place: str, body: object) -> None:
    """Fields of another type than a Hub sends were used outside the client's errors, or failed in what it calls."""
    hub.place, hub.answer = place, Answer(body)
    if OLDER_CLIENT and place == "tree":  # it passes over some of these entries
        with suppress(HubError):
            load_release(NAME)
        return
    refusal()


@pytest.mark.parametrize(
    "body", [None, [1], {}, {"sha": 5}, {"commitOid": 5}, {"files": [5]}, {"objects": 5}], ids=str
)
@pytest.mark.parametrize(
    "point", ["create", "info", "refs", "tree", "preupload", "batch", "commit"]
)
def test_odd_json_in_a_publication_is_one_line(
    point: str, body: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hub_here(tmp_path, monkeypatch) as hub:
        hub.fault(point, Answer(body))
        with in_one_line(HubError, PublishError):  # some of these are what the client does not read
            publish(make_release(tmp_path / "release"), "lab/made")
        assert point in hub.points()


class WithXet(HubDouble):
    """The double with Xet: files name a hash, and a server that drips gives them out."""

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        answer = super().serve(method, target, headers, body)
        if "/xet" in target:
            self.requests.append(("xet", method))
            return "drip"
        if "/resolve/" not in target or isinstance(answer, str):
            return answer
        link = f'<{self.url}/api/xet-token>; rel="xet-auth"'
        return replace(answer, headers={**answer.headers, "X-Xet-Hash": "a" * 64, "Link": link})


def test_files_are_not_moved_by_xet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a file is offered over Xet, another program loaded it, without any bound."""
    monkeypatch.delenv("HF_HUB_DISABLE_XET", raising=False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    with hub_here(tmp_path, monkeypatch, WithXet()) as hub:
        publish(make_release(tmp_path / "release"), "lab/made")
        pull(NAME, tmp_path / "pulled")
        assert "xet" not in hub.points()
    assert not constants.HF_HUB_DISABLE_XET  # of others in this process


@pytest.mark.parametrize(("word", "used"), [("0", True), ("", False)])
def test_xet_can_be_chosen_by_name(word: str, used: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_XET", word)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    with hub_errors("lab/made"), hub_errors("lab/made"):
        assert constants.HF_HUB_DISABLE_XET is not used
    assert not constants.HF_HUB_DISABLE_XET


def test_a_client_that_keeps_its_factory_elsewhere_is_bounded(
    hub: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no public name, and may be absent in another version."""
    set_client_factory(_http.default_client_factory)
    with monkeypatch.context() as patch:
        patch.setattr("h2htalk.data.releases.hub._http", SimpleNamespace())
        patch.setattr(hub_replies, "LONGEST_REPLY", 0.3)
        hub.place, hub.answer = "info", "drip"
        assert "no whole reply came in" in refusal()
    close_session()


def test_a_session_that_the_client_opens_anew_is_bounded_too(
    hub: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_replies, "LONGEST_REPLY", 0.3)
    close_session()
    hub.place, hub.answer = "info", "drip"
    assert "no whole reply came in" in refusal()


def test_a_pull_of_a_whole_release_works(hub: Hostile, tmp_path: Path) -> None:
    pull(NAME, tmp_path / "pulled")
    assert load_split(tmp_path / "pulled").scenarios == load_split(NAME).scenarios
