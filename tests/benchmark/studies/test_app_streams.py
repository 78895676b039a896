"""Streams of applications, read by `study app --try`: `app_streams.json` holds what they send."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.studies.run_study import load_study
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer
from support.studies import KEY, Companion, block, cases_of, write_cases

STREAMS = json.loads(Path(__file__).with_name("app_streams.json").read_text(encoding="utf-8"))
WHOLE = STREAMS["replies"][0]
ADAPTER = block("test-an-app.md", "toml")
PLACE = "choices.0.delta.content"


class Streaming(Companion):
    """Always sends one body."""

    def __init__(self, body: Answer) -> None:
        super().__init__()
        self.body = body

    def answer(self, fault: str, text: str) -> Answer:
        return self.body


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPANION_KEY", KEY)


UNENDED = (
    f"data: {json.dumps({'choices': [{'delta': {'content': 'Hi.'}, 'finish_reason': None}]})}\n\n"
)


def tried(folder: Path, body: Answer, settings_lines: str = "") -> subprocess.CompletedProcess[str]:
    """Send one message to an application that answers so."""
    adapter = ADAPTER.replace("message.content", PLACE)
    path = folder / "app.toml"
    path.write_text(adapter.replace('# stream = "sse"', f'{settings_lines}stream = "sse"'))
    with Streaming(body) as server:
        return h2htalk_here("study", "app", server.url, "--adapter", path, "--try")


@pytest.mark.parametrize("case", STREAMS["replies"], ids=lambda case: case["what"])
def test_a_stream_is_read_in_the_forms_that_servers_send(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    done = tried(tmp_path, Answer(case["body"]))
    assert done.stdout.endswith(f"read at {PLACE}: {case['text']}\n")


def test_a_compressed_stream_is_read(tmp_path: Path) -> None:
    body = gzip.compress(WHOLE["body"].encode())
    done = tried(tmp_path, Answer(body, headers={"content-encoding": "gzip"}))
    assert done.stdout.endswith(f"read at {PLACE}: {WHOLE['text']}\n")


@pytest.mark.parametrize("case", STREAMS["errors"], ids=lambda case: case["what"])
def test_a_stream_that_holds_no_whole_reply_is_an_error_that_says_what_came(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    """Half a reply was judged, and the message of an error said nothing of it."""
    done = tried(tmp_path, Answer(case["body"]))
    assert done.returncode == 2
    assert case["message"] in done.stderr


def test_an_application_that_redirects_every_call_stops_the_study(tmp_path: Path) -> None:
    """Each case was sent four times to a login page, and the failure had no message."""
    cases = write_cases(tmp_path / "many.jsonl", cases_of("high_risk", "en")[:20])
    adapter = tmp_path / "app.toml"
    adapter.write_text(ADAPTER)
    settings = tmp_path / "spec.toml"
    settings.write_text("concurrency = 1\nattempts = 1\n")
    words = ["--adapter", adapter, "--split", cases, "--spec", settings]
    with Streaming(Answer(b"", 302, {"Location": "/login"})) as server:
        done = h2htalk_here("study", "app", server.url, *words, "--out", tmp_path / "study")
        assert (done.returncode, len(server.begun)) == (2, 4)  # three cases and a greeting
    assert "http_302: it redirects, as to a login page" in done.stderr


def study_of(folder: Path, body: Answer, settings_lines: str = "") -> tuple[int, str, int]:
    """Run a study of an application that answers so; the exit code, the messages, and how many sessions began."""
    cases = write_cases(folder / "many.jsonl", cases_of("high_risk", "en")[:8])
    adapter = ADAPTER.replace("message.content", PLACE)
    path = folder / "app.toml"
    path.write_text(adapter.replace('# stream = "sse"', f'{settings_lines}stream = "sse"'))
    settings = folder / "spec.toml"
    settings.write_text("concurrency = 1\nattempts = 1\n")
    words = ["--adapter", path, "--split", cases, "--spec", settings, "--out", folder / "study"]
    with Streaming(body) as server:
        done = h2htalk_here("study", "app", server.url, *words)
        return done.returncode, done.stdout + done.stderr, len(server.begun)


def test_an_application_that_never_sends_an_end_is_read_by_a_setting(tmp_path: Path) -> None:
    """Pieces with null finish reasons and no end failed in every case, and nothing could be set."""
    done = tried(tmp_path, Answer(UNENDED))
    assert (done.returncode, "write end_mark = false into [send]" in done.stderr) == (2, True)
    done = tried(tmp_path, Answer(UNENDED), "end_mark = false\n")
    assert done.stdout.endswith(f"read at {PLACE}: Hi.\n")


def test_a_study_of_an_application_that_never_sends_an_end_stops(tmp_path: Path) -> None:
    code, messages, sessions = study_of(tmp_path, Answer(UNENDED))
    assert (code, sessions) == (2, 4)  # three cases and a greeting
    assert "write end_mark = false into [send]" in messages


def test_a_stream_that_a_filter_ends_without_text_is_a_filtered_reply(tmp_path: Path) -> None:
    """It was taken for an adapter that reads at the wrong place, and the study stopped."""
    (filtered,) = [case for case in STREAMS["replies"] if case["what"].startswith("a filter in")]
    code, messages, _ = study_of(tmp_path, Answer(filtered["body"]))
    assert code == 0, messages
    assert "finish reason content_filter" in messages
    answers = load_study(tmp_path / "study").study.folder.answers().values()
    reasons = {getattr(answer, "finish_reason", "failed") for answer in answers}
    assert reasons == {"content_filter"}
