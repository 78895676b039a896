"""A chain of rounds: from a workspace to a crowd, from what the crowd keeps to experts and to a safety round."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from chain_made import candidate, closed, crisis_candidate, crowd_round, items_of, spec_of
from curation_made import finished
from kills import interrupted_at
from rounds_made import begin, crowd, expert, files_of, people

from h2htalk.data.links import Link, read_links
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.spreadsheets.platform import SpreadsheetPlatform


def test_experts_get_what_the_crowd_kept_and_all_that_nobody_read(tmp_path: Path) -> None:
    """No command led from the crowd to the experts; provenance, licence and review were lost on the way."""
    path = crowd_round(tmp_path)
    status, messages = open_round(spec_of("expert", path, 3), tmp_path / "expert")
    assert (status.kind, status.items) == ("expert", 2)
    assert messages[0].startswith("crowd: 2 kept, 1 dropped, 1 tied; ties are left out: to decide them first, ")
    folder, items = RoundFolder(tmp_path / "expert"), items_of(tmp_path / "expert")
    assert folder.sources() == {"c-1": crisis_candidate("c-1"), "c-2": candidate("c-2", "accept")}
    assert {name: item.crisis for name, item in items.items()} == {"c-1": True, "c-2": False}
    # The crowd round, which does not ask for accuracy, had removed the reviewer's.
    assert "accuracy" not in items_of(path)["c-2"].suggested
    assert items["c-2"].suggested == {"keep": "keep", "accuracy": 4}
    assert items["c-2"].reference == items_of(path)["c-2"].reference
    # Every round knows its workspace and what came after.
    work = tmp_path / "work"
    open_round(spec_of("adjudication", path, 1), tmp_path / "ties")
    closed(tmp_path / "expert", expert())
    _, messages = open_round(spec_of("safety", tmp_path / "expert"), tmp_path / "safety")
    assert messages[0] == "expert: 2 kept, 0 dropped, 0 tied"
    assert read_links(work) == (Link("round", "../crowd", path),)
    assert [link.target for link in read_links(path)] == ["../expert", "../ties"]
    assert [link.target for link in read_links(tmp_path / "expert")] == ["../safety"]
    for name in ("crowd", "expert", "ties", "safety"):
        assert RoundFolder(tmp_path / name).source_paths()["workspace"] == str(work)
        assert str(tmp_path) not in (tmp_path / name / "round.json").read_text()
    assert RoundFolder(tmp_path / "safety").sources() == RoundFolder(tmp_path / "expert").sources()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("safety", "a round of safety does not ask what to keep; name a closed round of crowd or expert"),
        ("dropped", r"this round keeps no item \(round: 0 kept, 2 dropped, 0 tied\)"),
    ],
)
def test_a_round_that_experts_cannot_continue(tmp_path: Path, state: str, message: str) -> None:
    path = begin(tmp_path, "safety" if state == "safety" else "crowd", 2, people=2, overlap=2)
    closed(path, {"perception": "5", "violation": "no"} if state == "safety" else crowd("drop"))
    spec = spec_of("expert", path)
    before = files_of(path)
    with pytest.raises((RoundError, DataError), match=message):
        open_round(spec, tmp_path / "expert")
    assert files_of(path) == before
    assert not (tmp_path / "expert").exists()


def test_a_refused_opening_leaves_neither_links_nor_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link stayed where the platform refused."""
    work = finished(tmp_path / "work", "review", [candidate("c-1", "accept")]).path
    spec = spec_of("crowd", work)
    people(Path(spec.annotators), "anna")
    before = files_of(work)

    def fails(self: SpreadsheetPlatform, folder: RoundFolder) -> None:
        assert read_links(work)
        raise RoundError("no server")

    monkeypatch.setattr(SpreadsheetPlatform, "check", fails)
    out = tmp_path / "crowd"
    with pytest.raises(RoundError, match="no server"):
        open_round(spec, out)
    assert (read_links(work), out.exists()) == ((), False)
    assert not (work / "links.jsonl").exists()
    with pytest.raises(RoundError, match="guidelines cannot be read"):
        open_round(replace(spec, guidelines=str(tmp_path)), out)
    assert (files_of(work), out.exists()) == (before, False)
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RoundError, match="no server"):
        open_round(spec, out)
    assert [one.name for one in out.iterdir()] == ["notes.txt"]


def test_an_opening_that_is_killed_at_any_write(tmp_path: Path) -> None:
    """It is completed by the same command, and before it holds an item, the round before knows of it."""
    path, number, killed = crowd_round(tmp_path), 0, True
    spec = spec_of("expert", path)
    while killed:
        out = tmp_path / f"expert-{number}"
        killed = interrupted_at(number, partial(open_round, spec, out))
        known = {link.path for link in read_links(path)}
        assert out in known or not (out / "items.jsonl").exists()
        assert open_round(spec, out)[0].state == "open"
        assert set(RoundFolder(out).sources()) == set(items_of(out)) == {"c-1", "c-2"}
        assert RoundFolder(out).source_paths()["workspace"] == str(tmp_path / "work")
        number += 1
    assert number > 10
    assert [link.path for link in read_links(path)] == [tmp_path / f"expert-{n}" for n in range(number)]
