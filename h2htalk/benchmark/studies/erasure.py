"""Erase cases from a study: replies, judgements and people's answers go, and figures are made again."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.benchmark.erasure import ErasableRun
from h2htalk.benchmark.studies.run_study import live_replies, score_now
from h2htalk.benchmark.studies.study_folder import StudyFolder, read_study
from h2htalk.data.erasure.filter_files import ERASED
from h2htalk.data.files import write_jsonl
from h2htalk.errors import ConfigError, DataError, MissingExtraError


class ErasableStudy(ErasableRun):
    """A study: what people answered is known by the hashes of the replies that they read."""

    folder_type = StudyFolder

    def erased(self) -> frozenset[str]:
        replies = StudyFolder(self.path).erased_replies()
        return frozenset(replies).union(*replies.values())

    def record(self, gone: frozenset[str]) -> None:
        study, replies = read_study(self.path), StudyFolder(self.path).erased_replies()
        rest = self.left_of(study.split, gone)
        hashes = sorted({reply.text_hash for reply in live_replies(study) if reply.case in gone})
        known = dict.fromkeys(sorted(gone), hashes) | replies
        write_jsonl(self.path / ERASED, ({"id": one, "items": rest, "replies": own} for one, own in known.items()))

    def remake(self) -> Iterator[str]:
        try:
            score_now(self.path)
        except (ConfigError, DataError, MissingExtraError) as error:
            yield f"its figures were removed ({error}): make them again with `h2htalk study score {self.path}`"
