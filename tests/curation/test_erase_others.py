"""Taking a person out takes nobody else out unasked, and promises nothing that it could not keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import dialogue, gathered

from h2htalk.curation.erase import erase
from h2htalk.curation.erase_who import OthersGoToo
from h2htalk.curation.gather import run_gather
from h2htalk.curation.spec import CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.errors import ConfigError

EMILY = "made-p0001"


def copies(path: Path, on: str = "inputs") -> Workspace:
    """Three dialogues, the first of them Emily's; dedup holds the third for a copy of it."""
    made = gathered(path, [dialogue(n, person=EMILY if n == 1 else None) for n in (1, 2, 3)])
    evidence = {"of": "made-000001", "on": on, "similarity": 0.9}
    loser = {"id": "made-000003", "reason": "near_duplicate", "evidence": evidence}
    write_jsonl(made.stage("dedup").path / "losers.jsonl", [loser])
    return made


def all_text(workspace: Workspace) -> str:
    return "".join(path.read_text() for path in sorted(workspace.path.rglob("*.jsonl")))


def test_others_go_as_near_copies_only_when_that_is_said(tmp_path: Path) -> None:
    """Whoever had said the same went unasked, and was named afterwards."""
    workspace = copies(tmp_path)
    before = all_text(workspace)
    with pytest.raises(OthersGoToo, match="dialogues of others, which would go too: made-000001;") as refused:
        erase(workspace, "made-000003")
    assert (refused.value.ids, refused.value.others) == (("made-000001", "made-000003"), ("made-000001",))
    assert all_text(workspace) == before


def test_near_copies_of_the_same_person_go_without_a_word(tmp_path: Path) -> None:
    place = gathered(tmp_path, [dialogue(n, person=EMILY) for n in (1, 2, 3)])
    loser = {"id": "made-000002", "reason": "duplicate", "evidence": {"of": "made-000001", "on": "both"}}
    write_jsonl(place.stage("dedup").path / "losers.jsonl", [loser])
    assert erase(place, "made-000001").copies == ("made-000002",)


def test_the_whole_set_is_on_the_screen_before_it_goes(tmp_path: Path) -> None:
    workspace = copies(tmp_path)
    asked = ["curate", "erase", str(workspace.path), "made-000003"]
    refused = h2htalk(*asked)
    assert refused.returncode == 2
    assert refused.stdout.splitlines() == ["made-000001  of others", "made-000003  asked for"]
    assert "do it with --yes" in refused.stderr
    assert h2htalk(*asked, "--yes").returncode == 0
    assert [record["id"] for record in workspace.stage("gather").records()] == ["made-000002"]


def test_without_its_key_nothing_is_promised(tmp_path: Path) -> None:
    """Nobody was known again in a changed file, though `will not come back` stood on the screen."""
    workspace = copies(tmp_path, on="references")
    workspace.key_path.rename(workspace.path / "elsewhere")
    before = all_text(workspace)
    with pytest.raises(ConfigError, match=r"secret\.key: is missing, .* put it back"):
        erase(workspace, EMILY)
    (workspace.path / "workspace.json").unlink()
    with pytest.raises(ConfigError, match=r"secret\.key: is missing"):
        erase(workspace, EMILY)
    assert not workspace.key_path.exists()
    assert all_text(workspace) == before
    (workspace.path / "elsewhere").rename(workspace.key_path)
    assert EMILY in erase(workspace, EMILY).ids


def test_a_raw_id_of_several_dialogues_is_asked_back(tmp_path: Path) -> None:
    """Files number their dialogues anew in every session: whoever had number 7 went with the one who asked."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    write_jsonl(tmp_path / "raw.jsonl", [{"id": 7, "messages": said} for _ in range(3)])
    place = Workspace(tmp_path / "work")
    source = Source("chat", "raw.jsonl", "messages", "en", "CC0-1.0")
    run_gather(CurateSpec(str(place.path), GatherSettings((source,))), tmp_path, place, place.open_key())
    for asked in ("7", "chat:7"):
        with pytest.raises(ConfigError, match=r"id of 3 dialogues .* chat-000001, chat-000002, chat-000003"):
            erase(place, asked)
    assert erase(place, "chat-000002").ids == ("chat-000002",)
