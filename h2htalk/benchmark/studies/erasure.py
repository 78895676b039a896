"""Erase cases from a study: replies, judgements and people's answers go, and figures are made again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

from h2htalk.benchmark.studies.run_study import live_replies, score_now
from h2htalk.benchmark.studies.study_folder import LOCK, read_study
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.erasure.erased_ids import Record
from h2htalk.data.erasure.filter_files import ERASED
from h2htalk.data.erasure.folder_kinds import ErasableFolder
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import fingerprint_of
from h2htalk.errors import ConfigError, DataError, MissingExtraError


class ErasableStudy(ErasableFolder):
    """A study: what people answered is known by the hashes of the replies that they read."""

    def locked(self) -> AbstractContextManager[None]:
        return writer_lock(self.path / LOCK, WAIT)

    def erased(self) -> frozenset[str]:
        study = read_study(self.path)
        return study.erased_ids() | study.erased_replies()

    def items(self) -> Iterator[tuple[str, Record]]:
        return ((case.id, case.to_dict()) for case in read_study(self.path).cases)

    def record(self, gone: frozenset[str]) -> None:
        study = read_study(self.path)
        if not (left := [case for case in study.cases if case.id not in gone]):
            raise DataError(f"{self.path}: every case of this study is erased; delete the folder")
        replies = sorted({reply.text_hash for reply in live_replies(study) if reply.case in gone})
        rest, lines = fingerprint_of(left, study.personas), study.erased_lines()
        new = sorted(gone - study.erased_ids())
        write_jsonl(self.path / ERASED, [*lines, *({"id": one, "items": rest, "replies": replies} for one in new)])

    def remake(self) -> Iterator[str]:
        try:
            score_now(self.path)
        except (ConfigError, DataError, MissingExtraError) as error:
            yield f"its figures were removed ({error}): make them again with `h2htalk study score {self.path}`"
