"""Links: what was made from a folder."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from h2htalk.data.files import write_text, writer_lock
from h2htalk.data.links import Link, add_link, link_folder, read_links
from h2htalk.errors import DataError


def test_links_are_kept_once_in_the_order_of_adding(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    assert read_links(folder) == ()
    for _ in range(2):
        add_link(folder, "round", tmp_path / "rounds" / "crowd")
        add_link(folder, "run", folder / "inside")
        add_link(folder, "hub", "hub:lab/set@v1.0")
    assert read_links(folder) == (
        Link("round", "../rounds/crowd", tmp_path / "rounds" / "crowd"),
        Link("run", "inside", folder / "inside"),
        Link("hub", "hub:lab/set@v1.0", None),
    )
    with ThreadPoolExecutor(20) as pool:  # runs that start together
        list(pool.map(lambda number: add_link(folder, "run", tmp_path / f"run-{number // 2}"), range(20)))
    assert len(read_links(folder)) == 3 + 10


def test_a_target_is_found_through_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "disk" / "deep" / "workspace").mkdir(parents=True)
    (tmp_path / "round").mkdir()
    (tmp_path / "shortcut").symlink_to(tmp_path / "disk" / "deep" / "workspace")
    add_link(tmp_path / "shortcut", "round", tmp_path / "round")
    for folder in ("shortcut", "disk/deep/workspace"):
        (link,) = read_links(tmp_path / folder)
        assert link.path == tmp_path / "round"
    with writer_lock(tmp_path / "disk" / "deep" / "workspace" / "links.jsonl"):  # one that is there needs no right
        add_link(tmp_path / "disk" / "deep" / "workspace", "round", tmp_path / "round")  # it would wait a minute
    assert len(read_links(tmp_path / "shortcut")) == 1
    (tmp_path / "disk").rename(tmp_path / "moved")
    assert read_links(tmp_path / "moved" / "deep" / "workspace")[0].target == "../../../round"


@pytest.mark.parametrize(
    ("kind", "target"), [("rounds", "a"), ("round", 1), (["round"], "a"), ("hub", "nonsense"), ("run", "hub:a/b@c")]
)
def test_a_line_that_is_no_link_is_named(tmp_path: Path, kind: object, target: object) -> None:
    add_link(tmp_path, "run", tmp_path / "run")
    with (tmp_path / "links.jsonl").open("a") as file:
        file.write(json.dumps({"kind": kind, "target": target}) + "\n")
    for call in (lambda: read_links(tmp_path), lambda: add_link(tmp_path, "run", tmp_path / "other")):
        with pytest.raises(DataError, match=r"links\.jsonl:2: a link must hold kind"):
            call()


def test_what_links_for_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, release = tmp_path / "workspace", tmp_path / "release"
    for file in (workspace / "workspace.json", workspace / "review" / "stage.json", release / "release.json"):
        write_text(file, "{}")
    assert link_folder(workspace) == link_folder(workspace / "review") == workspace
    assert link_folder(tmp_path) is link_folder(workspace / "missing") is None
    monkeypatch.chdir(workspace)
    assert link_folder("") is None
    # A downloaded release has no private folder.
    assert link_folder(release) is None
    (tmp_path / "release.private").mkdir()
    assert link_folder(release) == link_folder(f"{release}#dev") == tmp_path / "release.private"
