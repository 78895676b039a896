"""Erase items from a run: the protocol stays, and figures are made without them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from h2htalk.benchmark.run import read_run_data
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.summary import NEEDS_REFERENCES, Summary, find_baseline, write_baselines
from h2htalk.data.erasure.erased_ids import ERASED, Record
from h2htalk.data.erasure.folder_kinds import ErasableFolder
from h2htalk.data.files import read_json_object, read_jsonl, remove_file, write_jsonl, writer_lock
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import Split, fingerprint_of
from h2htalk.errors import ConfigError, DataError, MissingExtraError


class ErasableRun(ErasableFolder):
    """A run: prompt, answer and score of an item go."""

    folder_type: type[RunFolder] = RunFolder

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.folder = self.folder_type(path)
        self.folder.read_run()

    def locked(self) -> AbstractContextManager[None]:
        return writer_lock(self.folder.shard, "wait for it, then start the same erasure again")

    def items(self) -> Iterator[tuple[str, Record]]:
        return ((one.id, one.to_dict()) for one in self.folder.split().items)

    def left_of(self, split: Split, gone: frozenset[str]) -> str:
        """The fingerprint of the items that stay. Raises DataError where none does, or they are not those signed."""
        signed = self.folder.signature().protocol.get("items", "")
        if self.folder.signed_items(split.fingerprint, signed) != signed:
            raise DataError(f"{self.folder.inputs}: not those of the {self.folder.kind}'s signature; put them back")
        if not (left := [one for one in split.items if one.id not in gone]):
            raise DataError(f"{self.path}: every item of this {self.folder.kind} is erased; delete the folder")
        return fingerprint_of(left, split.personas)

    def record(self, gone: frozenset[str]) -> None:
        split, ids = self.folder.split(), self.erased() | gone
        rest = self.left_of(split, ids)  # by which the run is still recognised
        left = [one for one in split.scenarios if one.id not in ids]
        engine, _, name = str(self.folder.read_run()["spec"].get("model")).partition(":")
        if engine == "baseline" and name in NEEDS_REFERENCES:  # its answers may be references of these items
            quoted = {text for one in split.scenarios if one.id in gone for text in one.references}
            drawn = {one.id: one.to_dict() for one in find_baseline(name)(left, left)}
            lines = [line for _, line in read_jsonl(self.folder.shard, torn_tail=True)]
            lines = [drawn.get(one["id"], one) if one.get("text") in quoted else one for one in lines]
            write_jsonl(self.folder.shard, lines)
        write_jsonl(self.path / ERASED, ({"id": one, "items": rest} for one in sorted(ids)))

    def remake(self) -> Iterator[str]:
        """Score again; where that fails, say which command does it."""
        scored = self.folder.summary.exists()
        try:
            self.score()
        except (ConfigError, DataError, MissingExtraError) as error:
            remove_file(self.folder.summary)
            if scored:
                yield f"its figures were removed ({error}); {self.folder.score_again} ({self.path})"

    def score(self) -> None:
        """Draw the baselines again, whose answers may be references of erased items; then score."""
        folder, split = self.folder, self.folder.split()
        if folder.baselines.is_dir():
            write_baselines(folder, split, split)
        # Its hashes are those of the scores before the erasure.
        raw = read_json_object(folder.summary, missing_ok=True)
        keys = Summary.from_dict(raw, str(folder.summary)).signature.protocol
        if "references_sha256" in keys:
            raise ConfigError("it was scored with private references")
        score_run_data(read_run_data(self.path), open_metrics(keys["embedder"].partition("@")[0], keys["rouge"]))
