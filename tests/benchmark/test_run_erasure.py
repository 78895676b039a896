"""Erase items from runs: the protocol stays, and everything that reads a run works on what is left."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import score
from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.files import read_jsonl, sha256_of, write_jsonl
from h2htalk.data.links import read_links
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from support.byte_search import files_with
from support.releases import make_release, scenario
from support.runs import baseline_run

WORDS = "cinnamon porridge"
EMILY = ErasedIds(frozenset({"made-000001"}))
GONE = "made-000001:dialogue_base"


def emilys(**other: Any) -> Scenario:
    turns = [{"role": "user", "content": f"I burnt the {WORDS}."}]
    return scenario(1, inputs={"history": turns}, references=[f"Is there {WORDS} left?"], **other)


def released(folder: Path, count: int = 5) -> Path:
    """A release of Emily's item and others."""
    others = [scenario(n, references=[f"Reply {n}."]) for n in range(2, count + 1)]
    release = make_release(folder / "release", {"test": [emilys(), *others], "dev": [scenario(9)]})
    private_folder(release).mkdir()
    return release


@pytest.fixture
def spec(tmp_path: Path) -> EvaluateSpec:
    run = baseline_run(
        tmp_path / "run", "copy-last-turn", split=str(released(tmp_path)), limit=None
    )
    return read_spec(run / "run.json")


def test_a_run_keeps_its_protocol_and_loses_the_item(spec: EvaluateSpec) -> None:
    path = Path(spec.out)
    before = load_run(path)
    drawn = drawn_references(path)
    assert [name for name, text in drawn.items() if WORDS in text] not in ([], [GONE])
    assert len(files_with(path, WORDS)) == 5
    assert [one.path for one in read_links(private_folder(Path(spec.split)))] == [path]
    result = erase(path, EMILY)
    assert (result.removed, result.items, result.messages) == (1, {GONE}, ())
    assert files_with(path, WORDS) == []
    assert files_with(path, GONE) == ["erased.jsonl"]
    run = load_run(path)
    assert run.summary.signature == before.summary.signature
    assert (run.summary.counts.items, run.summary.counts.scored, run.summary.counts.erased) == (
        4,
        4,
        1,
    )
    assert run.item_scores == {
        name: one for name, one in before.item_scores.items() if name != GONE
    }
    assert run.scores().num_rows == run.items().num_rows == 4
    # The baseline is drawn again from the items that are left.
    again = drawn_references(path)
    assert again.keys() == drawn.keys() - {GONE}
    assert {f"Reply {n}." for n in range(2, 6)} >= set(again.values())
    assert erase(path, EMILY).removed == 0
    with pytest.raises(DataError, match="every item of this run is erased; delete the folder"):
        erase(path, ErasedIds(frozenset(f"made-{n:06}" for n in range(1, 6))))


def test_a_baseline_that_answers_with_references_of_others(tmp_path: Path) -> None:
    """The answers of the run itself quoted an erased item."""
    run = baseline_run(
        tmp_path / "run", "random-reference", split=str(released(tmp_path)), limit=None
    )
    assert "calls.jsonl" in files_with(run, WORDS)
    erase(run, EMILY)
    assert files_with(run, WORDS) == []
    counts = load_run(run).summary.counts
    assert (counts.items, counts.scored) == (4, 4)


def drawn_references(path: Path) -> dict[str, str]:
    return {
        line["id"]: line["text"]
        for _, line in read_jsonl(path / "baselines" / "random-reference.jsonl")
    }


def test_an_unfinished_run_goes_on_without_the_item(spec: EvaluateSpec) -> None:
    path = Path(spec.out)
    answers = RunFolder(path).calls_file
    answers.write_text(
        "".join(line for line in answers.read_text().splitlines(True) if "made-000003" not in line)
    )
    erase(path, EMILY)
    with pytest.raises(ConfigError, match="still holds them; evaluate on a version"):
        evaluate(spec)
    erase(Path(spec.split), EMILY)
    summary = evaluate(spec)
    assert (summary.counts.items, summary.counts.scored, summary.counts.erased) == (4, 4, 1)


def test_private_references_of_the_items_that_are_left(tmp_path: Path) -> None:
    scenarios = [emilys(), scenario(2), scenario(3)]
    lines = [{"id": one.id, "references": list(one.references)} for one in scenarios]
    old, new = (tmp_path / name for name in ("old.jsonl", "new.jsonl"))
    write_jsonl(old, lines)
    write_jsonl(new, lines[1:])
    split = load_split(make_release(tmp_path / "release", {"test": scenarios}))
    public = tuple(replace(one, references=()) for one in scenarios)
    before_erasure = replace(split, scenarios=public, references_sha256=sha256_of(old))
    export_split(before_erasure, tmp_path / "split")
    path = baseline_run(tmp_path / "run", split=str(tmp_path / "split"))
    before = score(path, references=old)
    with pytest.raises(DataError, match="is not the file of references"):
        score(path, references=new)
    (message,) = erase(path, EMILY).messages
    assert message.startswith(
        "its figures were removed (it was scored with private references: add --references FILE)"
    )
    assert message.endswith(f"run `h2htalk score` again ({path})")
    with pytest.raises(DataError, match="run `h2htalk score"):
        load_run(path)
    with pytest.raises(DataError, match="is not the file of references"):
        score(path, references=new)
    left = replace(before_erasure, scenarios=public[1:], references_sha256=sha256_of(new))
    shutil.rmtree(tmp_path / "split")
    export_split(left, tmp_path / "split")
    after = score(path, references=new)
    assert (before.counts.scored, after.counts.scored, after.counts.erased) == (3, 2, 1)
    assert after.signature.protocol["references_sha256"] == sha256_of(new)[:16]
    protocol = score(path, references=old).signature.protocol
    assert protocol["references_sha256"] == before.signature.protocol["references_sha256"]
