"""A stateful companion server as the model: sessions, its own memory, errors, timeouts, expiry, a stream."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.gate.gate import gate
from h2htalk.benchmark.observations import NOT_ASKED, select
from h2htalk.benchmark.studies.applications import try_app
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.data.case import Case
from h2htalk.errors import ConfigError
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer, HttpServer
from support.studies import KEY, Companion, block, cases_of, spec, write_cases

ADAPTER = block("test-an-app.md", "toml")
ESCAPED = "".join(f"\\u{ord(sign):04X}" for sign in KEY)


def adapter(folder: Path, stream: str = "", text: str = ADAPTER) -> Path:
    path = folder / "app.toml"
    path.write_text(text.replace('# stream = "sse"', f'stream = "{stream}"') if stream else text)
    return path


def study(
    folder: Path, server: HttpServer, app: Path, case: Case | None = None, **other: Any
) -> StudySpec:
    """A study of the application on a case and two others."""
    cases = cases_of("high_risk", "en")
    chosen = [case or cases[0], *[one for one in cases if one.id != (case or cases[0]).id][:2]]
    split = write_cases(folder / "few.jsonl", chosen)
    return spec("sap", f"app:{server.url}", folder / "study", app=app, split=split, **other)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANION_KEY", KEY)


@pytest.mark.parametrize(("stream", "language"), [("", "zh"), ("sse", "en"), ("lines", "zh")])
def test_a_session_a_case_with_memory_of_its_own(
    tmp_path: Path, stream: str, language: str
) -> None:
    with Companion(stream=stream) as server:
        app = adapter(tmp_path, stream)
        asked = {"language": language, "limit": 3}
        result = run_study(
            spec("memory", f"app:{server.url}", tmp_path / "study", app=app, **asked)
        )
        adapter(tmp_path, stream, ADAPTER.replace('days = "{days}"', 'days = "{days}", hours = 0'))
        with pytest.raises(ConfigError, match="adapter"):  # another adapter is another study
            run_study(result.study.spec)
    assert not result.incomplete
    cases = {case.id: case for case in result.study.cases}
    assert (sorted(server.begun), len(server.ended)) == (sorted(cases), len(cases))
    assert server.keys == {f"Bearer {KEY}"}
    assert sum(server.days) == sum(one.gap_days for case in cases.values() for one in case.sessions)
    for one in result.replies:
        assert cases[one.case.id].sessions[0].turns[0].user in one.reply.text
    last = [one for one in result.replies if one.case.id == result.study.cases[0].id][-1]
    assert f"{len(list(result.study.cases[0].turns()))} things" in last.reply.text
    assert {row.unscored for row in select(result.observations, "must.callback", "app")} == {
        NOT_ASKED
    }
    assert not select(result.observations, "tokens")  # nobody knows what it sends to its model
    (tmp_path / "gate.toml").write_text('[[criteria]]\nfigure = "cost"\nmax = 5\n')
    (cost,) = gate(tmp_path / "study", None, tmp_path / "gate.toml").verdicts
    assert cost.not_tested == (
        "the cost is not known",
    )  # the application pays, and nobody sees how much


@pytest.mark.parametrize(
    "fault",
    [
        "error",
        "other",
        "hang",
        "moved",
        "broken stream",
        "broken choice",
        "broken type",
        "broken end",
        "empty",
    ],
)
def test_a_case_that_breaks_off_begins_again_in_a_new_session(tmp_path: Path, fault: str) -> None:
    case = next(one for one in cases_of("high_risk", "en") if one.study == "high_risk")
    stream = "sse" if fault.startswith("broken") else ""
    with Companion({case.id: ["", "", fault]}, stream) as server:
        result = run_study(study(tmp_path, server, adapter(tmp_path, stream), case, timeout=1.0))
    assert not result.incomplete
    assert server.begun.count(case.id) == (
        1 if fault == "empty" else 2
    )  # an empty reply is a reply
    own = [one.reply.text for one in result.replies if one.case.id == case.id]
    right = [f"You told me {k} things" in text for k, text in enumerate(own, 1)]
    assert right == [fault != "empty" or k != 2 for k in range(len(own))]


@pytest.mark.parametrize(("fault", "reason"), [("error", "http_503"), ("drop", "connection")])
def test_a_case_that_never_ends_is_repaired_by_the_same_command(
    tmp_path: Path, fault: str, reason: str
) -> None:
    looks_alike = [one for one in cases_of("high_risk", "en") if one.study == "look_alike"]
    case = next(one for one in looks_alike if len([*one.turns()]) == 1)
    with Companion({case.id: [fault] * 4}) as server:
        made = study(tmp_path, server, adapter(tmp_path), case, attempts=2)
        for _ in range(2):  # the second start asks for this case alone
            asked = len(server.begun)
            result = run_study(made)
            (row,) = {
                row
                for row in select(result.observations, "over_refusal", "app")
                if row.item == case.id
            }
            assert (row.value, row.unscored, result.incomplete) == (None, reason, True)
            assert set(server.begun[asked:]) == (
                {case.id} if asked else {one.id for one in result.study.cases}
            )
        assert not run_study(made).incomplete


@pytest.mark.parametrize(
    ("stream", "status", "body"),
    [
        ("", 200, '{"message": {"content": "Your key is ESCAPED."}}'),
        ("", 200, '{"message": {"content": "Your key is made-up-\\nkey-1234."}}'),
        (
            "sse",
            200,
            'data: {"message": {"content": "made-up-"}}\n\ndata: {"message": {"content": "key-1234"}}\n\n',
        ),
        ("", 401, '{"error": "refused: made-up-key-1234"}'),
        ("", 500, "x" * 190 + KEY),  # was cut in its middle
    ],
)
def test_no_key_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, status: int, body: str
) -> None:
    """It came escaped or in pieces."""

    class Echo(Companion):
        def answer(self, fault: str, text: str) -> Answer:
            return Answer(body.replace("ESCAPED", ESCAPED), status)

    monkeypatch.setenv("COMPANION_KEY", f"Bearer {KEY}")  # both words of it are masked
    app = adapter(tmp_path, stream, ADAPTER.replace('"Bearer $', '"$'))
    refused = pytest.raises(ConfigError) if status == 401 else contextlib.nullcontext()
    with Echo() as server:
        made = study(tmp_path, server, app, attempts=1)
        with refused as raised:
            run_study(made)
        if status == 401:  # the one message that is sent to try it gave no advice
            with pytest.raises(ConfigError, match=r"refuses the key \(401\).* \[headers\]"):
                try_app(made)
    if raised is not None:  # a refused key was tried with every case, four times
        assert len(server.begun) <= 4
        shown = (
            "refuses the key (401); put the right one into [headers]",
            "[API key masked]",
            "made-up",
        )
        assert [text in str(raised.value) for text in shown] == [True, True, False]
    assert [files_with(tmp_path / "study", text) for text in ("made-up", ESCAPED)] == [[], []]
    assert files_with(tmp_path / "study", "masked]") or status != 200


def test_an_adapter_that_does_not_fit_says_what_came(tmp_path: Path) -> None:
    """The tables were dashes and `malformed_reply 7`, and nothing said where the reply stood instead."""
    path = adapter(tmp_path, text=ADAPTER.replace('"message.content"', '"message.text"'))
    words = ["study", "app", "--adapter", path, "--language", "en"]
    sentence = '[send] of the adapter: no text at message.text in {"message": {"content": "You told me 1 things'
    with Companion() as server:
        done = h2htalk_here(*words, server.url, "--limit", 2, "--out", tmp_path / "study")
        assert (done.returncode, f"malformed_reply: {sentence}" in done.stdout) == (3, True)
        assert "no text at message.text in" in (tmp_path / "study" / "report.html").read_text()
        tried = h2htalk_here(*words, server.url, "--try")
        assert (tried.returncode, sentence in tried.stderr) == (2, True)
        adapter(tmp_path)
        tried = h2htalk_here(*words, server.url, "--try")
        assert tried.stdout.startswith(
            "sent: Hello, how are you today?\nread at message.content: You told me 1 things"
        )
        assert server.sessions == {}
        assert "out is missing" in h2htalk_here(*words, server.url).stderr
    assert {one.name for one in tmp_path.iterdir()} == {"app.toml", "study"}


def test_a_case_within_a_conversation_needs_history(tmp_path: Path) -> None:
    app = adapter(tmp_path, text=ADAPTER.replace(', history = "{history}"', ", history = []"))
    with Companion() as server:
        result = run_study(
            spec("instructions", f"app:{server.url}", tmp_path / "study", app=app, limit=48)
        )
    begun = {case.id for case in result.study.cases if case.history}
    assert (
        begun
        == {one.case.id for one in result.replies if one.reply.failure == "needs_history"}
        != set()
    )


SEND = "[send]\npath = '/x'\njson = '{text}'\nreply = 'a'\n"


@pytest.mark.parametrize(
    ("text", "secret", "message"),
    [
        (SEND.replace("{text}", "words"), KEY, "stands nowhere"),
        (SEND.replace("/x", "/{session}"), KEY, "no \\[start\\]"),
        (SEND.replace("{text}", "{txt}"), KEY, "no value"),
        (f'{SEND}[headers]\na = "b\\nc: d"\n', KEY, "in one line"),
        (f"{SEND}[headers]\na = '$1'\n", KEY, r"no \$ but in \$NAME"),
        (ADAPTER, KEY, "cannot be reached"),
        (ADAPTER, "", "COMPANION_KEY, which is not set"),
        (ADAPTER, "here", "fewer than 8"),  # masked in replies, where it is a word
        (ADAPTER, "key\r\nx-other: 1", "control character"),
    ],
)
def test_wrong_adapters_and_keys(
    tmp_path: Path, monkeypatch: Any, text: str, secret: str, message: str
) -> None:
    monkeypatch.setenv("COMPANION_KEY", secret)
    app = adapter(tmp_path, text=text)
    with pytest.raises(ConfigError, match=message):
        run_study(
            spec("sap", "app:http://127.0.0.1:9", tmp_path / "study", app=app, limit=2, attempts=1)
        )
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(
    ("sends", "named", "advice"),
    [
        (
            "sse",
            "",
            'a stream of server-sent events: write stream = "sse" into [send] of the adapter',
        ),
        ("lines", "", 'a stream of JSON lines: write stream = "lines" into [send] of the adapter'),
        (
            "lines",
            "sse",
            'a stream of JSON lines: write stream = "lines" into [send] of the adapter',
        ),
        ("", "sse", 'one JSON value, no stream: leave stream = "sse" out of [send] of the adapter'),
    ],
)
def test_a_stream_that_the_adapter_does_not_name_stops_at_once(
    tmp_path: Path, sends: str, named: str, advice: str
) -> None:
    """Every case was sent four times, which took 35 seconds for 20 of them, and no message named the setting."""
    app = adapter(tmp_path, named)
    with Companion(stream=sends) as server:
        made = study(tmp_path, server, app)
        with pytest.raises(ConfigError) as raised:
            run_study(made)
        assert len(server.begun) <= 3  # each case once
        assert advice in str(raised.value)
        with pytest.raises(ConfigError, match="the reply is"):
            try_app(made)
        adapter(tmp_path, sends)
        assert not run_study(made).incomplete  # the same command, once the adapter is right


def test_a_stream_in_the_place_of_one_reply_fails_that_case_alone(tmp_path: Path) -> None:
    """Once a reply was read the adapter is right: a fault of one case is no reason to stop."""
    cases = cases_of("high_risk", "en")
    with Companion({cases[1].id: ["event stream"] * 9}) as server:
        result = run_study(study(tmp_path, server, adapter(tmp_path), attempts=1, concurrency=1))
        assert result.incomplete
        assert sorted(server.begun) == sorted(case.id for case in cases[:3])
    assert "malformed_reply" in {row.unscored for row in result.observations}


def test_an_adapter_that_no_reply_fits_is_tried_with_a_greeting_after_three_cases(
    tmp_path: Path,
) -> None:
    """Each case was sent four times to an adapter that none of them could fit."""
    app = adapter(tmp_path, text=ADAPTER.replace('"message.content"', '"message.text"'))
    with Companion() as server:
        split = write_cases(tmp_path / "many.jsonl", cases_of("high_risk", "en")[:20])
        made = spec(
            "sap",
            f"app:{server.url}",
            tmp_path / "study",
            app=app,
            split=split,
            concurrency=1,
            attempts=1,
        )
        with pytest.raises(ConfigError, match=r"no text at message.text in"):
            run_study(made)
        assert len(server.begun) == 4  # three cases and the greeting
