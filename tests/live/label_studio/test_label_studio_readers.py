"""Planted items on a real server: people answer them like the others, and by them count as readers or do not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_label_studio_round import projects_of

from h2htalk.integrations.label_studio.platform import task_html
from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.reads import item_hashes, reads_of_round
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import Care, RoundSpec
from support.live.label_studio_server import LabelStudio, signed_in
from support.live.planted_rounds import CARELESS, ITEMS, NAMES, answers_to, written_items
from support.live.real_servers import write_annotators

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


def headings(task: Mapping[str, Any]) -> list[str]:
    """The headings of the page of a task: all that it says but for the words of its item."""
    return re.findall(r"<h4[^>]*>(.*?)</h4>", task["data"]["item"])


def test_who_misses_planted_items_is_no_reader_and_nothing_tells_them_apart(
    server: LabelStudio, tmp_path: Path
) -> None:
    spec = RoundSpec(
        kind="crowd",
        items=str(written_items(tmp_path / "items.jsonl")),
        where="label-studio",
        annotators=str(write_annotators(tmp_path / "people.csv", NAMES)),
        overlap=len(NAMES),
        care=Care(session_items=20),
    )
    open_round(spec, tmp_path / "readers")
    round = RoundFolder(tmp_path / "readers")
    state = read_state(round)
    items = {task_html(state, item): item for item in state.items}
    planted = {item.id for item in state.items if item.planted}
    (project,) = projects_of(server, "readers")
    for name, annotator in signed_in(server.url, round.private / "label_studio_logins.csv").items():
        seen: dict[str, list[str]] = {}
        while task := annotator.next_task(project):
            item = items[task["data"]["item"]]
            seen[item.id] = headings(task)
            assert task["data"].keys() == {"id", "item"}
            assert re.fullmatch("[0-9a-f]{32}", task["data"]["id"])
            assert not [word for word in ("planted", "plain-", item.id) if word in json.dumps(task)]
            annotator.answer(task["id"], answers_to(item, name))
        met = planted & seen.keys()
        assert (len(seen), len(met)) == (ITEMS + 2, 2)
        assert {tuple(seen[one]) for one in met} == {
            tuple(shown) for one, shown in seen.items() if one not in planted
        }

    status = round_status(round.path)
    assert (status.items, status.completed, status.missing, status.mistakes) == (
        ITEMS,
        ITEMS * len(NAMES),
        {},
        (),
    )
    careless = annotator_id(CARELESS, round.salt())
    missed = f"{careless} missed 2 of 2 harmful ones"
    assert (
        f"planted items: 2 of 3 annotators count as readers; {missed}; their votes count"
        in status.notes
    )
    close_round(round.path)
    reads = {read.item: read for read in reads_of_round(read_outcome(round.path))}
    plain = {item.id: item for item in round.items() if not item.planted}
    assert reads.keys() == plain.keys()
    assert {(read.people, read.gates) for read in reads.values()} == {
        (2, ("companion_harm", "personal_data"))
    }
    assert {name: read.passages for name, read in reads.items()} == {
        name: item_hashes(item) for name, item in plain.items()
    }
    # What somebody found is looked at, whether they count or not.
    assert {name for name, read in reads.items() if read.findings} == {"plain-0"}
