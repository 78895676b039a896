"""Runs on a split with private references: answered and not scored, until the owner of the references scores them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import h2htalk_here, scripted

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import report, score
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import json_line
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split

MINI = load_split("mini@1").select(limit=22)
SECRET = "a word that only the owner knows"


@pytest.fixture
def spec(tmp_path: Path) -> EvaluateSpec:
    """An evaluation of a split whose two references an item are in `references.jsonl` beside it."""
    lines = [{"id": s.id, "references": [s.reference, f"{SECRET} {s.id}"]} for s in MINI.scenarios]
    (tmp_path / "references.jsonl").write_text("".join(map(json_line, lines)))
    digest = hashlib.sha256((tmp_path / "references.jsonl").read_bytes()).hexdigest()
    scenarios = tuple(replace(s, references=()) for s in MINI.scenarios)
    export_split(replace(MINI, scenarios=scenarios, references_sha256=digest), tmp_path / "split")
    return EvaluateSpec(
        model=scripted(tmp_path), split=str(tmp_path / "split"), out=str(tmp_path / "run"), embedder="none"
    )


def references_of(spec: EvaluateSpec) -> Path:
    return Path(spec.split).parent / "references.jsonl"


def contracts(summary: Summary) -> dict[str, float | None]:
    return {name: cell.value for name, cell in summary.rows.compliance.items()}


def test_answers_are_stored_and_not_scored(spec: EvaluateSpec) -> None:
    summary = evaluate(spec)
    counts = summary.counts
    assert (counts.items, counts.scored, counts.private, counts.unscored) == (22, 0, 22, 0)
    assert counts.failures == {"private_reference": 22}
    assert not summary.incomplete
    assert summary.signature.protocol["references"] == "private"
    assert set(summary.baselines) == {"constant", "copy-last-turn"}
    assert {cell.value for cell in summary.rows.lexical.values()} == {None}
    public = evaluate(replace(spec, split="mini@1", limit=22, out=f"{spec.out}-public"))
    assert contracts(summary) == contracts(public)
    assert summary.violations == public.violations
    assert load_run(spec.out).summary == report(spec.out_path) == summary


def test_every_report_says_why_there_is_no_score(spec: EvaluateSpec) -> None:
    done = h2htalk_here("evaluate", spec.model, "--split", spec.split, "--embedder", "none", "--out", spec.out)
    said = " ".join(done.stdout.split())
    assert (done.returncode, done.stderr.count("error")) == (0, 0)
    assert "0 of 22 items scored, not scored: references are private" in said
    assert "h2htalk score RUN --references FILE" in said
    assert "INCOMPLETE" not in said
    page = (spec.out_path / "report.html").read_text()
    assert '<span class="chip bad">not scored: references are private</span>' in page
    assert "chip good" not in page.partition("</h1>")[2].partition("</p>")[0]
    for words in (("leaderboard", spec.out), ("report", spec.out, "--format", "latex")):
        assert "not scored: references are private, " in " ".join(h2htalk_here(*words).stdout.split())


def test_the_owner_of_the_references_scores_the_answers(spec: EvaluateSpec) -> None:
    evaluate(spec)
    done = h2htalk_here("score", spec.out, "--references", references_of(spec))
    assert done.returncode == 0, done.stderr
    assert "22 of 22 items scored, complete" in " ".join(done.stdout.split())
    run = load_run(spec.out)
    protocol = run.summary.signature.protocol
    digest = hashlib.sha256(references_of(spec).read_bytes()).hexdigest()
    assert (protocol["references"], protocol["references_sha256"]) == ("2", digest[:16])

    # The same answers and references in an open split: the same figures.
    references = [json.loads(line)["references"] for line in references_of(spec).read_text().splitlines()]
    rows = (replace(s, references=tuple(own)) for s, own in zip(MINI.scenarios, references, strict=True))
    export_split(replace(MINI, scenarios=tuple(rows)), Path(f"{spec.split}-open"))
    opened = evaluate(replace(spec, split=f"{spec.split}-open", out=f"{spec.out}-open"))
    assert run.summary.rows == opened.rows
    assert run.summary.baselines == {n: row for n, row in opened.baselines.items() if n != "random-reference"}
    opened = load_run(f"{spec.out}-open")
    assert run.scores().drop_columns("answer").equals(opened.scores().drop_columns("answer"))

    for path in spec.out_path.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert report(spec.out_path) == run.summary
    assert evaluate(spec) == run.summary  # a restart does not take the scores away
    assert not score(spec.out_path).counts.scored  # without the references there are none
