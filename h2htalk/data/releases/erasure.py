"""Erase items from a release's folder: rows, votes, figures, private references. What was published does not change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_file, remove_for_good, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure
from h2htalk.data.files import read_json_object, remove_file, sha256_of, write_jsonl, write_text
from h2htalk.data.parquet import read_parquet
from h2htalk.data.releases.release_folder import (
    CARD,
    FIGURES_FOLDER,
    METADATA,
    PRIVATE_REFERENCES,
    SPEC,
    TOMBSTONES,
    VOTES,
    Manifest,
    data_file,
    private_folder,
    read_manifest,
    read_tombstones,
    verify_files,
)


def erase_from_release(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted. Raises DataError.

    Their ids are added to `tombstones.jsonl`, so that they leave other copies of the release as well.
    """
    # Beside the release while its files change: they do not have the hashes that release.json records.
    manifest, pending = read_manifest(path), path.resolve().with_name(f".{path.resolve().name}.erasing")
    if not pending.exists():
        verify_files(path, manifest)
    before = read_tombstones(path / TOMBSTONES)
    gone = {
        str(row["id"])
        for config, splits in manifest.configs.items()
        for split in splits
        if config != VOTES
        for _, row in read_parquet(path / data_file(config, split))
        if erased.covers(row) or row["id"] in before
    }
    ids = before | gone
    if gone or pending.exists():
        write_text(pending, "")
        write_jsonl(path / TOMBSTONES, ({"id": name} for name in sorted(ids)))
        _remove(path, manifest, ids)
        remove_file(pending)
    if not ids:
        return FolderErasure()
    message = (
        f"what was published as {manifest.version} still holds the items: build the next version with this folder as "
        "`previous`, and do not publish this folder"
    )
    return FolderErasure(len(gone), frozenset(ids), (message, *_analysis(path)))


def _analysis(path: Path) -> Iterator[str]:
    """Say where the figures of a card came from: nothing in an analysis tells whose words it shows."""
    card = read_json_object(private_folder(path) / SPEC, missing_ok=True).get("card")
    analysis = str(card.get("analysis", "")) if isinstance(card, dict) else ""
    if os.path.isdir(analysis):
        yield f"the analysis {analysis} shows words of the items: delete it, and analyse the next version for its card"


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where a release and its private folder are built, by one process at a time."""
    own, private = release.resolve(), private_folder(release)
    return own.with_name(f".{own.name}.part"), own.with_name(f".{private.name}.part")


def remove_leftovers(release: Path) -> list[Path]:
    """Remove what a build of a release left when it was killed; return the paths. Nobody may build it meanwhile."""
    left = [path for path in partial_folders(release) if path.is_dir()]
    for path in left:
        remove_for_good(path)
    return left


def _remove(path: Path, manifest: Manifest, ids: frozenset[str]) -> None:
    """Remove the rows of items, and record the new hashes and counts. Can be repeated after a kill."""
    remove_partial_files(path)
    configs: dict[str, dict[str, int]] = {}
    files = dict(manifest.files)
    for config, splits in manifest.configs.items():
        for split in splits:
            name = data_file(config, split)
            # Votes are on an `item`.
            left = filter_file(path / name, lambda row: ids.isdisjoint({row.get("id"), row.get("item")}))
            configs.setdefault(config, {})[split] = left
            files[name] = sha256_of(path / name)
    references, hashed = private_folder(path) / PRIVATE_REFERENCES, manifest.references_sha256
    if references.is_file():
        filter_file(references, lambda line: line.get("id") not in ids)
        hashed = hashed and sha256_of(references)
    files[TOMBSTONES] = sha256_of(path / TOMBSTONES)
    if figures := [name for name in files if name.startswith(f"{FIGURES_FOLDER}/")]:
        _remove_figures(path)
        files = {name: sha256_of(path / name) if name == CARD else files[name] for name in files.keys() - figures}
    if METADATA in files:
        text = (path / METADATA).read_text(encoding="utf-8")
        for changed, sha256 in manifest.files.items():
            text = text.replace(sha256, files.get(changed, sha256))
        write_text(path / METADATA, text)
        files[METADATA] = sha256_of(path / METADATA)
    replace(manifest, configs=configs, files=dict(sorted(files.items())), references_sha256=hashed).write(path)


def _remove_figures(path: Path) -> None:
    """Remove the figures, whose words and counts are of erased items too, and their captions in the card."""
    remove_for_good(path / FIGURES_FOLDER)
    note = "Removed with erased items; the next version shows figures of its own rows."
    text = (path / CARD).read_text(encoding="utf-8") if (path / CARD).is_file() else ""
    write_text(path / CARD, re.sub(r"(?ms)^## Figures$.*?(?=^## )", f"## Figures\n\n*{note}*\n\n", text, count=1))
