"""`split info`: what a split holds, beside Table 1."""

from __future__ import annotations

from collections import Counter

from h2htalk.data.splits import describe_split, load_split
from h2htalk.data.subtasks import SUBTASKS


def test_counts_stand_by_subtask_and_language_beside_table_1() -> None:
    split = load_split("mini")
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    rows = {line.split()[0]: line.split()[1:] for line in describe_split(split).splitlines() if line.strip()}
    assert rows["subtask"] == ["en", "zh", "Table", "1"]
    for name, subtask in SUBTASKS.items():
        assert rows[name] == [str(counts[name, "en"]), str(counts[name, "zh"]), f"{subtask.count:,}"]
    totals = Counter(s.language for s in split.scenarios)
    assert rows["total"] == [str(totals["en"]), str(totals["zh"]), "4,650"]


def test_name_licence_fingerprint_and_personas_are_said() -> None:
    split = load_split("mini")
    text = describe_split(split)
    assert text.startswith(f"mini 1: {len(split.scenarios)} scenarios, CC-BY-4.0\n")
    assert f"fingerprint {split.fingerprint}; personas nora, ren\n" in text


def test_tags_are_counted_most_frequent_first() -> None:
    split = load_split("mini").select("en", limit=40)
    text = describe_split(split)
    for tag in ("emotion", "complexity", "interaction", "risk"):
        (line,) = [line for line in text.splitlines() if line.startswith(f"{tag}: ")]
        shown = {value: int(n) for value, n in (part.rsplit(" ", 1) for part in line[len(tag) + 2 :].split(", "))}
        assert shown == Counter(getattr(s.tags, tag) for s in split.scenarios)
        assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_a_split_of_one_language_has_one_column() -> None:
    text = describe_split(load_split("mini").select("zh", ["dialogue_base"]))
    assert f"{'subtask':<28}     zh   Table 1\n" in text
