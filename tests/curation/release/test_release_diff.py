"""What changed from one release to another, and why."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from card_made import made_content, make_card
from releases_made import case, scenario

from h2htalk.curation.release.content import diff_releases
from h2htalk.curation.release.items import ReleaseItem
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.errors import DataError
from h2htalk.text.record_diff import format_diff


def name(number: int) -> str:
    return f"made-{number:06}:dialogue_base"


def test_items_that_came_went_moved_and_changed(tmp_path: Path) -> None:
    old = made_content([case(1), case(2)], test=[scenario(n) for n in (1, 2, 3, 4)], dev=[scenario(5), scenario(6)])
    tags = replace(scenario(2).tags, risk="elevated")
    kept = [scenario(1), replace(scenario(2), tags=tags, licence="CC0-1.0"), scenario(6), scenario(7)]
    new = made_content([replace(case(1), state="calmer"), case(3)], test=kept, dev=[scenario(5)])
    votes = new.splits["dev"][0].votes
    new = replace(new, splits={**new.splits, "dev": (ReleaseItem(scenario(5), votes[:1]),)})
    make_card(tmp_path / "old", old)
    make_card(tmp_path / "new", new, version="1.1.0", licence="CC-BY-SA-4.0", tombstones=[name(3)])
    diff = diff_releases(tmp_path / "old", tmp_path / "new")
    assert format_diff(diff).splitlines() == [
        "version: 1.0.0 -> 1.1.0",
        "licence: CC-BY-4.0 -> CC-BY-SA-4.0",
        "en, dev: 2 rows -> 1 rows",
        "votes, dev: 4 rows -> 1 rows",
        "added: 2 (high_risk 1, test 1)",
        "  case-en-3: high_risk",
        f"  {name(7)}: test",
        "removed: 3 (erased 1, no longer accepted, or not chosen 2)",
        "  case-en-2: no longer accepted, or not chosen",
        f"  {name(3)}: erased",
        f"  {name(4)}: no longer accepted, or not chosen",
        "moved: 1 (dev -> test 1)",
        f"  {name(6)}: dev -> test",
        "changed: 3 (licence, tags 1, state 1, votes 1)",
        "  case-en-1: state",
        f"  {name(2)}: licence, tags",
        f"  {name(5)}: votes",
    ]


def test_private_references_are_compared_where_they_are_at_hand(tmp_path: Path) -> None:
    changed = replace(scenario(1), references=("Another reply.",))
    make_card(tmp_path / "old", made_content(test=[scenario(1), scenario(2)]), private=True)
    make_card(tmp_path / "new", made_content(test=[changed, scenario(2)]), private=True)
    diff = diff_releases(tmp_path / "old", tmp_path / "new")
    assert (diff["changed"], list(diff["facts"])) == ({name(1): "references"}, ["references_sha256"])
    shutil.rmtree(private_folder(tmp_path / "old"))
    assert diff_releases(tmp_path / "old", tmp_path / "new")["changed"] == {}


def test_a_folder_that_is_no_release_is_an_error(tmp_path: Path) -> None:
    make_card(tmp_path / "old")
    with pytest.raises(DataError, match=r"is .* a release"):
        diff_releases(tmp_path / "old", tmp_path / "missing")
