"""Dedup: duplicates and items of splits are removed, in any order and after any kill."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compose_made import script
from curation_made import all_files, run_one
from dedup_made import dedup, deduplicated, dialogue, edited, words, workspace_of

import h2htalk.curation.dedup.stage as module
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.show import explain
from h2htalk.curation.stages import ComposeSettings
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError


def one(n, share=0.0, name=None, **more):
    """Dialogue number n, or a copy of it."""
    texts = [edited(words(f"{n} {place}", 15), share) for place in range(4)]
    return dialogue(name or f"d{n}", *texts[:3], texts[3] + ".", **more)


def test_which_of_two_alike_stays(tmp_path) -> None:
    short = dialogue("a", words("0 0", 15), words("0 1", 15))
    kept, rejected = deduplicated(tmp_path / "a", [one(1), short, one(0, name="z"), one(0, name="y"), one(2)])
    assert set(kept) == {"d1", "d2", "y", "a"}  # a has only the opening
    assert rejected["z"]["reason"] == "duplicate"
    assert rejected["z"]["evidence"] == {"of": "y", "on": "both", "similarity": 1.0}
    assert rejected["z"]["record"]["messages"] == one(0).to_dict()["messages"]
    assert kept["y"]["provenance"] == {"source": "made", "merged": ["z"]}
    assert "merged" not in kept["d1"]["provenance"]
    # A near duplicate has its similarity.
    kept, rejected = deduplicated(tmp_path / "b", [one(0), one(0, 0.1, "copy"), one(1)])
    assert set(kept) == {"copy", "d1"}  # the smaller id: copy < d0
    assert rejected["d0"]["reason"] == "near_duplicate"
    assert rejected["d0"]["evidence"]["of"] == "copy"
    assert 0.88 < rejected["d0"]["evidence"]["similarity"] < 0.95
    # Languages are never compared.
    texts = (words("q", 15), words("r", 15))
    kept, _ = deduplicated(tmp_path / "c", [dialogue("a", *texts), dialogue("b", *texts, language="zh")])
    assert set(kept) == {"a", "b"}
    # The table gives CC BY 4.0 for a mixture of MIT and MIT.
    kept, _ = deduplicated(tmp_path / "d", answers(licence="MIT"))
    assert [record["licence"] for record in kept.values()] == ["MIT"]


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_the_same_reply_to_different_inputs_is_no_duplicate(tmp_path, share):
    reply = words("reply", 40)
    made = [dialogue(f"d{n:02}", words(f"m{n}", 15), edited(reply, share, n)) for n in range(40)]
    kept, rejected = deduplicated(tmp_path, made)
    assert (len(kept), rejected) == (40, {})


def test_a_chain_of_small_changes_is_not_one_cluster(tmp_path):
    steps = [words(f"part {n}", 6) for n in range(30)]
    chain = [dialogue(f"c{n:02}", " ".join(steps[n : n + 12]), words(f"reply {n}", 30) + ".") for n in range(18)]
    kept, rejected = deduplicated(tmp_path, chain)
    assert len(kept) > 2
    for line in rejected.values():
        assert line["evidence"]["of"] in kept
        assert line["evidence"]["similarity"] >= 0.7


def test_dialogues_with_items_of_a_split_are_removed(tmp_path):
    """A split in a folder is named by its own name, not by its path."""
    folder = tmp_path / "mine"
    export_split(load_split("mini@1").select("en", ["dialogue_base"]), folder, "jsonl")
    item = next(s for s in load_split("mini@1").scenarios if s.id == "mini-en-dialogue-base-01")
    held = dialogue("held", item.turns[0].content, words("r", 15))
    with pytest.raises(ConfigError, match="two splits have the same name"):
        deduplicated(tmp_path, [held], splits=("mini@1", str(folder)))
    header = (folder / "split.toml").read_text(encoding="utf-8")
    (folder / "split.toml").write_text(header.replace('"mini"', '"ours"'), encoding="utf-8")
    kept, rejected = deduplicated(tmp_path, [held, one(0)], splits=(str(folder),))
    assert set(kept) == {"d0"}
    assert rejected["held"]["reason"] == "contaminated"
    evidence = {"of": item.id, "split": "ours", "on": "inputs", "similarity": 1.0}
    assert rejected["held"]["evidence"] == evidence


HOSTILE = ["?", "a", "好", "🙂🙂🙂", "\0", "\ud800", "\u202e", "\u200b", ".", "x" * 2_000_000, "a b " * 500_000]


def test_hostile_texts_are_compared(tmp_path):
    made = [
        dialogue(f"h{n}{language}", text, text, language=language)
        for n, text in enumerate(HOSTILE)
        for language in (("en", "zh") if len(text) < 9 else ("zh",) if " " in text else ("en",))
    ]
    again = [dialogue("again", "🙂🙂🙂", "🙂🙂🙂")]
    kept, rejected = deduplicated(tmp_path, made + again)
    assert len(kept) + len(rejected) == len(made) + 1
    assert rejected["h3en"]["evidence"]["of"] == "again"
    assert {"h0en", "h1en", "h2zh", "h9en", "h10zh"} <= set(kept)


def test_a_record_that_is_no_dialogue_is_rejected(tmp_path):
    workspace = workspace_of(tmp_path, [one(0), one(1)])
    path = workspace.stage("safety").file("kept", "part-00000")
    path.write_text(path.read_text().replace('"role":"user"', '"role":"narrator"', 1))
    counts = dedup(workspace)
    assert counts.reasons == {"unreadable": 1}
    assert counts.kept == 1


def mixed(seed=0):
    made = [one(n) for n in range(20)]
    made += [one(n, 0.1, f"near{n}") for n in range(0, 20, 2)] + [one(n, 0, f"same{n}") for n in range(5)]
    made += [one(n, 0.15, f"more{n}") for n in range(0, 20, 5)]
    made += [dialogue(f"q{n}", words("question", 15), words(("reply", n), 12) + ".") for n in range(4)]
    random.Random(seed).shuffle(made)
    return made


def test_the_order_of_rows_and_parts_changes_no_record(tmp_path):
    first = deduplicated(tmp_path / "a", mixed(1), part=4)
    again = deduplicated(tmp_path / "b", mixed(2), part=7)
    assert first == again
    assert len(first[0]) == 21
    assert sum(len(record["metadata"].get("alternatives", [])) for record in first[0].values()) == 3
    left = {path.name for path in (tmp_path / "a" / "dedup").iterdir()}
    assert left == {"kept", "rejected", "parts", "stage.json", "summary.json"}


def test_two_processes_and_a_run_after_a_kill_give_the_same_bytes(tmp_path):
    """tests/curation/test_kills.py kills every stage."""
    for name, processes in (("one", 1), ("two", 2)):
        workspace = workspace_of(tmp_path / name, mixed())
        dedup(workspace, processes=processes)
    whole = all_files(tmp_path / "one" / "dedup")
    folder = tmp_path / "two" / "dedup"
    assert all_files(folder) == whole
    for name in ("summary.json", "parts/part-00001.json", "kept/part-00001.jsonl"):
        (folder / name).unlink()
    dedup(workspace)
    assert all_files(folder) == whole


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
    first, second = {"source": "made", "dialogue": "q-000001"}, {"source": "q", "row": 2, "dialogue": "q-000002"}
    assert kept["q-000003"]["metadata"]["alternatives"] == [
        {"id": "q-000001", "text": REPLIES[0], "provenance": first, "licence": "CC0-1.0"},
        {"id": "q-000002", "text": REPLIES[1], "provenance": second, "licence": "CC-BY-4.0"},
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
    ids=["reply of another", "undecided", "more at risk", "other tags", "no mixture", "unknown", "other words"],
)
def test_a_dialogue_that_cannot_be_folded_is_a_duplicate(tmp_path: Path, changed: dict[str, Any]) -> None:
    made = answers()
    made[0] = replace(made[0], **changed)
    kept, rejected = deduplicated(tmp_path, made)
    assert sorted(line["reason"].removeprefix("near_") for line in rejected.values()) == ["duplicate", "folded"]
    assert [len(record["metadata"]["alternatives"]) for record in kept.values()] == [1]


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


def test_folded_replies_become_references(tmp_path: Path) -> None:
    made = answers()
    made[0] = replace(made[0], licence="CC-BY-4.0")
    stays = dialogue("q-000008", "My old violin went out of tune in the cold rain today.", "Did it still sing for you?")
    workspace = workspace_of(tmp_path, [*made, stays])
    dedup(workspace)
    model = script(tmp_path / "composer.jsonl", {})
    run_one("compose", workspace, ComposeSettings(model, references=2, subtasks=("dialogue_base",)))
    candidate, _ = (Candidate.from_dict(r) for r in workspace.stage("compose").records())
    assert [r.origin for r in candidate.references] == ["original", "answer:q-000001", "answer:q-000002"]
    licensed = {"source": "made", "dialogue": "q-000001", "licence": "CC-BY-4.0"}
    assert candidate.references[1].provenance == licensed
    assert candidate.scenario.licence == "CC-BY-4.0"
    story = explain(workspace, "q-000001")
    assert ("dedup", "rejected", "folded") in [(e.stage, e.what, e.details.get("reason")) for e in story]
