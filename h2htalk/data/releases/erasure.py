"""Erase items from a release's folder: rows, votes, figures, private references. What was published does not change."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from h2htalk.data.erasure.erased_ids import Record, filter_file, remove_for_good
from h2htalk.data.erasure.folder_kinds import ErasableFolder
from h2htalk.data.files import WAIT, read_json_object, refuse_links, sha256_of, write_jsonl, write_text, writer_lock
from h2htalk.data.releases.release_folder import (
    CARD,
    FIGURES_FOLDER,
    METADATA,
    PRIVATE_REFERENCES,
    SPEC,
    TOMBSTONES,
    item_rows,
    private_folder,
    read_manifest,
    read_rows,
    read_tombstones,
    verify_files,
)
from h2htalk.errors import DataError

# On a card without its figures, until they are drawn again or the next version is built.
NO_FIGURES = "*Removed with erased items; the next version shows figures of its own rows.*"


class ErasableRelease(ErasableFolder):
    """A release: rows, votes, figures and private references of an item go; what was published does not change.

    The ids in its `tombstones.jsonl` leave other copies of the release as well.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        refuse_links(private := private_folder(path))
        if private.is_symlink():
            raise DataError(f"{private}: is a symbolic link, and may lead to other data; replace it by its target")

    def erased(self) -> frozenset[str]:
        return read_tombstones(self.path / TOMBSTONES)

    def items(self) -> Iterator[tuple[str, Record]]:
        manifest = read_manifest(self.path)
        verify_files(self.path, manifest)
        return ((str(row["id"]), row) for row in item_rows(self.path, manifest))

    def record(self, gone: frozenset[str]) -> None:
        write_jsonl(self.path / TOMBSTONES, ({"id": name} for name in sorted(self.erased() | gone)))

    def remake(self) -> tuple[str, ...]:
        """Record the new hashes and counts of the files that lost rows."""
        path, manifest, gone = self.path, read_manifest(self.path), self.erased()
        references, hashed = private_folder(path) / PRIVATE_REFERENCES, manifest.references_sha256
        if references.is_file():
            filter_file(references, lambda line: line.get("id") not in gone)
            hashed = hashed and sha256_of(references)
        if (path / CARD).is_file():
            _clear_card(path / CARD, gone)
        files = {name: sha256_of(path / name) for name in (*manifest.files, TOMBSTONES) if (path / name).is_file()}
        if METADATA in files:
            text = (path / METADATA).read_text(encoding="utf-8")
            for name, sha256 in manifest.files.items():
                text = text.replace(sha256, files.get(name, sha256))
            write_text(path / METADATA, text)
            files[METADATA] = sha256_of(path / METADATA)
        configs = {
            config: {split: sum(1 for _ in read_rows(path, manifest, config, split)) for split in splits}
            for config, splits in manifest.configs.items()
        }
        facts = {**manifest.facts}
        if isinstance(allowed := facts.get("allowed"), list):
            facts["allowed"] = [one for one in allowed if _item_allowed(str(one).partition(" ")[2]) not in gone]
        now = dict(sorted(files.items()))
        replace(manifest, configs=configs, files=now, references_sha256=hashed, facts=facts).write(path)
        return ()

    def outside(self) -> Iterator[str]:
        """Say what the figures of the card came from: nothing in an analysis tells whose words it shows."""
        yield (
            f"what was published as {read_manifest(self.path).version} still holds the items: build the next version "
            "with this folder as `previous`, and do not publish this folder"
        )
        card = read_json_object(private_folder(self.path) / SPEC, missing_ok=True).get("card")
        analysis = str(card.get("analysis", "")) if isinstance(card, dict) else ""
        if os.path.isdir(analysis):
            yield f"the analysis {analysis} shows words of the items: delete it"


def lost_figures(release: Path) -> bool:
    """Whether an erasure removed the figures from the card of a release."""
    return (release / CARD).is_file() and NO_FIGURES in (release / CARD).read_text(encoding="utf-8")


def partial_folders(release: Path) -> tuple[Path, Path]:
    """Where a release and its private folder are built, by one process at a time."""
    own, private = release.resolve(), private_folder(release)
    return own.with_name(f".{own.name}.part"), own.with_name(f".{private.name}.part")


def remove_leftovers(release: Path) -> list[Path]:
    """Remove and return what a command that was killed left beside a release."""
    left = [path for path in partial_folders(release) if path.is_dir()]
    for path in left:
        remove_for_good(path)
    return left


@contextmanager
def work_folder(release: Path) -> Iterator[Path]:
    """Yield the path of a new folder beside a release, which goes at the end, or after a kill with the next command.

    Raises DataError where another process works there.
    """
    made = partial_folders(release)[0] / "made"
    with writer_lock(made, WAIT):
        try:
            remove_for_good(made)
            yield made
        finally:
            remove_leftovers(release)


def _item_allowed(text: str) -> str:
    """The item of what an owner allowed, `GATE:ITEM=REASON`."""
    return text.partition(":")[2].partition("=")[0]


def _clear_card(card: Path, ids: frozenset[str]) -> None:
    """Remove what was allowed of erased items, and the figures, whose words and counts are of such items too."""
    lines = card.read_text(encoding="utf-8").splitlines(keepends=True)
    text = "".join(one for one in lines if _item_allowed(html.unescape(one).replace("\\", "")) not in ids)
    if f"]({FIGURES_FOLDER}/" in text:
        text = re.sub(r"(?ms)^## Figures$.*?(?=^## )", f"## Figures\n\n{NO_FIGURES}\n\n", text, count=1)
    write_text(card, text)
