"""mini through EvalScope: what it sends, and that its scores are ours; the first block of each page on a harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.data.splits import load_split
from h2htalk.integrations.harness_split import HarnessSplit
from support.doubles.loopback import Answer, LoopbackServer
from support.live.one_model import (
    LANGUAGES,
    Ours,
    Seen,
    columns,
    items,
    key_of,
    reply,
    require_ours,
    write_private,
)
from support.studies import block

pytest.importorskip("evalscope")
pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


def evalscope(server: LoopbackServer, out: Path, *words: str, code: int = 0) -> str:
    """The command of the documentation; returns its standard error."""
    where = ("--model", "loopback", "--api-url", server.url, "--out", str(out))
    command = [sys.executable, "-m", "h2htalk.integrations.evalscope"]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*command, *where, *words], capture_output=True, text=True, env=env, timeout=200
    )
    assert done.returncode == code, done.stderr
    return done.stderr


@dataclass(frozen=True)
class Log:
    """What a run wrote: the score of each review by item, and the report."""

    scores: dict[str, dict[str, Any]]
    report: dict[str, Any]

    @classmethod
    def read(cls, out: Path) -> Log:
        lines = (
            next(out.rglob("reviews/**/h2htalk_default.jsonl"))
            .read_text(encoding="utf-8")
            .splitlines()
        )
        samples = [json.loads(line)["sample_score"] for line in lines]
        scores = {sample["sample_metadata"]["id"]: sample["score"] for sample in samples}
        assert len(scores) == len(samples)
        return cls(
            scores,
            json.loads(next(out.rglob("reports/**/h2htalk.json")).read_text(encoding="utf-8")),
        )

    @property
    def values(self) -> dict[str, dict[str, float]]:
        return {name: score["value"] for name, score in self.scores.items() if score["value"]}

    def figure(self, name: str) -> dict[str, Any]:
        return next(
            metric for metric in self.report["metrics"] if metric["identity"]["name"] == name
        )


@pytest.fixture(scope="module", params=LANGUAGES)
def full_run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Log, Seen]:
    out = tmp_path_factory.mktemp("evalscope")
    with LoopbackServer(reply=reply) as server:
        evalscope(server, out, "--language", request.param, "--embedder", "minilm")
        return request.param, Log.read(out), Seen.by(server)


def test_every_value_of_every_item_is_ours(
    ours: dict[str, Ours], full_run: tuple[str, Log, Seen]
) -> None:
    language, log, _ = full_run
    require_ours(ours[language], log.values, language)
    names = set(chain.from_iterable(log.values.values()))
    assert names == {*columns(language), "compliance"}
    assert {name for name, values in log.values.items() if values["compliance"] == 0} == ours[
        language
    ].broken


def test_the_server_sees_messages_and_budgets_of_our_run(
    ours: dict[str, Ours], full_run: tuple[str, Log, Seen]
) -> None:
    assert ours[full_run[0]].seen == full_run[2]


def test_the_report_has_table_1s_weights_and_a_main_metric(
    ours: dict[str, Ours], full_run: tuple[str, Log, Seen]
) -> None:
    language, log, _ = full_run
    rows = ours[language].summary.rows
    figures = {"weighted_lexical": rows.lexical["overall"], "lexical": rows.lexical["items_mean"]}
    if language == "en":
        figures |= {"weighted_s": rows.s["overall"], "s": rows.s["items_mean"]}
    for name, cell in figures.items():
        assert log.figure(name)["score"] == pytest.approx(
            (cell.value or 0) / 100, abs=1e-4
        )  # it rounds to 4 digits
        assert log.figure(name)["num"] == LANGUAGES[language]
    assert log.report["primary_metric_identity"]["name"] == ("s" if language == "en" else "lexical")


BROKEN = Answer({"error": {"message": "no such parameter", "code": "invalid_request_error"}}, 400)
FILTERED = Answer({"error": {"message": "The prompt was filtered.", "code": "content_filter"}}, 400)


def test_failed_calls_leave_their_items_out_as_in_our_own_run(tmp_path: Path) -> None:
    """EvalScope makes a reply of the message of a prompt that is too long or filtered: not scored, and scored as empty,
    as in our own run."""
    items = HarnessSplit("mini", "en", limit=22).items
    sent = [key_of(item.messages) for item in items[::5]]
    faults = dict(zip(sent, ["context_length", BROKEN, FILTERED] * 2, strict=False))

    def answer(request: dict[str, Any], count: int) -> str | Answer:
        return faults.get(key_of(request["messages"]), reply(request))

    with LoopbackServer(reply=answer) as server:
        evalscope(server, tmp_path / "theirs", "--language", "en", "--limit", "22")
        figures: dict[str, Any] = {
            "language": "en",
            "limit": 22,
            "embedder": "none",
            "out": str(tmp_path / "ours"),
        }
        summary = h2htalk.evaluate(h2htalk.EvaluateSpec(model=server.spec, split="mini", **figures))
    log = Log.read(tmp_path / "theirs")
    rows = h2htalk.load_run(tmp_path / "ours").scores().to_pylist()
    scored = {row["id"]: row["lexical"] for row in rows if not row["unscored"]}
    filtered = [item.id for item in items if faults.get(key_of(item.messages)) is FILTERED]
    assert len(items) - len(scored) == len(faults) - len(filtered) > 2
    assert {name: values["lexical"] for name, values in log.values.items()} == pytest.approx(
        scored, abs=1e-9
    )
    assert {scored[name] for name in filtered} == {0.0}
    mean = log.figure("lexical")
    assert mean["num"] == len(scored)
    assert mean["score"] == pytest.approx(
        (summary.rows.lexical["items_mean"].value or 0) / 100, abs=1e-4
    )


def test_items_without_a_reference_are_excluded(tmp_path: Path) -> None:
    private = write_private(tmp_path / "split", 11, 4)
    with LoopbackServer(reply=reply) as server:
        evalscope(server, tmp_path / "out", "--split", str(tmp_path / "split"))
    log = Log.read(tmp_path / "out")
    excluded = {
        name: score["explanation"]
        for name, score in log.scores.items()
        if score["status"] == "excluded"
    }
    assert excluded == dict.fromkeys(private, "private_reference")
    assert log.values.keys() == log.scores.keys() - private
    assert log.figure("lexical")["num"] == 11 - len(private)


def test_another_sap_reaches_the_model(tmp_path: Path) -> None:
    sent = {}
    for sap in ("full", "none"):
        with LoopbackServer(reply="A reply.") as server:
            evalscope(
                server,
                tmp_path / sap,
                "--language",
                "en",
                "--subtasks",
                "dialogue_base",
                "--sap",
                sap,
            )
        sent[sap] = sorted(key_of(json.loads(body)["messages"]) for body in server.counts)
    expected = [
        key
        for key, item in items().items()
        if item.language == "en" and item.subtask == "dialogue_base"
    ]
    assert sent["full"] == sorted(expected)
    assert not {request_key[0] for request_key in sent["full"]} & {
        request_key[0] for request_key in sent["none"]
    }
    assert sorted(request_key[1:] for request_key in sent["full"]) == sorted(
        request_key[1:] for request_key in sent["none"]
    )


def test_rows_have_the_canary_and_a_second_run_is_added_to_the_replies(tmp_path: Path) -> None:
    """As the page says: reviews and reports are of the last run, predictions of all."""
    for limit in ("11", "22"):
        with LoopbackServer(reply=reply) as server:
            evalscope(server, tmp_path, "--language", "en", "--limit", limit)
    files = {
        name: tmp_path / name / "loopback" / "h2htalk_default.jsonl"
        for name in ("predictions", "reviews")
    }
    rows = {name: path.read_text(encoding="utf-8").splitlines() for name, path in files.items()}
    assert {name: len(samples) for name, samples in rows.items()} == {
        "predictions": 33,
        "reviews": 22,
    }
    canary = load_split("mini").canary
    assert all(canary in row for row in chain.from_iterable(rows.values()))
    assert (tmp_path / "reports" / "report.html").is_file()
    assert (tmp_path / "reports" / "loopback" / "h2htalk.json").is_file()


def test_an_unknown_split_is_one_line(tmp_path: Path) -> None:
    with LoopbackServer(reply=reply) as server:
        message = evalscope(server, tmp_path, "--split", "minni", code=1)
    assert "mini" in message.splitlines()[-1]
    assert server.requests == 0


SHOWN = {"inspect": "Overall", "lm-eval": "overall", "evalscope": "weighted_lexical"}


@pytest.mark.parametrize("page", SHOWN)
def test_the_first_block_ends_with_a_score(
    page: str, ours: dict[str, Ours], tmp_path: Path
) -> None:
    """Only what the reader fills in is replaced; the packages are there, so `pip` does nothing."""
    code = block(f"../integrations/{page}.md", "bash")
    assert code.startswith("pip install")
    assert len(code.splitlines()) <= 10
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/mine").symlink_to(ours["en"].out)
    with LoopbackServer(reply=reply) as server:
        for printed, ours_is in (
            ("http://127.0.0.1:8000/v1", server.url),
            ("=...", "=none"),
            ("MODEL", "loopback"),
        ):
            code = code.replace(printed, ours_is)
        offline = {
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "OPENAI_API_KEY": "none",
            "NO_COLOR": "1",
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {
            **os.environ,
            **offline,
            "PATH": path,
            "OPENAI_BASE_URL": server.url,
            "INSPECT_DISPLAY": "plain",
        }
        command = ["bash", "-euo", "pipefail", "-c", f"pip() {{ :; }}\n{code}"]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert server.requests >= 176, done.stderr[-2000:]
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert SHOWN[page] in done.stdout + done.stderr
