"""Reply folding: dialogues with one question become one dialogue with several replies and references."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compose_made import script
from curation_made import run_one
from dedup_made import dedup, deduplicated, dialogue, words, workspace_of

import h2htalk.curation.dedup.stage as module
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.history import explain
from h2htalk.curation.stages import ComposeSettings
from h2htalk.data.scenario import Dialogue, Turn

QUESTION = "I failed the exam in chemistry on Friday and cannot tell my mother."
REPLIES = (
    "Carrying that home alone is heavy. What do you fear she will say first?",
    "One exam is one Friday. Who else knows?",
    "You wanted so much to bring her good news. Shall we find the first sentence?",
)


def answers(**changes: Any) -> list[Dialogue]:
    made = [dialogue(f"q-{n:06}", QUESTION, reply) for n, reply in enumerate(REPLIES, 1)]
    return [replace(one, **changes) for one in made]


def test_the_best_dialogue_gets_the_replies_of_the_others(tmp_path: Path) -> None:
    made = answers()
    made[1] = replace(made[1], licence="CC-BY-4.0", provenance={"source": "q", "row": 2})
    made[0] = replace(made[0], messages=(Turn("user", QUESTION.upper() + "!"), made[0].messages[1]))
    kept, rejected = deduplicated(tmp_path, [*made, dialogue("other", words("o", 15), words("p", 15))])
    assert set(kept) == {"q-000003", "other"}  # the longest reply
    assert kept["q-000003"]["metadata"]["alternatives"] == [
        {
            "id": "q-000001",
            "text": REPLIES[0],
            "provenance": {"source": "made", "dialogue": "q-000001"},
            "licence": "CC0-1.0",
        },
        {
            "id": "q-000002",
            "text": REPLIES[1],
            "provenance": {"source": "q", "row": 2, "dialogue": "q-000002"},
            "licence": "CC-BY-4.0",
        },
    ]
    assert kept["q-000003"]["licence"] == "CC-BY-4.0"
    assert kept["q-000003"]["provenance"]["merged"] == ["q-000001", "q-000002"]
    same = {"of": "q-000003", "on": "inputs", "similarity": 1.0}
    assert [(r["reason"], r["evidence"]) for r in rejected.values()] == [("folded", same)] * 2
    assert kept["other"]["metadata"] == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": (Turn("user", QUESTION), Turn("companion", REPLIES[1].replace("knows", "know")))},
        {"metadata": {"safety": {"action": "review"}}},
        {"metadata": {"safety": {"risk": "high"}}},
        {"metadata": {"safety": {"tags": ["crisis.grief"]}}},
        {"licence": "CC-BY-ND-4.0"},
        {"licence": "no such licence"},
        {"messages": (Turn("user", QUESTION + " Help!"), Turn("companion", REPLIES[0]))},
    ],
    ids=[
        "reply of another",
        "undecided",
        "more at risk",
        "other tags",
        "no mixture",
        "unknown",
        "other words",
    ],
)
def test_a_dialogue_that_cannot_be_folded_is_a_duplicate(tmp_path: Path, changed: dict[str, Any]) -> None:
    made = answers()
    made[0] = replace(made[0], **changed)
    kept, rejected = deduplicated(tmp_path, made)
    assert sorted(line["reason"].removeprefix("near_") for line in rejected.values()) == [
        "duplicate",
        "folded",
    ]
    assert [len(record["metadata"]["alternatives"]) for record in kept.values()] == [1]


def test_one_licence_for_all_replies_stays(tmp_path: Path) -> None:
    """The table gives CC BY 4.0 for a mixture of MIT and MIT."""
    kept, _ = deduplicated(tmp_path, answers(licence="MIT"))
    assert [record["licence"] for record in kept.values()] == ["MIT"]


def test_longer_dialogues_and_those_that_the_companion_begins_are_not_folded(tmp_path: Path) -> None:
    made = [dialogue(f"t{n}", QUESTION, words(n, 12), words("again", 12), words(-n, 12) + ".") for n in (1, 2)]
    turned = [dialogue(f"c{n}", words("said", 15), words(f"c{n}", 15)) for n in (1, 2)]
    roles = ("companion", "user")
    turned = [
        replace(d, messages=tuple(Turn(role, t.content) for role, t in zip(roles, d.messages[::-1], strict=True)))
        for d in turned
    ]
    kept, rejected = deduplicated(tmp_path, made + turned)
    assert [line["reason"] for line in rejected.values()] == ["duplicate"] * 2
    assert not [record for record in kept.values() if "alternatives" in record["metadata"]]


def test_the_best_replies_are_folded_up_to_the_maximum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer reply is better."""
    monkeypatch.setattr(module, "MOST_REPLIES", 5)
    made = [dialogue(f"a{n:02}", QUESTION, words(n, 30)[: 40 + n] + ".") for n in range(12)]
    kept, rejected = deduplicated(tmp_path, made)
    folded = [alternative["id"] for alternative in kept["a11"]["metadata"]["alternatives"]]
    assert folded == ["a10", "a09", "a08", "a07", "a06"]
    assert [rejected[f"a{n:02}"]["reason"] for n in range(6)] == ["duplicate"] * 6


# --- Further references -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("references", "origins"),
    [(1, ["original", "answer:q-000001"]), (2, ["original", "answer:q-000001", "answer:q-000002"])],
)
def test_folded_replies_become_references(tmp_path: Path, references: int, origins: list[str]) -> None:
    made = answers()
    made[0] = replace(made[0], licence="CC-BY-4.0")
    stays = dialogue(
        "q-000008",
        "My old violin went out of tune in the cold rain on the way home today.",
        "Did it still sing a little for you when you took it out and played?",
    )
    workspace = workspace_of(tmp_path, [*made, stays])
    dedup(workspace)
    model = script(tmp_path / "composer.jsonl", {})
    run_one("compose", workspace, ComposeSettings(model, references=references, subtasks=("dialogue_base",)))
    candidate, _ = (Candidate.from_dict(r) for r in workspace.stage("compose").records())
    assert [r.origin for r in candidate.references] == origins
    licensed = {"source": "made", "dialogue": "q-000001", "licence": "CC-BY-4.0"}
    assert candidate.references[1].provenance == licensed
    assert candidate.scenario.licence == "CC-BY-4.0"
    story = explain(workspace, "q-000001")
    assert ("dedup", "rejected", "folded") in [(e.stage, e.what, e.details.get("reason")) for e in story]
