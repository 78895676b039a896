"""Erase cases from a study: their replies, judgements and people's answers, then make the figures again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.benchmark.judge.judgements import judgements_folder
from h2htalk.benchmark.studies.run_study import live_replies, score_now
from h2htalk.benchmark.studies.study_folder import ERASED, LOCK, PEOPLE, read_study
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_file, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure, marked
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import fingerprint_of
from h2htalk.errors import ConfigError, DataError, MissingExtraError


@marked
def erase_from_study(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the cases that hold words of erased ids; complete an erasure that was interrupted.

    Raises DataError where the folder is damaged, or every case would be erased.
    """
    with writer_lock(path / LOCK, WAIT):
        return _erase(path, erased)


def _erase(path: Path, erased: ErasedIds) -> FolderErasure:
    remove_partial_files(path)
    study = read_study(path)
    before = study.erased_ids()
    gone = {case.id for case in study.cases if case.id in before or erased.covers_item(case.id, case.to_dict())}
    left = [case for case in study.cases if case.id not in gone]
    ids = before | gone
    if not left:
        raise DataError(f"{path}: every case of this study is erased; delete the folder")
    if not ids:
        return FolderErasure()
    hashes = study.erased_replies() | {reply.text_hash for reply in live_replies(study) if reply.case in ids}
    if new := sorted(gone - before):
        # The hashes of the replies, by which people's answers are found again if this is interrupted.
        rest, replies = fingerprint_of(left, study.personas), sorted(hashes)
        lines = [{"id": one, "items": rest, "replies": replies} for one in new]
        write_jsonl(path / ERASED, [*study.erased_lines(), *lines])
    for file in sorted(path.glob("calls/*.jsonl")):
        filter_file(file, lambda record: _case_of(record, 2) not in ids)
    for file in sorted(judgements_folder(path).glob("*.jsonl")):
        filter_file(file, lambda record: _case_of(record, 3) not in ids)
    for file in sorted([path / PEOPLE, *path.glob("adjudication/*.jsonl")]):
        if file.exists():
            filter_file(file, lambda record: _read_text(record) not in hashes and _source(record) not in ids)
    for file in sorted((path / "cases").glob("*")):
        if file.suffix in (".jsonl", ".parquet"):
            filter_file(file, lambda record: record.get("id") not in ids)
    messages = []
    try:
        score_now(path)
    except (ConfigError, DataError, MissingExtraError) as error:
        for name in ("observations.parquet", "summary.json", "report.html"):
            (path / name).unlink(missing_ok=True)
        messages = [f"its figures were removed ({error}): make them again with `h2htalk study score {path}`"]
    return FolderErasure(len(gone), frozenset(ids), tuple(messages))


def _case_of(record: Mapping[str, Any], before: int) -> str:
    """The case in the id of a request, ARM/PART/CASE/PLACE, or of a judgement, with a hash before it."""
    return "/".join(str(record.get("id")).split("/")[before:-1])


def _source(record: Mapping[str, Any]) -> str:
    """The case that an item of a round is from."""
    source = record.get("source")
    return str(source.get("id")) if isinstance(source, Mapping) else ""


def _read_text(record: Mapping[str, Any]) -> str:
    """The hash of the reply that people read, of a line of their answers or an item of a round."""
    item = record.get("item")
    name = item.get("id") if isinstance(item, Mapping) else record.get("reply")
    return str(name).partition(":")[0]
