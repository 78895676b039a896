"""Reading a release back: every break is named with its file, none ends in a traceback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from card_made import made_content, make_card
from releases_made import case, scenario

from h2htalk.curation.release.build import check_release
from h2htalk.curation.release.content import ReleaseItem, diff_releases
from h2htalk.data.releases.release_folder import data_file, hash_files, read_manifest
from h2htalk.errors import DataError
from h2htalk.text.record_diff import format_diff

Rows = list[dict[str, Any]]


@pytest.fixture
def release(tmp_path: Path) -> Path:
    make_card(tmp_path / "release", made_content([case(1), case(2)]))
    return tmp_path / "release"


def changed(release: Path, config: str, change: Callable[[Rows], Any]) -> Path:
    """The release with the rows of split `test` changed, and hashes as they then are."""
    path = release / data_file(config, "test")
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    replace(read_manifest(release), files=hash_files(release)).write(release)
    return release


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        ("votes", lambda rows: rows[1].update(decision="nan"), "row 2: needs .* numbers for a rating"),
        # What viewers and trainers read was read by no gate.
        ("en", lambda rows: rows[0]["messages"][-1].update(content="Do it."), "row 1: the column `messages` is not"),
        ("en", lambda rows: rows[1].update(persona="stranger"), "made-000002.*: personas/ lacks 'stranger' in"),
    ],
)
def test_a_broken_row_is_named(release: Path, config: str, change: Callable[[Rows], Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_release(changed(release, config, change))


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
