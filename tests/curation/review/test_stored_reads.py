"""Readings of the reviewer in a workspace: batches, kills, erasure, earlier versions, and what they cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_candidate_reads import HARM, reads_of
from test_review import candidates, composed, review, run, script

from h2htalk.chat.prices import prompt_tokens
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.release.selection import scenario_of_record
from h2htalk.curation.review import stage as review_stage
from h2htalk.curation.review.reviewer import PAIR_TOKENS, RUBRIC_TOKENS, Reviewer
from h2htalk.curation.show import explain, show
from h2htalk.curation.stages import ReviewSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.readers.reads import Read
from h2htalk.errors import ConfigError
from h2htalk.rounds.item_sources import read_items
from h2htalk.text.language_data import read_data
from support.byte_search import files_with
from support.curations import MODELS, dialogue, finished, run_one, source, write_models
from support.doubles.providers import ProviderServer, price_file
from support.hosted_runs import hurried

MODEL = "openai:gpt-test"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    """A provider that answers every question of a form with yes, and names no subtask that there is."""
    with ProviderServer(looks=2) as running:
        for name, value in running.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def paid_run(folder: Path, **settings: Any) -> Workspace:
    """Review three candidates with two references each, in two parts."""
    folder.mkdir(exist_ok=True)
    (folder / "prices.toml").write_text(price_file())
    workspace = Workspace(folder / "work")
    if not workspace.key_path.exists():
        composed(workspace.path, candidates(3, references=2), part=2)
    made = ReviewSettings(model=MODEL, samples=1, **settings)
    with hurried():
        run_one("review", workspace, made, prices=str(folder / "prices.toml"))
    return workspace


def test_batches_and_live_calls_read_the_same(tmp_path: Path, server: ProviderServer) -> None:
    reads: list[dict[str, Read]] = []
    for name, batch in (("live", False), ("batch", True)):
        before = len(server.charged())
        reads.append(reads_of(paid_run(tmp_path / name, batch=batch)))
        assert {charge.batch for charge in server.charged()[before:]} == {batch}
    assert reads[0] == reads[1]
    assert {read.reader for read in reads[0].values()} == {f"review:{MODEL}"}
    # The rubric's replies name no subtask: only the references are read.
    assert {len(read.passages) for read in reads[0].values()} == {2}
    findings = [finding for read in reads[0].values() for finding in read.findings]
    assert {finding.gate for finding in findings if not finding.unsure} == {
        "explicit_content",
        "minors",
        "personal_data",
    }
    # It names a harm of severity 0, and a danger that is none.
    assert {finding.gate for finding in findings if finding.unsure} == {
        "companion_harm",
        "crisis_care",
    }


def test_a_killed_review_asks_nothing_twice_and_reads_the_same(
    tmp_path: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = reads_of(paid_run(tmp_path / "whole"))
    assert len(whole) == 3
    calls = len(server.charged())
    with monkeypatch.context() as patch:
        patch.setattr(
            review_stage, "write_jsonl", lambda *_: 1 / 0
        )  # the replies are stored, the reviews are not
        with pytest.raises(ZeroDivisionError):
            paid_run(tmp_path / "killed")
    assert calls < len(server.charged()) < 2 * calls
    assert reads_of(paid_run(tmp_path / "killed")) == whole
    assert len(server.charged()) == 2 * calls


def test_what_was_read_of_an_erased_dialogue_is_gone(tmp_path: Path) -> None:
    write_models(tmp_path)
    raw = [dialogue(number, *TALKS[number], source="chat") for number in TALKS]
    (tmp_path / "raw.jsonl").write_text("".join(json.dumps(one) + "\n" for one in raw))
    spec = tmp_path / "curate.toml"
    spec.write_text(f'workspace = "work"\nprocesses = 1\n{source("chat", "raw.jsonl")}{MODELS}')
    workspace = curate(spec, ["gather", "anonymize", "safety", "dedup", "compose"])
    names = [record["id"] for record in workspace.stage("compose").records()]
    first = next(name for name in names if name.startswith("chat-000001"))
    harmful = review(subtask=first.partition(":")[2], in_reference=HARM)
    reviewer = tmp_path / "reviewer.jsonl"
    reviewer.write_text(
        json.dumps({"id": f"{first}/rubric", "text": harmful}) + "\n" + reviewer.read_text()
    )
    curate(spec)
    read = reads_of(workspace)[first]
    assert read.findings
    phrases = [str(HARM["harm"]), *read.passages]
    assert all(files_with(workspace.path, phrase) for phrase in phrases)
    erase(workspace, "chat-000001")
    curate(spec)
    assert [files_with(workspace.path, phrase) for phrase in phrases] == [[]] * len(phrases)
    assert set(reads_of(workspace)) == {
        name for name in names if not name.startswith("chat-000001")
    }


TALKS = {
    1: (
        "I was sad that the cinnamon porridge burnt this morning, of all mornings.",
        "What did you eat in its place?",
    ),
    2: (
        "The roof of our choir's room leaks over the piano again this week.",
        "Who has the key to the attic now?",
    ),
}


def earlier_review(subtask: str) -> dict[str, object]:
    """The review of a candidate as version 4 of the stage stored it."""
    scores = dict.fromkeys(
        ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit"), 5
    )
    rubric = {
        "scores": scores,
        "evidence": {},
        "fitting_subtask": subtask,
        "revision": "",
        "verdict": "accept",
    }
    decided = {"status": "accept", "reasons": [], "rubric": rubric}
    return {**decided, "chosen": 0, "margin": 0.0, "pairs": []}


def test_reviews_of_earlier_versions_are_shown_and_go_into_rounds_and_releases(
    tmp_path: Path,
) -> None:
    found = [
        Candidate(one.scenario, one.references, earlier_review(one.scenario.subtask))
        for one in candidates(3)
    ]
    records = [candidate.to_dict() for candidate in found]
    workspace = finished(tmp_path / "work", "review", records)
    assert len(read_items(str(workspace.path)).items) == 3
    assert [scenario_of_record(record, "").id for record in records] == [
        candidate.id for candidate in found
    ]
    assert found[0].scenario.reference in "\n".join(
        show(str(workspace.path / "review"), [found[0].id])
    )
    assert explain(workspace, found[0].id)


def test_a_review_of_an_earlier_version_says_how_it_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = candidates(2)
    with monkeypatch.context() as patch:
        patch.setattr(review_stage, "VERSION", 4)
        workspace, _ = run(tmp_path, found)
    settings = ReviewSettings(
        model=script(tmp_path / "replies.jsonl", found), audit=0.0, escalate=0.0
    )
    with pytest.raises(
        ConfigError, match=r"another version of its rule; .* again with --from-stage review"
    ):
        run_one("review", workspace, settings)


def test_the_estimate_of_a_run_counts_the_safety_questions() -> None:
    tokens = read_data(Path(review_stage.__file__).parents[1] / "call_tokens.toml")
    reviewer = Reviewer(ReviewSettings(model=MODEL), 0, Prompts.load(), bytes(32))
    (candidate,) = candidates(1, references=2)
    rubric = reviewer.rubric(candidate, candidate.scenario.reference)
    comparison = reviewer.comparison(candidate, (0, 1), "ab", 0)
    for name, request, most in (
        ("rubric", rubric, RUBRIC_TOKENS),
        ("comparison", comparison, PAIR_TOKENS),
    ):
        prompt, reply, longest = tokens[name]
        assert (longest, request.sampling.max_tokens) == (most, most)
        assert prompt_tokens(request) * 0.8 < prompt < prompt_tokens(request) * 1.5
        assert reply < longest
