"""mini through EvalScope: what it sends, and that its scores are ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, LoopbackServer
from one_model import LANGUAGES, PARTS, Ours, Seen, differences, items, key_of, reply

import h2htalk
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.integrations.door import Door

pytest.importorskip("evalscope")
pytestmark = pytest.mark.live


def evalscope(server: LoopbackServer, out: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command of the documentation."""
    where = ("--model", "loopback", "--api-url", server.url, "--out", str(out))
    return subprocess.run(
        [sys.executable, "-m", "h2htalk.integrations.evalscope", *where, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        timeout=200,
    )


@dataclass(frozen=True)
class Log:
    """What a run wrote: the score of each review by item, and the report."""

    scores: dict[str, dict[str, Any]]
    report: dict[str, Any]

    @classmethod
    def read(cls, out: Path) -> Log:
        lines = next(out.rglob("reviews/**/h2htalk_default.jsonl")).read_text(encoding="utf-8").splitlines()
        found = [json.loads(line)["sample_score"] for line in lines]
        scores = {one["sample_metadata"]["id"]: one["score"] for one in found}
        assert len(scores) == len(found)
        return cls(scores, json.loads(next(out.rglob("reports/**/h2htalk.json")).read_text(encoding="utf-8")))

    @property
    def values(self) -> dict[str, dict[str, float]]:
        return {name: score["value"] for name, score in self.scores.items() if score["value"]}

    def figure(self, name: str) -> dict[str, Any]:
        return next(one for one in self.report["metrics"] if one["identity"]["name"] == name)


@pytest.fixture(scope="module", params=LANGUAGES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Log, Seen]:
    out = tmp_path_factory.mktemp("evalscope")
    with LoopbackServer(reply=reply) as server:
        done = evalscope(server, out, "--language", request.param, "--embedder", "minilm")
        assert done.returncode == 0, done.stderr
        return request.param, Log.read(out), Seen.by(server)


def test_every_value_of_every_item_is_ours(ours: dict[str, Ours], whole: tuple[str, Log, Seen]) -> None:
    language, log, _ = whole
    columns = (*PARTS, "lexical", *(("ss", "s") if language == "en" else ()))
    assert len(log.scores) == LANGUAGES[language]
    found = differences(ours[language], log.values, columns)
    assert {name: most for name, most in found.items() if most > 1e-9} == {}
    assert {name for values in log.values.values() for name in values} == {*columns, "compliance"}
    broken = {name for name, row in ours[language].scores.items() if row["violations"]}
    assert {name for name, values in log.values.items() if values["compliance"] == 0} == broken


def test_the_server_sees_the_messages_and_budgets_of_our_own_run(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    assert ours[whole[0]].seen == whole[2]


def test_the_report_has_table_1s_weights_and_a_primary_metric(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    language, log, _ = whole
    rows = ours[language].summary.rows
    own = {"weighted_lexical": rows.lexical["overall"], "lexical": rows.lexical["items_mean"]}
    if language == "en":
        assert rows.s is not None
        own |= {"weighted_s": rows.s["overall"], "s": rows.s["items_mean"]}
    for name, cell in own.items():
        assert log.figure(name)["score"] == pytest.approx((cell.value or 0) / 100, abs=1e-4)  # it rounds to 4 digits
        assert log.figure(name)["num"] == LANGUAGES[language]
    assert log.report["primary_metric_identity"]["name"] == ("s" if language == "en" else "lexical")


BROKEN = Answer({"error": {"message": "no such parameter", "code": "invalid_request_error"}}, 400)
FILTERED = Answer({"error": {"message": "The prompt was filtered.", "code": "content_filter"}}, 400)


def test_failed_calls_leave_their_items_out_as_in_our_own_run(tmp_path: Path) -> None:
    """EvalScope makes a reply of the message of a prompt that is too long or filtered: not scored, and scored as empty,
    as in our own run."""
    items = Door("mini", "en", limit=22).items
    faults = dict(
        zip([key_of(item.messages) for item in items[::5]], ["context_length", BROKEN, FILTERED] * 2, strict=False)
    )

    def answer(request: dict[str, Any], count: int) -> str | Answer:
        return faults.get(key_of(request["messages"]), reply(request))

    with LoopbackServer(reply=answer) as server:
        done = evalscope(server, tmp_path / "theirs", "--language", "en", "--limit", "22")
        assert done.returncode == 0, done.stderr
        spec = h2htalk.EvaluateSpec(
            model=server.spec, split="mini", language="en", limit=22, embedder="none", out=str(tmp_path / "ours")
        )
        summary = h2htalk.evaluate(spec)
    log, rows = Log.read(tmp_path / "theirs"), h2htalk.load_run(tmp_path / "ours").scores().to_pylist()
    scored = {row["id"]: row["lexical"] for row in rows if not row["unscored"]}
    filtered = [one.id for one in items if faults.get(key_of(one.messages)) is FILTERED]
    assert len(items) - len(scored) == len(faults) - len(filtered) > 2
    assert {name: values["lexical"] for name, values in log.values.items()} == pytest.approx(scored, abs=1e-9)
    assert {scored[name] for name in filtered} == {0.0}
    mean = log.figure("lexical")
    assert mean["num"] == len(scored)
    assert mean["score"] == pytest.approx((summary.rows.lexical["items_mean"].value or 0) / 100, abs=1e-4)


def test_items_without_a_reference_are_excluded(tmp_path: Path) -> None:
    records = [one.to_dict() for one in load_split("mini").select("en", limit=11).scenarios]
    private = {record["id"] for record in records[::4]}
    for record in records:
        if record["id"] in private:
            del record["reference"]
            record["references"] = []
    write_jsonl(tmp_path / "split" / "scenarios.jsonl", records)
    with LoopbackServer(reply=reply) as server:
        done = evalscope(server, tmp_path / "out", "--split", str(tmp_path / "split"))
        assert done.returncode == 0, done.stderr
    log = Log.read(tmp_path / "out")
    excluded = {name: score["explanation"] for name, score in log.scores.items() if score["status"] == "excluded"}
    assert excluded == dict.fromkeys(private, "private_reference")
    assert log.values.keys() == log.scores.keys() - private
    assert log.figure("lexical")["num"] == len(records) - len(private)


def test_another_sap_reaches_the_model(tmp_path: Path) -> None:
    asked = {}
    for sap in ("full", "none"):
        with LoopbackServer(reply="A reply.") as server:
            done = evalscope(server, tmp_path / sap, "--language", "en", "--subtasks", "dialogue_base", "--sap", sap)
            assert done.returncode == 0, done.stderr
        asked[sap] = sorted(key_of(json.loads(body)["messages"]) for body in server.counts)
    expected = [key for key, one in items().items() if one.language == "en" and one.subtask == "dialogue_base"]
    assert asked["full"] == sorted(expected)
    assert not {one[0] for one in asked["full"]} & {one[0] for one in asked["none"]}
    assert sorted(one[1:] for one in asked["full"]) == sorted(one[1:] for one in asked["none"])


def test_rows_have_the_canary_and_a_second_run_is_added_to_the_replies(tmp_path: Path) -> None:
    """As the page says: reviews and reports are of the last run, predictions of all."""
    for limit in ("11", "22"):
        with LoopbackServer(reply=reply) as server:
            done = evalscope(server, tmp_path, "--language", "en", "--limit", limit)
            assert done.returncode == 0, done.stderr
    rows = {
        name: (tmp_path / name / "loopback" / "h2htalk_default.jsonl").read_text(encoding="utf-8").splitlines()
        for name in ("predictions", "reviews")
    }
    assert {name: len(found) for name, found in rows.items()} == {"predictions": 33, "reviews": 22}
    canary = load_split("mini").canary
    assert all(canary in row for found in rows.values() for row in found)
    assert (tmp_path / "reports" / "report.html").is_file()
    assert (tmp_path / "reports" / "loopback" / "h2htalk.json").is_file()


def test_an_unknown_split_is_one_line(tmp_path: Path) -> None:
    with LoopbackServer(reply=reply) as server:
        done = evalscope(server, tmp_path, "--split", "minni")
    assert done.returncode == 1
    assert "mini" in done.stderr.splitlines()[-1]
    assert server.requests == 0
