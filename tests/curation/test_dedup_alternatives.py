"""Several answers to one question: one dialogue with the others' replies, further references, out again together."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dedup_made import deduplicated, dialogue, edited, lines, spec_of, words, workspace_of

import h2htalk.curation.dedup_alternatives as module
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.compose import make_stage
from h2htalk.curation.dedup import run_dedup
from h2htalk.curation.spec import ComposeSettings
from h2htalk.curation.stages import run_stage
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue, Turn

QUESTION = "I failed the exam in chemistry on Friday and cannot tell my mother."
REPLIES = (
    "Carrying that home alone is heavy. What do you fear she will say first?",
    "One exam is one Friday. Who else knows?",
    "You wanted so much to bring her good news. Shall we find the first sentence?",
)


def answer(name: str, reply: str, question: str = QUESTION, **changes: Any) -> Dialogue:
    return replace(dialogue(name, question, reply), **changes)


def answers(**changes: Any) -> list[Dialogue]:
    return [answer(f"q-{n:06}", reply, **changes) for n, reply in enumerate(REPLIES, 1)]


def test_the_better_stays_and_carries_what_the_others_replied(tmp_path: Path) -> None:
    made = answers()
    made[1] = replace(
        made[1], licence="CC-BY-4.0", provenance={"source": "q", "row": 2, "question": "q-q0001"}
    )
    kept, rejected = deduplicated(tmp_path, [*made, dialogue("other", words("o", 15), words("p", 15))])
    assert set(kept) == {"q-000003", "other"}  # the longest reply
    alternatives = kept["q-000003"]["metadata"]["alternatives"]
    assert [(a["id"], a["text"]) for a in alternatives] == [
        ("q-000001", REPLIES[0]),
        ("q-000002", REPLIES[1]),
    ]
    assert (alternatives[1]["licence"], kept["q-000003"]["licence"]) == ("CC-BY-4.0", "CC-BY-4.0")
    assert alternatives[1]["provenance"] == {
        "source": "q",
        "row": 2,
        "question": "q-q0001",
        "dialogue": "q-000002",
    }
    assert kept["q-000003"]["provenance"]["merged"] == ["q-000001", "q-000002"]
    said = {"of": "q-000003", "on": "inputs", "similarity": 1.0}
    assert [(r["reason"], r["evidence"]) for r in rejected.values()] == [("folded", said)] * 2
    assert kept["other"]["metadata"] == {}


def test_counts_add_up(tmp_path: Path) -> None:
    workspace = workspace_of(tmp_path, answers())
    counts = run_dedup(spec_of(workspace), workspace, b"", processes=1)
    assert (counts.read, counts.kept, counts.rejected) == (3, 1, 2)
    assert (counts.reasons, counts.tags) == ({"folded": 2}, {"answers": 1})


def test_nearly_the_same_words_are_the_same_question(tmp_path: Path) -> None:
    question = words("q", 30)
    made = [answer("a", "Yes.", question), answer("b", words("r", 20) + ".", edited(question, 0.03))]
    kept, rejected = deduplicated(tmp_path, made)
    assert [a["text"] for a in kept["b"]["metadata"]["alternatives"]] == ["Yes."]
    assert rejected["a"]["reason"] == "folded"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"messages": (Turn("user", QUESTION), Turn("companion", REPLIES[2].replace("find", "seek")))}, None),
        ({"metadata": {"safety": {"action": "review"}}}, "safety"),
        ({"metadata": {"safety": {"action": "keep_tag"}}}, "safety"),
        ({"metadata": {"safety": {"risk": "high"}}}, "safety"),
        ({"metadata": {"safety": {"tags": ["crisis.grief"]}}}, "safety"),
        ({"licence": "CC-BY-ND-4.0"}, "licence"),
        ({"licence": "no such licence"}, "licence"),
    ],
    ids=["the same reply", "undecided", "in crisis", "more at risk", "other tags", "no mixture", "unknown"],
)
def test_what_cannot_stand_beside_it_is_a_duplicate(
    tmp_path: Path, changed: dict[str, Any], why: str | None
) -> None:
    made = answers()
    made[0] = replace(made[0], **changed)
    kept, rejected = deduplicated(tmp_path, made)
    (stays,) = kept
    assert {rejected[name]["reason"] for name in rejected} == {
        "folded",
        "duplicate" if why else "near_duplicate",
    }
    refused = next(line for line in rejected.values() if line["reason"] != "folded")
    assert refused["evidence"].get("answer") == why
    assert len(kept[stays]["metadata"]["alternatives"]) == 1


def test_a_reply_given_twice_is_carried_once(tmp_path: Path) -> None:
    made = [*answers(), answer("q-000009", REPLIES[0].replace("heavy", "heavier"))]
    kept, rejected = deduplicated(tmp_path, made)
    assert len(kept["q-000003"]["metadata"]["alternatives"]) == 2
    twice = [line for line in rejected.values() if line["evidence"].get("answer") == "reply"]
    assert [line["reason"] for line in twice] == ["duplicate"]


def test_one_licence_for_all_stays_what_it_is(tmp_path: Path) -> None:
    """The mixture of MIT and MIT is CC BY 4.0 by the table of licences."""
    kept, _ = deduplicated(tmp_path, answers(licence="MIT"))
    assert [record["licence"] for record in kept.values()] == ["MIT"]


@pytest.mark.parametrize(
    ("language", "questions", "replies"),
    [
        (
            "en",
            ("My brother Tobias sold the piano that our mother played every evening.",) * 2,
            (
                "He sold it, and the evenings went with it. Which song is missing most of all?",
                "Tobias did? Tell me.",
            ),
        ),
        (
            "zh",
            ("我哥哥林远把妈妈每天晚上弹的那架旧钢琴卖给了楼下的邻居。",) * 2,
            ("琴声一下子没有了，夜里一定空得很。你最想再听到哪一首曲子？", "林远怎么会这样？"),
        ),
    ],
)
def test_a_reply_that_names_whom_only_its_own_question_names_is_not_carried(
    tmp_path: Path, language: Any, questions: tuple[str, str], replies: tuple[str, str]
) -> None:
    """Surrogates differ from dialogue to dialogue: `Tobias did?` answers nobody who asked about Julian."""
    name, other = ("Tobias", "Julian") if language == "en" else ("林远", "高飞")
    first = questions[0].replace(name, other)
    made = [
        replace(dialogue("a", first, replies[0], language=language)),
        replace(dialogue("b", questions[1], replies[1], language=language)),
    ]
    kept, rejected = deduplicated(tmp_path, made)
    assert "alternatives" not in kept["a"]["metadata"]
    assert rejected["b"]["evidence"]["answer"] == "words"
    made[0] = dialogue("a", questions[0], replies[0], language=language)
    kept, _ = deduplicated(tmp_path / "same", made)
    assert len(kept["a"]["metadata"]["alternatives"]) == 1


def test_of_longer_talks_nothing_is_carried(tmp_path: Path) -> None:
    made = [
        dialogue(f"t{n}", QUESTION, words(n, 12), words("again", 12), words(-n, 12) + ".") for n in (1, 2)
    ]
    turned = [dialogue(f"c{n}", words(f"c{n}", 15), words("said", 15)) for n in (1, 2)]
    turned = [
        replace(d, messages=(Turn("companion", d.messages[0].content), Turn("user", d.messages[1].content)))
        for d in turned
    ]
    kept, rejected = deduplicated(tmp_path, made + turned)
    assert {line["reason"] for line in rejected.values()} == {"duplicate"}
    assert {name[0]: line["evidence"].get("answer") for name, line in rejected.items()} == {
        "t": None,
        "c": "order",
    }
    assert not [record for record in kept.values() if "alternatives" in record["metadata"]]


def test_a_question_that_everybody_answers_carries_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longer the reply, the better; each is given three times, a little longer."""
    monkeypatch.setattr(module, "MOST_TRIED", 12)
    replies = [words(f"reply {n // 3 * 3}", 30)[: 40 + n] + "." for n in range(60)]
    kept, rejected = deduplicated(tmp_path, [answer(f"a{n:03}", reply) for n, reply in enumerate(replies)])
    assert set(kept) == {"a059"}
    carried = [alternative["id"] for alternative in kept["a059"]["metadata"]["alternatives"]]
    assert carried == ["a056", "a053", "a050", "a047"]
    why = {name: line["evidence"].get("answer", line["reason"]) for name, line in sorted(rejected.items())}
    tried = ["reply", "reply", "folded"] * 4
    assert list(why.values()) == [*["many"] * 45, *tried, "near_duplicate", "near_duplicate"]


def test_no_more_are_carried_than_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FOLDED", 5)
    kept, rejected = deduplicated(
        tmp_path, [answer(f"a{n:02}", words(n, 30)[: 40 + n] + ".") for n in range(12)]
    )
    carried = [alternative["id"] for alternative in kept["a11"]["metadata"]["alternatives"]]
    assert carried == ["a10", "a09", "a08", "a07", "a06"]
    assert [rejected[f"a{n:02}"]["evidence"]["answer"] for n in range(6)] == ["many"] * 6


@pytest.mark.parametrize(("size", "told"), [(module.LONGEST, "folded"), (module.LONGEST + 1, "long")])
def test_an_answer_that_is_too_long_is_not_carried(tmp_path: Path, size: int, told: str) -> None:
    text = words("long", 2000)
    stays = answer("stays", text[-module.LONGEST - 10 :] + ".")
    _, rejected = deduplicated(tmp_path, [stays, answer("long", text[: size - 1] + ".")])
    assert rejected["long"]["evidence"].get("answer", rejected["long"]["reason"]) == told


@pytest.mark.parametrize("first", ["stays", "goes"])
def test_where_the_companion_begins_nothing_is_carried(tmp_path: Path, first: str) -> None:
    """None of them is whole, and so the longer reply is the better."""
    made = {"stays": answer("stays", words("a", 30)), "goes": answer("goes", words("b", 20))}
    made[first] = replace(made[first], messages=made[first].messages[::-1])
    kept, rejected = deduplicated(tmp_path, list(made.values()))
    assert rejected["goes"]["evidence"]["answer"] == "order"
    assert "alternatives" not in kept["stays"]["metadata"]


def many(seed: int = 0) -> list[Dialogue]:
    made = [
        answer(f"q{n:02}-{m}", f"{words(f'{n} {m}', 12)}.", words(n, 15)) for n in range(12) for m in range(4)
    ]
    random.Random(seed).shuffle(made)
    return made


def test_order_and_parts_change_nothing(tmp_path: Path) -> None:
    first = deduplicated(tmp_path / "a", many(1), part=4)
    assert deduplicated(tmp_path / "b", many(2), part=7) == first
    assert len(first[0]) == 12
    assert all(len(record["metadata"]["alternatives"]) == 3 for record in first[0].values())


@pytest.mark.parametrize("stop", ["_sort_out", "_reduced", "write_jsonl"])
def test_stopped_in_the_middle_of_it_it_ends_with_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    whole = deduplicated(tmp_path / "whole", many())
    workspace = workspace_of(tmp_path / "stopped", many())
    real, calls = getattr(module, stop), []

    def stopping(*args: object) -> object:
        found = real(*args)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(module, stop, stopping)
    with pytest.raises(KeyboardInterrupt):
        run_dedup(spec_of(workspace), workspace, b"", processes=1)
    monkeypatch.undo()
    run_dedup(spec_of(workspace), workspace, b"", processes=2)
    assert (lines(workspace.stage("dedup"), "kept"), lines(workspace.stage("dedup"), "rejected")) == whole
    assert not (workspace.stage("dedup").path / "work").exists()


# --- Further references -------------------------------------------------------------------------------------------


def composed(
    folder: Path, made: list[Dialogue], references: int = 1
) -> tuple[Workspace, dict[str, Candidate]]:
    workspace = workspace_of(folder, made)
    workspace.open_key()
    spec = spec_of(workspace)
    run_dedup(spec, workspace, b"", processes=1)
    spec = replace(spec, compose=ComposeSettings(references=references, subtasks=("dialogue_base",)))
    run_stage(make_stage(spec, workspace, b"k" * 32), workspace, processes=1)
    found = {r["id"]: Candidate.from_dict(r) for r in workspace.stage("compose").records()}
    return workspace, found


@pytest.mark.parametrize(
    ("references", "origins"),
    [(1, ["original", "answer:q-000001"]), (2, ["original", "answer:q-000001", "answer:q-000002"])],
)
def test_other_answers_become_references(tmp_path: Path, references: int, origins: list[str]) -> None:
    made = answers()
    made[0] = replace(made[0], licence="CC-BY-4.0")
    _, found = composed(tmp_path, made, references)
    (candidate,) = found.values()
    assert [r.origin for r in candidate.references] == origins
    assert candidate.references[1].provenance == {
        "source": "made",
        "dialogue": "q-000001",
        "licence": "CC-BY-4.0",
    }
    assert candidate.scenario.licence == "CC-BY-4.0"
    assert Candidate.from_dict(candidate.to_dict()) == candidate


def test_an_answer_that_keeps_the_contract_makes_a_candidate_where_the_better_reply_does_not(
    tmp_path: Path,
) -> None:
    long = answer("q-000009", "One thing first. Then another. And a third one. Then rest. " * 3)
    workspace, found = composed(tmp_path, [*answers()[:2], long], references=3)
    (candidate,) = found.values()
    assert candidate.id == "q-000009:dialogue_base"
    assert [r.origin for r in candidate.references] == ["answer:q-000001", "answer:q-000002"]
    assert candidate.scenario.reference == REPLIES[0]
    (audit,) = workspace.stage("compose").records("audit")
    assert [lost["origin"] for lost in audit["lost"]] == ["original"]
