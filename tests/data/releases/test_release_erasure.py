"""Erase items from a release's folder."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from byte_search import files_with
from kills import interrupted_at
from releases_made import case, make_release, scenario

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.files import read_jsonl, sha256_of, write_json, write_jsonl, write_text
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.releases.erasure import erase_from_release
from h2htalk.data.releases.release_folder import (
    CARD,
    FIGURES_FOLDER,
    METADATA,
    PRIVATE_REFERENCES,
    SPEC,
    TOMBSTONES,
    data_file,
    hash_files,
    private_folder,
    read_manifest,
    read_tombstones,
    verify_files,
)
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError

WORDS = "cinnamon porridge"
EMILY = ErasedIds(frozenset({"made-p0001"}))
HISTORY = {"history": [{"role": "user", "content": f"I burnt the {WORDS}."}]}


def released(folder: Path) -> Path:
    """Emily's item 1 and case, item 4 with a reference of hers, and three items and a case of others."""
    provenance = {"dialogue": "made-000009", "person": "made-p0001"}
    notes = {"references": [{"origin": "original"}, {"origin": "answer:made-000009", "dialogue": "made-000009"}]}
    others = [scenario(2), scenario(11, "zh")]
    splits = {
        "test": [scenario(1, inputs=HISTORY), scenario(4, references=["Which?", WORDS], metadata=notes), *others],
        "dev": [scenario(3)],
    }
    turns = [{"turns": [{"user": WORDS, "points": ["stays"]}]}]
    release = make_release(folder / "release", splits, [case(1), case(2, "zh", sessions=turns, provenance=provenance)])
    votes = [{"item": one.id, "question": "keep", "values": ["keep"]} for one in splits["test"]]
    write_parquet(release / data_file("votes", "test"), votes)
    manifest = read_manifest(release)
    write_json(release / METADATA, {"files": dict(manifest.files)})
    private = private_folder(release)
    private.mkdir()
    write_text(release / FIGURES_FOLDER / "words_en_response.png", WORDS)
    write_text(release / CARD, f"## Counts\n\nFour.\n\n## Figures\n\n*Words: {WORDS}.*\n\n## Canary\n\nCanary.\n")
    analysis = str(folder / "analysis")
    write_json(private / SPEC, {"card": {"analysis": analysis}})
    lines = [{"id": one.id, "references": list(one.references)} for one in splits["test"]]
    write_jsonl(private / PRIVATE_REFERENCES, lines)
    files = hash_files(release)
    configs = {**manifest.configs, "votes": {"test": 4}}
    references = sha256_of(private / PRIVATE_REFERENCES)
    replace(manifest, files=files, configs=configs, references_sha256=references).write(release)
    return release


GONE = {"made-000001:dialogue_base", "case-zh-2"}


def test_rows_votes_and_references_leave_a_release(tmp_path: Path) -> None:
    release = released(tmp_path)
    (tmp_path / "analysis").mkdir()
    assert len(files_with(tmp_path, WORDS)) == 5
    before = read_manifest(release)
    result = erase_from_release(release, EMILY)
    assert (result.removed, set(result.items)) == (2, GONE)
    assert "1.0.0 still holds the items" in result.messages[0]
    assert f"the analysis {tmp_path / 'analysis'} shows words of the items: delete it" in result.messages[1]
    assert not (release / FIGURES_FOLDER).exists()
    note = "*Removed with erased items; the next version shows figures of its own rows.*"
    card = f"## Counts\n\nFour.\n\n## Figures\n\n{note}\n\n## Canary\n\nCanary.\n"
    assert (release / CARD).read_text() == card
    manifest = read_manifest(release)
    verify_files(release, manifest)
    assert manifest.configs["en"] == {"test": 2, "dev": 1}
    assert manifest.configs["high_risk_zh"] == {"test": 0}
    assert manifest.configs["votes"] == {"test": 3}
    assert manifest.references_sha256 == sha256_of(private_folder(release) / PRIVATE_REFERENCES)
    assert replace(manifest, files={}, configs={}, references_sha256="") == replace(
        before, files={}, configs={}, references_sha256=""
    )
    assert manifest.files.items() >= {k: v for k, v in before.files.items() if "dev" in k}.items()
    assert manifest.files[data_file("en", "test")] in (release / METADATA).read_text()
    assert before.files[data_file("en", "test")] not in (release / METADATA).read_text()
    assert read_tombstones(release / TOMBSTONES) == GONE
    split = load_split(release)
    assert [one.id for one in split.scenarios] == [f"made-{n:06}:dialogue_base" for n in (4, 2, 11)]
    assert split.references_sha256 == manifest.references_sha256
    # The other dialogue whose words were a reference: the item goes, as its references do.
    assert erase_from_release(release, ErasedIds(frozenset({"made-000009"}))).removed == 1
    assert files_with(tmp_path, WORDS) == []
    assert [row["item"] for _, row in read_parquet(release / data_file("votes", "test"))] == [
        "made-000002:dialogue_base",
        "made-000011:dialogue_base",
    ]
    again = erase_from_release(release, EMILY)
    assert (again.removed, len(again.items)) == (0, 3)


def test_a_copy_with_tombstones_loses_the_rows(tmp_path: Path) -> None:
    """A copy whose tombstones are newer than its rows."""
    release = released(tmp_path)
    write_jsonl(release / TOMBSTONES, [{"id": "made-000002:dialogue_base"}])
    manifest = read_manifest(release)
    replace(manifest, files={**manifest.files, TOMBSTONES: sha256_of(release / TOMBSTONES)}).write(release)
    assert erase_from_release(release, ErasedIds(frozenset())).removed == 1
    assert files_with(release, "made-000002:dialogue_base") == [TOMBSTONES]


def test_a_changed_release_is_refused(tmp_path: Path) -> None:
    release = released(tmp_path)
    path = release / data_file("en", "dev")
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DataError, match=r"dev-.*not the content that release\.json records"):
        erase_from_release(release, EMILY)
    assert not (release / TOMBSTONES).exists()


def test_an_erasure_killed_at_any_write_is_completed_by_the_next(tmp_path: Path) -> None:
    release = released(tmp_path / "made")
    shutil.copytree(release.parent, tmp_path / "control")
    erase_from_release(tmp_path / "control" / "release", EMILY)
    expected = contents(tmp_path / "control")
    for write in range(20):
        folder = shutil.copytree(release.parent, tmp_path / str(write))
        if not interrupted_at(write, partial(erase_from_release, folder / "release", EMILY)):
            break
        assert set(erase_from_release(folder / "release", EMILY).items) == GONE
        assert contents(folder) == expected, write
    assert write > 7


def contents(folder: Path) -> dict[str, object]:
    """Files by name; of a manifest, what it holds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_lines_of_private_references(tmp_path: Path) -> None:
    release = released(tmp_path)
    erase_from_release(release, EMILY)
    lines = [line for _, line in read_jsonl(private_folder(release) / PRIVATE_REFERENCES)]
    assert [line["id"] for line in lines] == [f"made-{n:06}:dialogue_base" for n in (4, 2, 11)]
