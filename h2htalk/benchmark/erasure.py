"""Erase items from a run: prompt, answer and score go, the protocol stays, and figures are made without them."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from h2htalk.benchmark.baselines import BASELINES, NEEDS_REFERENCES
from h2htalk.benchmark.run_data import read_run_data
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.summary import read_summary
from h2htalk.data.append_log import writer_lock
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_jsonl, filter_parquet, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure
from h2htalk.data.files import read_jsonl, remove_file, write_jsonl
from h2htalk.data.run_folder import ERASED, RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, fingerprint_of
from h2htalk.errors import ConfigError, DataError, MissingExtraError


def erase_from_run(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted.

    Raises:
        DataError: another process writes the run, or its scenarios are not those of its signature.
    """
    folder = RunFolder(path)
    folder.read_run()
    with writer_lock(folder.shard, "wait for it, then start the same erasure again"):
        remove_partial_files(path)
        split, before = folder.split(), folder.erased()
        gone = {one.id for one in split.scenarios if one.id in before or erased.covers_item(one.id, one.to_dict())}
        left = [one for one in split.scenarios if one.id not in gone]
        if not left:
            raise DataError(f"{path}: every item of this run is erased; delete the folder")
        ids = before.keys() | gone
        if not ids:
            return FolderErasure()
        if gone - before.keys():
            _mark(folder, split, ids, left)
        for log in sorted([*folder.path.glob("responses/*.jsonl"), *folder.baselines.glob("*.jsonl")]):
            filter_jsonl(log, lambda line: line.get("id") not in ids)
        _draw_again(folder, left)
        for scores in sorted(folder.path.glob("scores/*.parquet")):
            filter_parquet(scores, lambda row: row.get("id") not in ids)
        for inputs in sorted((folder.inputs / "split").glob("*.jsonl")):
            filter_jsonl(inputs, lambda line: line.get("id") not in ids)
        return FolderErasure(len(gone), frozenset(ids), tuple(_score_again(folder, len(ids))))


def _mark(folder: RunFolder, split: Split, ids: Collection[str], left: Sequence[Scenario]) -> None:
    """Record what is erased, and the fingerprint of the rest, by which the run is still recognised."""
    signed = folder.signature().protocol.get("items", "")
    if folder.signed_items(split.fingerprint, signed) != signed:
        raise DataError(f"{folder.inputs}: its scenarios are not those of the run's signature; put them back")
    rest = fingerprint_of(left, split.personas)
    write_jsonl(folder.path / ERASED, ({"id": one, "items": rest} for one in sorted(ids)))


def _draw_again(folder: RunFolder, left: Sequence[Scenario]) -> None:
    """Replace the answers of baselines that are references of no item that is left: they may be of an erased one."""
    texts = {reference for scenario in left for reference in scenario.references}
    for name in NEEDS_REFERENCES:
        path = folder.baselines / f"{name}.jsonl"
        if path.exists():
            lines = [line for _, line in read_jsonl(path)]
            drawn = {answer.id: answer for answer in BASELINES[name](left, left)}
            wrong = {line["id"] for line in lines if "text" in line and line["text"] not in texts}
            if wrong:
                write_jsonl(path, (drawn[line["id"]].to_dict() if line["id"] in wrong else line for line in lines))


def _score_again(folder: RunFolder, erased: int) -> list[str]:
    """Make the figures and the page without the erased items; where that is impossible, remove them and say so."""
    try:
        summary = read_summary(folder.summary)
        if summary.counts.erased == erased and folder.page.is_file():
            return []
        keys = summary.signature.protocol
        if "references_sha256" in keys:
            raise ConfigError("it was scored with private references")
        score_run_data(read_run_data(folder.path), open_metrics(keys["embedder"].partition("@")[0], keys["rouge"]))
        return []
    except (ConfigError, DataError, MissingExtraError) as error:
        scored = folder.summary.exists()
        for path in (folder.summary, folder.page):
            remove_file(path)
        shutil.rmtree(folder.tables, ignore_errors=True)
        return (
            [f"its figures were removed ({error}): make them again with `h2htalk score {folder.path}`"]
            if scored
            else []
        )
