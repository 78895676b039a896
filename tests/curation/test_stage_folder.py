"""A stage's folder: a part written again without some records is counted as if they had never been read."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.curation.outcomes import Kept, Rejected, dialogue_of
from h2htalk.curation.stage_folder import StageFolder, part_name

PART = part_name(0)


def candidate(name: str, task: str) -> dict[str, object]:
    return {"id": f"{name}:{task}", "provenance": {"dialogue": name}}


@pytest.fixture
def folder(tmp_path: Path) -> StageFolder:
    """Of dialogue a two candidates are kept and one is rejected, of b one is kept, and of c none."""
    folder = StageFolder(tmp_path / "compose")
    outcomes = [
        [Kept(candidate("a", "x"), ("crisis",)), Kept(candidate("a", "y")), Rejected("a:z", "contract")],
        [Kept(candidate("b", "x"), ("crisis",))],
        [Rejected("c:x", "contract"), Rejected("c:y", "licence")],
    ]
    folder.write(PART, outcomes, "compose")
    return folder


@pytest.mark.parametrize(
    ("gone", "numbers", "reasons", "tags"),
    [
        ("a", (2, 1, 1, 1, 0), {"contract": 1, "licence": 1}, {"crisis": 1}),
        ("b", (2, 1, 1, 2, 1), {"contract": 2, "licence": 1}, {"crisis": 1}),
        ("c", (2, 2, 0, 3, 1), {"contract": 1}, {"crisis": 2}),
    ],
)
def test_a_rewritten_part_is_counted_without_the_removed_records(
    folder: StageFolder,
    gone: str,
    numbers: tuple[int, ...],
    reasons: dict[str, int],
    tags: dict[str, int],
) -> None:
    folder.rewrite(PART, "compose", lambda record: dialogue_of(record) != gone, dialogue_of)
    counts = folder.counts(PART)
    assert (counts.read, counts.kept, counts.rejected, counts.written, counts.dropped) == numbers
    assert (counts.reasons, counts.tags) == (reasons, tags)
    assert not any(dialogue_of(record) == gone for record in (*folder.records(), *folder.records("rejected")))
