"""Erase items from a run: prompt, answer and score go, the protocol stays, and figures are made without them."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.baselines import BASELINES, NEEDS_REFERENCES
from h2htalk.benchmark.judge.judgements import item_of, judgements_folder
from h2htalk.benchmark.run import read_run_data
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.summary import Summary
from h2htalk.data.append_log import writer_lock
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_file, remove_for_good, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure, marked
from h2htalk.data.files import read_json_object, read_jsonl, remove_file, write_jsonl
from h2htalk.data.run_folder import ERASED, RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import fingerprint_of
from h2htalk.errors import ConfigError, DataError, MissingExtraError


@marked
def erase_from_run(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted.

    Raises DataError where another process writes the run, or its scenarios are not those of its signature.
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
            signed = folder.signature().protocol.get("items", "")
            if folder.signed_items(split.fingerprint, signed) != signed:
                raise DataError(f"{folder.inputs}: its scenarios are not those of the run's signature; put them back")
            rest = fingerprint_of(left, split.personas)  # by which the run is still recognised
            write_jsonl(path / ERASED, ({"id": one, "items": rest} for one in sorted(ids)))
        answers, inputs = [*path.glob("responses/*"), *folder.baselines.glob("*")], (folder.inputs / "split").glob("*")
        for file in sorted([*answers, *path.glob("scores/*"), *inputs]):
            if file.suffix in (".jsonl", ".parquet"):
                filter_file(file, lambda record: record.get("id") not in ids)
        _erase_judgements(path, ids)
        _draw_again(folder, left)
        return FolderErasure(len(gone), frozenset(ids), tuple(_score_again(folder, len(ids))))


def _erase_judgements(path: Path, ids: Collection[str]) -> None:
    """Remove what judges and people said of erased items; a calibration and a plan of labels rest on all items."""
    judgements = judgements_folder(path)
    for name in ("calibration.json", "label_plan.json"):
        remove_for_good(judgements / name)
    for file in sorted([*judgements.glob("*.jsonl"), *path.glob("adjudication/*.jsonl")]):
        filter_file(file, lambda record: item_of(_judged(record)) not in ids)


def _judged(record: Mapping[str, Any]) -> str:
    """The id of the judged answer in a judgement, a rating, or an item of a rating round."""
    item = record.get("item")
    return str(record.get("answer") or (item if isinstance(item, Mapping) else record).get("id"))


def _draw_again(folder: RunFolder, left: Sequence[Scenario]) -> None:
    """Replace the answers of baselines that are references of no item that is left: they may be of an erased one."""
    texts = {reference for scenario in left for reference in scenario.references}
    for name in NEEDS_REFERENCES:
        if (path := folder.baselines / f"{name}.jsonl").exists():
            drawn = {answer.id: answer.to_dict() for answer in BASELINES[name](left, left)}
            lines = [line for _, line in read_jsonl(path)]
            write_jsonl(
                path, [drawn[one["id"]] if "text" in one and one["text"] not in texts else one for one in lines]
            )


def _score_again(folder: RunFolder, erased: int) -> list[str]:
    """Make the figures and the page without the erased items; where that is impossible, remove them and say so."""
    scored = folder.summary.exists()
    try:
        # Its hashes are those of the scores before the erasure.
        summary = Summary.from_dict(read_json_object(folder.summary, missing_ok=True), str(folder.summary))
        keys = summary.signature.protocol
        if summary.counts.erased != erased or not folder.page.is_file():
            if "references_sha256" in keys:
                raise ConfigError("it was scored with private references")
            score_run_data(read_run_data(folder.path), open_metrics(keys["embedder"].partition("@")[0], keys["rouge"]))
    except (ConfigError, DataError, MissingExtraError) as error:
        for path in (folder.summary, folder.page):
            remove_file(path)
        shutil.rmtree(folder.tables, ignore_errors=True)
        if scored:
            return [f"its figures were removed ({error}): make them again with `h2htalk score {folder.path}`"]
    return []
