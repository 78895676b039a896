"""Erase items from a release's folder: rows, votes, figures, private references. What was published does not change."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import MARK, filter_file, remove_for_good, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure, marked
from h2htalk.data.files import read_json_object, refuse_links, sha256_of, write_jsonl, write_text
from h2htalk.data.releases.release_folder import (
    CARD,
    FIGURES_FOLDER,
    METADATA,
    PRIVATE_REFERENCES,
    SPEC,
    TOMBSTONES,
    Manifest,
    data_file,
    item_rows,
    private_folder,
    read_manifest,
    read_tombstones,
    verify_files,
)
from h2htalk.errors import DataError

BEGUN = "begun\n"  # in the mark of a release whose files were changed
# On a card without its figures, until they are drawn again or the next version is built.
NO_FIGURES = "*Removed with erased items; the next version shows figures of its own rows.*"


@marked
def erase_from_release(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted. Raises DataError.

    Their ids are added to `tombstones.jsonl`, so that they leave other copies of the release as well.
    """
    for folder in (path, private := private_folder(path)):
        refuse_links(folder)
    if private.is_symlink():
        raise DataError(f"{private}: is a symbolic link, and may lead to other data; replace it by its target")
    manifest, mark = read_manifest(path), path / MARK
    # While files change they do not have the hashes that release.json records.
    begun = mark.is_file() and mark.read_text(encoding="utf-8") == BEGUN
    if not begun:
        verify_files(path, manifest)
    before = read_tombstones(path / TOMBSTONES)
    gone = {str(row["id"]) for row in item_rows(path, manifest) if erased.covers(row) or row["id"] in before}
    ids = before | gone
    if gone or begun:
        write_text(mark, BEGUN)
        write_jsonl(path / TOMBSTONES, ({"id": name} for name in sorted(ids)))
        _remove(path, manifest, ids)
    if not ids:
        return FolderErasure()
    message = (
        f"what was published as {manifest.version} still holds the items: build the next version with this folder as "
        "`previous`, and do not publish this folder"
    )
    card = read_json_object(private / SPEC, missing_ok=True).get("card")  # nothing in an analysis tells of whom it is
    analysis = str(card.get("analysis", "")) if isinstance(card, dict) else ""
    named = [f"the analysis {analysis} shows words of the items: delete it"] if os.path.isdir(analysis) else []
    return FolderErasure(len(gone), frozenset(ids), (message, *named))


def lost_figures(release: Path) -> bool:
    """Whether an erasure removed the figures from the card of a release."""
    return (release / CARD).is_file() and NO_FIGURES in (release / CARD).read_text(encoding="utf-8")


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where a release and its private folder are built, by one process at a time."""
    own, private = release.resolve(), private_folder(release)
    return own.with_name(f".{own.name}.part"), own.with_name(f".{private.name}.part")


def whole_release(path: Path, base: Path) -> Path:
    """The release beside which a command, in `base`, made a folder that a kill has left; else the folder itself."""
    inside = (one for one in (path, *path.parents) if base in one.parents)
    return next((one.with_name(one.stem[1:]) for one in inside if re.fullmatch(r"\..+\.part", one.name)), path)


def find_leftovers(release: Path) -> list[Path]:
    """What a command on a release left beside it when it was killed."""
    return [path for path in partial_folders(release) if path.is_dir()]


def remove_leftovers(release: Path) -> None:
    """Remove `find_leftovers`. Nobody may work there meanwhile."""
    for path in find_leftovers(release):
        remove_for_good(path)


@contextmanager
def work_folder(release: Path) -> Iterator[Path]:
    """Yield the path of a new folder beside a release, which goes at the end, or after a kill with the next command.

    Raises DataError where another process works there.
    """
    work = partial_folders(release)[0]
    with writer_lock(work / "made", WAIT):
        try:
            remove_for_good(work / "made")
            yield work / "made"
        finally:
            remove_leftovers(release)


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
    figures = {name for name in files if name.startswith(f"{FIGURES_FOLDER}/")}
    files = {name: files[name] for name in files.keys() - figures}
    if CARD in files:
        _clear_card(path / CARD, ids, bool(figures) or (path / FIGURES_FOLDER).is_dir())
        files[CARD] = sha256_of(path / CARD)
    remove_for_good(path / FIGURES_FOLDER)
    if METADATA in files:
        text = (path / METADATA).read_text(encoding="utf-8")
        for changed, sha256 in manifest.files.items():
            text = text.replace(sha256, files.get(changed, sha256))
        write_text(path / METADATA, text)
        files[METADATA] = sha256_of(path / METADATA)
    facts = {**manifest.facts}
    if isinstance(allowed := facts.get("allowed"), list):
        facts["allowed"] = [one for one in allowed if _item_allowed(str(one).partition(" ")[2]) not in ids]
    now = dict(sorted(files.items()))
    replace(manifest, configs=configs, files=now, references_sha256=hashed, facts=facts).write(path)


def _item_allowed(text: str) -> str:
    """The item of what an owner allowed, `GATE:ITEM=REASON`."""
    return text.partition(":")[2].partition("=")[0]


def _clear_card(card: Path, ids: frozenset[str], figures: bool) -> None:
    """Remove what was allowed of erased items, and the figures, whose words and counts are of such items too."""
    lines = card.read_text(encoding="utf-8").splitlines(keepends=True)
    plain = (html.unescape(line).replace("\\", "") for line in lines)
    text = "".join(line for line, own in zip(lines, plain, strict=True) if _item_allowed(own) not in ids)
    if figures:
        text = re.sub(r"(?ms)^## Figures$.*?(?=^## )", f"## Figures\n\n{NO_FIGURES}\n\n", text, count=1)
    write_text(card, text)
