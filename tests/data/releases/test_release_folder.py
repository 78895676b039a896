"""A release as a split: parts by name, files held against the manifest; items are erased from it."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import datasets
import pytest

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.erasure.folder_kinds import ErasedIds, erase, read_erased
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import sha256_of, write_json, write_jsonl, write_text
from h2htalk.data.links import add_link
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.releases.release_folder import MANIFEST, data_file, private_folder, release_hash
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError
from support.byte_search import files_with
from support.curations import all_files
from support.releases import case, make_release, scenario


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_release(tmp_path / "release", cases=[case(1), case(1, "zh")])


def test_a_fragment_names_a_split_or_a_study_and_test_is_the_default(release: Path) -> None:
    split = load_split(release)
    assert (split.name, split.version, split.cases) == ("made", "1.0.0", ())
    assert list(split.scenarios) == [
        scenario(1),
        scenario(2),
        scenario(11, "zh"),
        scenario(12, "zh"),
    ]
    assert split.source == f"made 1.0.0, release {release_hash(release)}"
    assert [one.id for one in load_split(f"{release}#dev").scenarios] == [
        scenario(3).id,
        scenario(13, "zh").id,
    ]
    study = load_split(f"{release}#high_risk")
    assert (study.name, list(study.cases)) == ("made-high_risk-test", [case(1), case(1, "zh")])
    assert load_split(f"{release}#high_risk/test") == study
    with pytest.raises(
        ConfigError, match="has no part 'arcs'; choose from dev, test, high_risk, high_risk/test"
    ):
        load_split(f"{release}#arcs")


def test_changed_and_unlisted_files(release: Path) -> None:
    """A data file that the manifest does not know is not read, a changed one refused."""
    extra = release / data_file("en", "test").replace("00000-of-00001", "00001-of-00002")
    extra.write_bytes((release / data_file("en", "dev")).read_bytes())
    assert len(load_split(release).scenarios) == 4
    (release / "README.md").write_text("more\n")
    with pytest.raises(DataError, match=r"README\.md: missing, or not the content"):
        load_split(release)


@pytest.mark.parametrize(
    "name", ["../outside.txt", "/etc/passwd", ".hidden", "a/../../b", "", "a" * 5000]
)
def test_a_manifest_that_names_a_file_outside_is_refused(release: Path, name: str) -> None:
    raw = json.loads((release / MANIFEST).read_text())
    raw["files"][name] = "0" * 64
    (release / MANIFEST).write_text(json.dumps(raw))
    with pytest.raises(
        DataError, match=r"release\.json: files.*must match pattern|missing, or not the content"
    ):
        load_split(release)


def test_erased_items_are_left_out_and_references_may_be_private(tmp_path: Path) -> None:
    release = make_release(
        tmp_path / "release", {"test": [scenario(1), scenario(2, references=[])]}
    )
    before = load_split(release).fingerprint
    (release / "tombstones.jsonl").write_text(json.dumps({"id": scenario(1).id}) + "\n")
    split = load_split(release)
    assert [(one.id, one.references) for one in split.scenarios] == [(scenario(2).id, ())]
    assert split.fingerprint != before


def test_a_private_folder_is_beside_its_release(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "link").symlink_to(release)
    own = release.resolve().with_name("release.private")
    assert private_folder(tmp_path / "elsewhere" / "link") == private_folder(release) == own
    monkeypatch.chdir(release)
    assert private_folder(Path()) == own


WORDS = "cinnamon porridge"
EMILY = ErasedIds(frozenset({"made-p0001"}))
HISTORY = {"history": [{"role": "user", "content": f"I burnt the {WORDS}."}]}


def released(folder: Path) -> Path:
    """Emily's item 1 and case, item 4 with a reference of hers, and three items and a case of others."""
    provenance = {"dialogue": "made-000009", "person": "made-p0001"}
    notes = {
        "references": [
            {"origin": "original"},
            {"origin": "answer:made-000009", "dialogue": "made-000009"},
        ]
    }
    others = [scenario(2), scenario(11, "zh")]
    splits = {
        "test": [
            scenario(1, inputs=HISTORY),
            scenario(4, references=["Which?", WORDS], metadata=notes),
            *others,
        ],
        "dev": [scenario(3)],
    }
    turns = [{"turns": [{"user": WORDS, "points": ["stays"]}]}]
    release = make_release(
        folder / "release", splits, [case(1), case(2, "zh", sessions=turns, provenance=provenance)]
    )
    votes = [{"item": one.id, "question": "keep", "values": ["keep"]} for one in splits["test"]]
    write_parquet(release / releases.data_file("votes", "test"), votes)
    manifest = releases.read_manifest(release)
    write_json(release / releases.METADATA, {"files": dict(manifest.files)})
    private = releases.private_folder(release)
    private.mkdir()
    write_text(release / releases.FIGURES_FOLDER / "words_en_response.png", WORDS)
    figure = f"![Words]({releases.FIGURES_FOLDER}/a.png)\n\n*Words: {WORDS}.*"
    allowed = "companion\\_harm:made-000001:dialogue\\_base=A reason.\n"
    card = f"{allowed}## Counts\n\nFour.\n\n## Figures\n\n{figure}\n\n## Canary\n\nCanary.\n"
    write_text(release / releases.CARD, card)
    analysis = str(folder / "analysis")
    write_json(private / releases.SPEC, {"card": {"analysis": analysis}})
    files = releases.hash_files(release)
    configs = {**manifest.configs, "votes": {"test": 4}}
    allowed = {"gate": "companion_harm", "reason": "A reason.", "texts": ["0a"]}
    facts = {
        "allowed": [
            allowed | {"item": name} for name in ("made-000001:dialogue_base", "made-000002")
        ]
    }
    replace(manifest, files=files, configs=configs, facts=facts).write(release)
    return release


GONE = {"made-000001:dialogue_base", "case-zh-2"}


def test_rows_votes_and_figures_leave_a_release(tmp_path: Path) -> None:
    release = released(tmp_path)
    (tmp_path / "analysis").mkdir()
    assert len(files_with(tmp_path, WORDS)) == 4
    before = releases.read_manifest(release)
    result = erase(release, EMILY)
    assert (result.removed, set(result.items)) == (2, GONE)
    assert "no publication of it is recorded here: build the next version" in result.messages[0]
    assert (
        result.messages[1]
        == f"the analysis {tmp_path / 'analysis'} shows words of the items: delete it"
    )
    assert not (release / releases.FIGURES_FOLDER).exists()
    card = f"## Counts\n\nFour.\n\n## Figures\n\n{releases.NO_FIGURES}\n\n## Canary\n\nCanary.\n"
    assert (release / releases.CARD).read_text() == card
    manifest = releases.read_manifest(release)
    releases.verify_files(release, manifest)
    counts = {"en": {"test": 2, "dev": 1}, "high_risk_zh": {"test": 0}, "votes": {"test": 3}}
    assert counts.items() <= manifest.configs.items()
    assert [one["item"] for one in manifest.facts["allowed"]] == ["made-000002"]
    assert manifest.facts[releases.ERASED_ITEMS] == 2
    assert (manifest.name, manifest.version, manifest.canary) == (
        before.name,
        before.version,
        before.canary,
    )
    assert manifest.files.items() >= {k: v for k, v in before.files.items() if "dev" in k}.items()
    metadata = (release / releases.METADATA).read_text()
    assert [
        one.files[releases.data_file("en", "test")] in metadata for one in (before, manifest)
    ] == [False, True]
    assert read_erased(release / releases.TOMBSTONES).keys() == GONE
    assert [one.id for one in load_split(release).scenarios] == [
        f"made-{n:06}:dialogue_base" for n in (4, 2, 11)
    ]
    # The other dialogue whose words were a reference: the item goes, as its references do.
    assert erase(release, ErasedIds(frozenset({"made-000009"}))).removed == 1
    assert releases.read_manifest(release).facts[releases.ERASED_ITEMS] == 3
    assert files_with(tmp_path, WORDS) == []
    votes = [row["item"] for _, row in read_parquet(release / releases.data_file("votes", "test"))]
    assert votes == [f"made-{n:06}:dialogue_base" for n in (2, 11)]
    add_link(releases.private_folder(release), "hub", "hub:lab/made@v1")
    again = erase(release, EMILY)
    assert (again.removed, len(again.items)) == (0, 3)
    assert again.messages[0].startswith("hub:lab/made@v1 still holds the items: ")


def list_as_erased(release: Path, *ids: str) -> Path:
    """Write tombstones that are newer than the rows."""
    write_jsonl(release / releases.TOMBSTONES, [{"id": one} for one in ids])
    manifest = releases.read_manifest(release)
    digest = sha256_of(release / releases.TOMBSTONES)
    replace(manifest, files={**manifest.files, releases.TOMBSTONES: digest}).write(release)
    return release


@pytest.mark.parametrize("way", ["config", "split", "folder", "private"])
def test_a_foreign_release_leads_to_no_file_of_another_one(tmp_path: Path, way: str) -> None:
    """A config `../../..` emptied another release's Parquet file, a split sent it to a model; links led there too."""
    own = released(tmp_path / "own")
    foreign = make_release(tmp_path / "also" / "foreign", {"test": [scenario(7)]})
    list_as_erased(foreign, *(f"made-{n:06}:dialogue_base" for n in range(12)))
    raw = json.loads((foreign / releases.MANIFEST).read_text())
    if way == "config":
        raw["configs"]["../../../own/release/data/en"] = {"test": 2}
    elif way == "split":
        raw["configs"]["en"]["../../../../own/release/data/en/test"] = 2
    elif way == "folder":
        shutil.rmtree(foreign / "data")
        (foreign / "data").symlink_to(own / "data")
        raw["files"][releases.data_file("en", "test")] = sha256_of(
            own / releases.data_file("en", "test")
        )
    else:
        releases.private_folder(foreign).symlink_to(releases.private_folder(own))
    write_json(foreign / releases.MANIFEST, raw)
    if way == "split":
        with pytest.raises(DataError, match=r"release\.json: configs"):
            load_split(f"{foreign}#../../../../own/release/data/en/test")
    before = all_files(own.parent)
    (result,) = sweep(tmp_path / "work", ErasedIds(frozenset({"nobody"})), [foreign.parent])
    assert all_files(own.parent) == before
    assert result.unfinished


def test_a_foreign_release_erases_nothing_elsewhere(tmp_path: Path) -> None:
    """Its tombstones removed the same ids from a run beside it, and its links led to folders of other projects."""
    foreign = make_release(tmp_path / "also" / "a", {"test": [scenario(1), scenario(7)]})
    run = tmp_path / "also" / "run"
    other = tmp_path / "other"
    asked = make_release(tmp_path / "asked")
    evaluate(
        EvaluateSpec(model="baseline:constant", split=str(asked), out=str(run), embedder="none")
    )
    shutil.copytree(run, other)
    list_as_erased(foreign, scenario(2).id)
    for kind, target in (("run", other), ("hub", "hub:lab/victim@v1")):
        add_link(foreign, kind, target)
    before = all_files(other)
    (first, second) = sweep(
        tmp_path / "work", ErasedIds(frozenset({"made-000001"})), [foreign.parent]
    )
    assert (first.kind, first.items, first.unfinished) == (
        "release",
        {scenario(1).id, scenario(2).id},
        True,
    )
    assert first.messages[-1].endswith(f"name there too: {other}, hub:lab/victim@v1")
    assert (second.kind, second.items) == ("run", {scenario(1).id})
    assert files_with(run, scenario(2).id)
    assert all_files(other) == before


def test_what_datasets_keeps_of_a_folder_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    release = make_release(
        tmp_path / "MyRelease", {"test": [scenario(1, inputs=HISTORY), scenario(2)]}
    )
    datasets.load_dataset(str(release), "en", cache_dir=str(tmp_path / "cache"))
    (tmp_path / "cache" / "other").mkdir()
    assert files_with(tmp_path / "cache", WORDS)
    add_link(tmp_path, "release", release)
    (result,) = sweep(tmp_path, EMILY)
    assert f"deleted from the cache: {tmp_path / 'cache' / 'my_release'}" in result.messages
    assert files_with(tmp_path / "cache", WORDS) == []
    assert (tmp_path / "cache" / "other").is_dir()
