"""A release as a split: parts by name, files held against the manifest, erased items left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from releases_made import case, make_release, scenario

from h2htalk.data.releases.release_folder import MANIFEST, data_file, private_folder, release_hash
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_release(tmp_path / "release", cases=[case(1), case(1, "zh")])


def test_a_fragment_names_a_split_or_a_study_and_test_is_the_default(release: Path) -> None:
    split = load_split(release)
    assert (split.name, split.version, split.cases) == ("made", "1.0.0", ())
    assert list(split.scenarios) == [scenario(1), scenario(2), scenario(11, "zh"), scenario(12, "zh")]
    assert split.source == f"made 1.0.0, release {release_hash(release)}"
    assert [one.id for one in load_split(f"{release}#dev").scenarios] == [scenario(3).id, scenario(13, "zh").id]
    study = load_split(f"{release}#high_risk")
    assert (study.name, list(study.cases)) == ("made-high_risk-test", [case(1), case(1, "zh")])
    assert load_split(f"{release}#high_risk/test") == study
    with pytest.raises(ConfigError, match="has no part 'arcs'; choose from dev, test, high_risk, high_risk/test"):
        load_split(f"{release}#arcs")


def test_changed_and_unlisted_files(release: Path) -> None:
    """A data file that the manifest does not know is not read, a changed one refused."""
    extra = release / data_file("en", "test").replace("00000-of-00001", "00001-of-00002")
    extra.write_bytes((release / data_file("en", "dev")).read_bytes())
    assert len(load_split(release).scenarios) == 4
    (release / "README.md").write_text("more\n")
    with pytest.raises(DataError, match=r"README\.md: missing, or not the content"):
        load_split(release)


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/passwd", ".hidden", "a/../../b", "", "a" * 5000])
def test_a_manifest_that_names_a_file_outside_is_refused(release: Path, name: str) -> None:
    raw = json.loads((release / MANIFEST).read_text())
    raw["files"][name] = "0" * 64
    (release / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(DataError, match=r"release\.json: files.*must match pattern|missing, or not the content"):
        load_split(release)


def test_erased_items_are_left_out_and_references_may_be_private(tmp_path: Path) -> None:
    release = make_release(tmp_path / "release", {"test": [scenario(1), scenario(2, references=[])]})
    before = load_split(release).fingerprint
    (release / "tombstones.jsonl").write_text(json.dumps({"id": scenario(1).id}) + "\n")
    split = load_split(release)
    assert [(one.id, one.references) for one in split.scenarios] == [(scenario(2).id, ())]
    assert split.fingerprint != before


def test_the_private_folder_lies_beside_the_release_however_it_is_named(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(release)
    own = release.resolve().with_name("release.private")
    assert private_folder(tmp_path / "elsewhere" / "link") == private_folder(release) == own
    monkeypatch.chdir(release)
    assert private_folder(Path()) == own
