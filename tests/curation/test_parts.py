"""A stage's folder: what it counts, what it hands on, what is counted anew after somebody was taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.outcomes import Kept, Rejected, dialogue_of
from h2htalk.curation.parts import StageFolder, part_name
from h2htalk.data.files import write_jsonl
from h2htalk.errors import DataError

PART = part_name(0)


def candidate(name: str, task: str) -> dict[str, object]:
    return {"id": f"{name}:{task}", "provenance": {"dialogue": name}}


@pytest.fixture
def folder(tmp_path: Path) -> StageFolder:
    """Of dialogue a two candidates went on and one was lost, of b one went on, and nothing of c."""
    folder = StageFolder(tmp_path / "05-composed")
    outcomes = [
        [Kept(candidate("a", "x"), ("crisis",)), Kept(candidate("a", "y")), Rejected("a:z", "contract")],
        [Kept(candidate("b", "x"), ("crisis",))],
        [Rejected("c:x", "contract"), Rejected("c:y", "licence")],
    ]
    folder.write(PART, outcomes, "compose")
    return folder


def test_counting_anew_changes_nothing_where_nobody_went(folder: StageFolder) -> None:
    before = folder.counts(PART)
    assert (before.read, before.kept, before.rejected, before.written, before.dropped) == (3, 2, 1, 3, 1)
    folder.recount(PART, dialogue_of)
    assert folder.counts(PART) == before


@pytest.mark.parametrize(
    ("gone", "numbers", "reasons", "tags"),
    [
        ("a", (2, 1, 1, 1, 0), {"contract": 1, "licence": 1}, {"crisis": 1}),
        ("b", (2, 1, 1, 2, 1), {"contract": 2, "licence": 1}, {"crisis": 1}),
        ("c", (2, 2, 0, 3, 1), {"contract": 1}, {"crisis": 2}),
    ],
)
def test_counted_anew_as_if_somebody_had_never_come(
    folder: StageFolder,
    gone: str,
    numbers: tuple[int, ...],
    reasons: dict[str, int],
    tags: dict[str, int],
) -> None:
    for kind in ("kept", "rejected"):
        write_jsonl(
            folder.file(kind, PART), [r for r in folder.part_records(PART, kind) if dialogue_of(r) != gone]
        )
    folder.recount(PART, dialogue_of)
    counts = folder.counts(PART)
    assert (counts.read, counts.kept, counts.rejected, counts.written, counts.dropped) == numbers
    assert (counts.reasons, counts.tags) == (reasons, tags)


def test_a_part_hands_on_what_it_wrote(folder: StageFolder) -> None:
    assert [record["id"] for record in folder.handed_on(PART)] == ["a:x", "a:y", "b:x"]


@pytest.mark.parametrize("lines", [0, 2, 4])
def test_a_part_that_holds_another_number_of_lines_is_said(folder: StageFolder, lines: int) -> None:
    path = folder.file("kept", PART)
    whole = [*folder.part_records(PART), candidate("d", "x")]
    write_jsonl(path, whole[:lines])
    with pytest.raises(DataError, match=f"part-00000.jsonl: has {lines} lines, but 3 were written"):
        folder.handed_on(PART)
    path.unlink()
    with pytest.raises(DataError, match="has 0 lines, but 3 were written"):
        folder.handed_on(PART)
