"""While an erasure is not finished, no command shows a word of the person: of the folder, or of any file in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_erase import EMILY_CARTER, MADE, WORDS, published

from h2htalk.curation.erase import erase
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import mark_folder
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError
from support.byte_search import files_with
from support.command_line import h2htalk_here

__all__ = ["published"]  # a fixture
INTERRUPTED = "an erasure was interrupted here; start the same `h2htalk curate erase` again"
FOLDERS = ("work", *MADE)


@pytest.fixture(scope="module")
def interrupted(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lab whose erasure got kill -9 after it had marked the folders."""
    lab = shutil.copytree(published, tmp_path_factory.mktemp("interrupted") / "lab")
    for name in FOLDERS:
        mark_folder(lab / name)
    return lab


def _shown(*words: object) -> str:
    done = h2htalk_here(*words)
    return (done.stdout + done.stderr).lower()


@pytest.mark.parametrize("name", FOLDERS)
def test_no_command_shows_the_folder(interrupted: Path, name: str) -> None:
    """`show` printed the erased words of runs, studies and stages."""
    folder = interrupted / name
    for command in (
        ("show", folder, "--sample", 1000),
        ("split", "describe", folder),
        ("split", "check", folder),
        ("report", folder),
        ("study", "report", folder),
        ("release", "check", folder),
        ("round", "status", folder),
        ("curate", "explain", folder, "chat-000002"),
        ("costs", folder, "--list-calls"),
        ("site", folder, "--out", interrupted / "site"),
    ):
        shown = _shown(*command)
        assert WORDS not in shown, command
        assert EMILY_CARTER.lower() not in shown, command
    assert INTERRUPTED.lower() in _shown("show", folder)


def test_no_command_shows_a_file_or_folder_inside(interrupted: Path) -> None:
    """A file of a marked folder, named by its own path, was read as any other."""
    holding = [interrupted / name for name in files_with(interrupted, WORDS)]
    inside = [path for path in holding if path.parent != interrupted]
    assert len(inside) > 20
    places = sorted({*inside, *(path.parent for path in inside)})
    for place in places:
        assert WORDS not in _shown("show", place, "--sample", 1000), place
        assert WORDS not in _shown("split", "describe", place), place
    for place in places:
        if place.suffix in (".jsonl", ".parquet"):
            with pytest.raises(DataError, match="an erasure was interrupted here"):
                load_split(place)


def test_a_link_leads_past_no_mark(interrupted: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(interrupted / "run-candidates" / "inputs")
    with pytest.raises(DataError, match="an erasure was interrupted here"):
        load_split(tmp_path / "elsewhere" / "split")


def test_the_erasure_itself_still_reads(interrupted: Path, tmp_path: Path) -> None:
    lab = shutil.copytree(interrupted, tmp_path / "lab")
    erase(Workspace(lab / "work"), EMILY_CARTER)
    assert files_with(lab, f"the {WORDS}") == ["raw.jsonl"]
    assert INTERRUPTED.lower() not in _shown("show", lab / "run-candidates")


def test_a_mark_in_a_shared_folder_stops_nobody(published: Path, tmp_path: Path) -> None:
    """`/tmp/.erasing`, which anybody may write, stopped every command on a split in /tmp."""
    shutil.copytree(published / "run-candidates" / "inputs" / "split", tmp_path / "split")
    (tmp_path / ".erasing").touch()
    assert load_split(tmp_path / "split").scenarios
    assert "of" in _shown("show", tmp_path / "split", "--sample", 1)
