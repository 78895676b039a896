"""An item erased from a round on a real server: after compaction no byte of it is left in database and search index."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from pathlib import Path

import pytest
from argilla_annotators import made_items, write_items
from argilla_small import SAYS, Opened
from argilla_stack import Stack
from byte_search import files_with

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("signed_in")]
WORDS = "cinnamon porridge"


def compact(stack: Stack) -> None:
    """Compact the database and make the search index again, as the message asks the server's operator to do."""
    with sqlite3.connect(stack.database, timeout=60) as database:
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    # A merge of segments keeps deleted documents for a while (soft deletes).
    stack.reindex()


def hits(stack: Stack) -> int:
    """The number of documents of all indices that hold the words."""
    url = f"http://127.0.0.1:{stack.search_port}/_search?q=cinnamon&allow_no_indices=true"
    with urllib.request.urlopen(url, timeout=60) as reply:
        found = json.load(reply)
    return sum("cinnamon" in json.dumps(hit) for hit in found["hits"]["hits"])


def test_no_byte_is_left_on_the_server(stack: Stack, tmp_path: Path) -> None:
    items = made_items(6, "crowd", crises=3)
    items[0]["prompt"] = [{"role": "user", "content": f"I burnt the {WORDS}. (0)"}]
    source = write_items(tmp_path / "source.jsonl", items)
    small = Opened(tmp_path, stack, "erased", items=str(source))
    one, other, _ = small.annotators
    records = small.records(one)
    for annotator in (one, other):
        for name in ("item-000", "item-002"):
            annotator.submit(records[name], SAYS)
    assert round_status(small.round.path).by_item["item-000"] == 2
    before = files_with(stack.home, WORDS)
    assert stack.database.name in before
    result = erase(small.round.path, ErasedIds(frozenset({"item-000"})))
    assert (result.removed, result.unfinished) == (1, False)
    assert f"{source}: the round was opened from it" in result.messages[0]
    source.unlink()
    assert files_with(tmp_path, WORDS) == []
    compact(stack)
    assert (files_with(stack.home, WORDS), hits(stack)) == ([], 0)
    # The other answers still count; annotators see the rest, and nothing is published again.
    status = round_status(small.round.path)
    assert (status.by_item["item-002"], status.items, status.mistakes, status.notes) == (2, 5, (), ())
    assert "item-000" not in small.records(one)
    write_items(source, items[1:])
    open_round(small.spec, small.round.path)
    assert files_with(stack.home, WORDS) == []
    close_round(small.round.path, force=True)
    assert {item for item, _, _ in read_outcome(small.round.path).annotations} == {"item-002"}
