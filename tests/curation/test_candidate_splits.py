"""The candidates of a workspace are a split for every command, by the same names."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import h2htalk
from compose_made import compose, talk
from curation_made import finished

from h2htalk.data.links import read_links
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError
from h2htalk.rounds.item_sources import read_items


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compose(tmp_path_factory.mktemp("one"), [talk(1), talk(2)])[0].path


def test_a_stage_is_a_split_that_is_evaluated_where_it_is(workspace: Path, tmp_path: Path) -> None:
    for command in (["split", "from", workspace], ["split", "from", workspace, "--stage", "compose"]):
        assert h2htalk(*command, "--out", tmp_path / command[-1].__str__().replace("/", "_")).returncode == 0
    split, whole = load_split(tmp_path / "compose"), load_split(workspace)
    assert whole.fingerprint == split.fingerprint == load_split(workspace / "compose").fingerprint
    assert whole.name == split.name == "work-compose"
    assert "on which no people decided" in split.description
    assert [item.id for item in read_items(str(workspace)).items] == sorted(s.id for s in whole.scenarios)
    # It is evaluated where it is.
    out = tmp_path / "run"
    split = workspace / "compose"
    done = h2htalk("evaluate", "baseline:constant", "--split", split, "--embedder", "none", "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert (out / "report.html").exists()
    # The workspace knows the run, which holds a copy of its items.
    assert [(link.kind, link.path) for link in read_links(workspace)] == [("run", out)]


def test_only_finished_stages_with_candidates_are_splits(workspace: Path, tmp_path: Path) -> None:
    done = h2htalk("split", "from", workspace, "--stage", "dedup", "--out", tmp_path / "out")
    assert (done.returncode, (tmp_path / "out").exists()) == (2, False)
    assert "holds dialogues, not candidates" in done.stderr
    begun = finished(tmp_path / "work", "gather", []).path
    with pytest.raises(DataError, match="no stage with candidates is finished"):
        load_split(begun)
