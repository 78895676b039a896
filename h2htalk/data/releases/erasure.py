"""Erase items from a release's folder: rows, votes, private references. What was published before does not change."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_jsonl, filter_parquet, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure
from h2htalk.data.files import remove_file, sha256_of, write_jsonl, write_problem, write_text
from h2htalk.data.parquet import read_parquet
from h2htalk.data.releases.release_folder import (
    METADATA,
    PRIVATE_REFERENCES,
    TOMBSTONES,
    VOTES,
    Manifest,
    data_file,
    private_folder,
    read_manifest,
    read_tombstones,
    verify_files,
)
from h2htalk.errors import DataError

# Beside the release while its files change: they do not have the hashes that release.json records.
_PENDING = ".erasing"


def erase_from_release(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted.

    Their ids are added to `tombstones.jsonl`, so that they leave other copies of the release as well.

    Raises:
        DataError: a file was changed by somebody else, or cannot be written.
    """
    manifest, pending = read_manifest(path), path.resolve().with_name(f".{path.resolve().name}{_PENDING}")
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
    return FolderErasure(len(gone), frozenset(ids), (message,))


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where this process builds a release and its private folder."""
    name = release.resolve().name
    return release.with_name(f".{name}.{os.getpid()}.part"), release.with_name(f".{name}.private.{os.getpid()}")


def remove_leftovers(release: Path) -> list[Path]:
    """Remove what builds of a release left when they were killed; return the paths. Nobody may build it meanwhile."""
    pattern = re.compile(rf"\.{re.escape(release.resolve().name)}\.([0-9]+\.part|private\.[0-9]+)")
    left = [path for path in release.parent.glob(".*") if pattern.fullmatch(path.name)]
    try:
        for path in left:
            shutil.rmtree(path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    return left


def _remove(path: Path, manifest: Manifest, ids: frozenset[str]) -> None:
    """Remove the rows of items, and record the new hashes and counts. Can be repeated after a kill."""
    import pyarrow.parquet as pq

    remove_partial_files(path)
    configs: dict[str, dict[str, int]] = {}
    files = dict(manifest.files)
    for config, splits in manifest.configs.items():
        column = "item" if config == VOTES else "id"
        for split in splits:
            name = data_file(config, split)
            filter_parquet(path / name, lambda row, column=column: row[column] not in ids)  # type: ignore[misc]
            configs.setdefault(config, {})[split] = pq.read_metadata(path / name).num_rows
            files[name] = sha256_of(path / name)
    references = private_folder(path) / PRIVATE_REFERENCES
    if private := references.is_file():
        filter_jsonl(references, lambda line: line.get("id") not in ids)
    for name in {METADATA} & files.keys():
        text = (path / name).read_text(encoding="utf-8")
        for changed, sha256 in manifest.files.items():
            text = text.replace(sha256, files[changed])
        write_text(path / name, text)
    for name in {METADATA, TOMBSTONES} & {*files, TOMBSTONES}:
        files[name] = sha256_of(path / name)
    hashed = sha256_of(references) if private and manifest.references_sha256 else manifest.references_sha256
    replace(manifest, configs=configs, files=dict(sorted(files.items())), references_sha256=hashed).write(path)
