"""`split info`: what a split holds, beside Table 1."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from releases_made import case, make_release

from h2htalk.data.splits import describe_split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError


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


def test_several_and_private_references_are_counted() -> None:
    split = load_split("mini")
    assert "references:" not in describe_split(split)
    first, second, *rest = split.scenarios
    changed = (replace(first, references=("One.", "Two.")), replace(second, references=()), *rest)
    text = describe_split(replace(split, scenarios=changed, references_sha256="0a" * 32))
    assert f"\nthe file of the private references has the SHA-256 {'0a' * 32}\n" in text
    assert "\nreferences: 1 of the scenarios have several, 1 have none (private)\n" in text


def test_a_split_of_one_language_has_one_column() -> None:
    text = describe_split(load_split("mini").select("zh", ["dialogue_base"]))
    assert f"{'subtask':<28}     zh   Table 1\n" in text


def test_cases_are_counted_by_kind_and_language_and_not_evaluated(tmp_path: Path) -> None:
    folder = make_release(tmp_path / "release", cases=[case(1), case(2, kind="self_harm"), case(1, "zh")])
    split = load_split(f"{folder}#high_risk")
    text = describe_split(split)
    assert text.startswith("made-high_risk-test 1.0.0: 3 cases, CC-BY-4.0\n")
    rows = [line.split() for line in text.partition("\n\n")[2].splitlines()]
    assert rows == [["kind", "en", "zh"], ["grief", "1", "1"], ["self_harm", "1", "0"], ["total", "2", "1"]]
    with pytest.raises(ConfigError, match="holds the cases of a study, which cannot be evaluated yet"):
        split.select()
