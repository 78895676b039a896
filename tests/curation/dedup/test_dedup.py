"""Dedup: duplicates and items of splits are removed, in any order and after any kill."""

from __future__ import annotations

import random

import pytest
from curation_made import all_files
from dedup_made import dedup, deduplicated, dialogue, edited, words, workspace_of

from h2htalk.data.split_output import export_split
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError

REVIEW = {"safety": {"action": "review", "tags": []}}


def one(n, share=0.0, name=None, **more):
    """Dialogue number n, or a copy of it."""
    texts = [edited(words(f"{n} {place}", 15), share) for place in range(4)]
    return dialogue(name or f"d{n}", *texts[:3], texts[3] + ".", **more)


def test_the_better_dialogue_stays_and_names_its_duplicates(tmp_path):
    short = dialogue("a", words("0 0", 15), words("0 1", 15))
    kept, rejected = deduplicated(tmp_path, [one(1), short, one(0, name="z"), one(0, name="y"), one(2)])
    assert set(kept) == {"d1", "d2", "y", "a"}  # a has only the opening
    assert rejected["z"]["reason"] == "duplicate"
    assert rejected["z"]["evidence"] == {"of": "y", "on": "both", "similarity": 1.0}
    assert rejected["z"]["record"]["messages"] == one(0).to_dict()["messages"]
    assert kept["y"]["provenance"] == {"source": "made", "merged": ["z"]}
    assert "merged" not in kept["d1"]["provenance"]


def test_a_near_duplicate_has_its_similarity(tmp_path):
    kept, rejected = deduplicated(tmp_path, [one(0), one(0, 0.1, "copy"), one(1)])
    assert set(kept) == {"copy", "d1"}  # the smaller id: copy < d0
    assert rejected["d0"]["reason"] == "near_duplicate"
    assert rejected["d0"]["evidence"]["of"] == "copy"
    assert 0.88 < rejected["d0"]["evidence"]["similarity"] < 0.95


def test_a_dialogue_that_safety_decided_is_better(tmp_path):
    kept, _ = deduplicated(tmp_path, [one(0, name="a", metadata=REVIEW), one(0, name="b")])
    assert set(kept) == {"b"}


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


def test_languages_are_never_compared(tmp_path):
    texts = (words("q", 15), words("r", 15))
    kept, _ = deduplicated(tmp_path, [dialogue("a", *texts), dialogue("b", *texts, language="zh")])
    assert set(kept) == {"a", "b"}


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


HOSTILE = [
    "?",
    "a",
    "好",
    "🙂🙂🙂",
    "\0",
    "\ud800",
    "\u202e",
    "\u200b",
    ".",
    "x" * 2_000_000,
    "a b " * 500_000,
]


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
