"""A scored study, with its tables and what a reader of them must know first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from h2htalk.benchmark.observations import NOT_ASKED, TIED, Observation
from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.replies.reply_endings import count_endings
from h2htalk.benchmark.run_facts import latency
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.benchmark.studies.points.point_answers import TRIVIAL_ARMS, AnsweredReply
from h2htalk.benchmark.studies.report.instruction_tables import instruction_tables
from h2htalk.benchmark.studies.report.judge_calibration import calibration_table
from h2htalk.benchmark.studies.report.memory_tables import memory_tables
from h2htalk.benchmark.studies.report.raters_tables import (
    judge_note,
    planted_table,
    raters_table,
    with_judge,
)
from h2htalk.benchmark.studies.report.reply_warnings import reply_warnings, unread_warnings
from h2htalk.benchmark.studies.report.safety_tables import log_tables, sap_tables
from h2htalk.benchmark.studies.report.study_tables import name_of, title_of
from h2htalk.benchmark.studies.report.table_words import WORDS, worded_table
from h2htalk.chat.engines import model_name
from h2htalk.data.responses import FILTERED_REPLY, Response
from h2htalk.errors import counted
from h2htalk.text.tables import Table

TABLES = {
    "sap": sap_tables,
    "instructions": instruction_tables,
    "memory": memory_tables,
    "logs": log_tables,
}


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A scored study: its observations, and every reply of the running conversations with what is known of it.

    `failed`: calls without an answer, of the model and the judge; the same command repeats those. `incomplete`: there
    are such calls, or replies of the judge that could not be read.
    """

    study: Study
    observations: tuple[Observation, ...]
    replies: tuple[AnsweredReply, ...]
    failed: int
    judge: str
    planted: tuple[PlantedCheck, ...] | None = None  # None: the judge was not checked

    @property
    def incomplete(self) -> bool:
        return self.failed > 0 or any(reply.unread for reply in self.replies)

    @property
    def is_doubted(self) -> bool:
        """Whether the study has a judge that was not checked, or did not pass all of its planted replies."""
        is_checked = self.planted and all(check.passed for check in self.planted)
        return bool(self.judge) and not is_checked

    @property
    def model(self) -> str:
        """The model's name, without a path or an address."""
        return model_name(self.study.spec.ask.model)

    @property
    def titles(self) -> dict[str, str]:
        """The titles of the study's arms."""
        return {arm: title_of(arm, self.study.spec.study) for arm in self.study.spec.arms}

    @property
    def cases(self) -> str:
        """The name and version of the cases, as pages show it."""
        split = self.study.split
        return f"{split.name} {split.version}, {counted(len(split.cases), 'case')}"

    def table(self) -> Any:
        """Return the observations as a `pyarrow.Table`, whose columns are the fields of `Observation`."""
        import pyarrow.parquet as pq

        return pq.read_table(self.study.folder.scores(self.study.signature))

    def tables(self) -> list[Table]:
        """Return the tables, the most important first."""
        spec = self.study.spec
        arms_with_values = {row.arm for row in self.observations}
        trivial = [arm for arm in TRIVIAL_ARMS if arm in arms_with_values]
        figures = []
        for table in TABLES[spec.study](self.observations, [*spec.arms, *trivial]):
            if table.rows:
                figures.append(with_judge(table, self.judge, self.planted))
        tables = figures[:2]
        tables += raters_table(self.observations, self.judge, self.planted, name_of)
        tables += planted_table(self.planted, self.titles)
        if self.judge:
            tables += calibration_table(self.replies, self.titles)
        return [*tables, *figures[2:], self._replies_table()]

    def _replies_table(self) -> Table:
        """Return how the replies of each arm ended, and how long they took."""
        lines = []
        for arm, title in self.titles.items():
            answers = self.study.answers_of(arm)
            replies = [answer for answer in answers if isinstance(answer, Response)]
            endings = count_endings(replies)
            median, percentile = latency(replies) or (None, None)
            line = (
                title,
                endings.replies,
                endings.filtered,
                endings.refused,
                endings.cut,
                sum(endings.empty.values()),
                median,
                percentile,
            )
            lines.append(line)
        return worded_table("replies", lines)

    def warnings(self) -> list[str]:
        """Return what a reader of the tables must know first."""
        warnings = [*self._failures(), *self._ties()]
        warnings += unread_warnings(self.study.spec, self.replies, self.planted)
        warnings += reply_warnings(self.study, self.replies)
        if self.is_doubted:
            warnings.append(f"{judge_note(self.judge, self.planted)} {WORDS['unchecked']}")
        not_asked = self._count_unscored(NOT_ASKED)
        if not_asked and not self.judge:
            values = counted(not_asked, "value")
            advice = "name a --judge, or ask people (h2htalk study open-round)"
            warnings.append(f"{values} unscored: code cannot answer those points; {advice}")
        return warnings

    def _count_unscored(self, reason: str) -> int:
        return sum(row.unscored == reason for row in self.observations)

    def _failures(self) -> Iterator[str]:
        """Yield how many calls failed, and the first message of each kind of failure."""
        if not self.failed:
            return
        calls = counted(self.failed, "call")
        yield (
            f"incomplete: {calls} without an answer; the same command repeats them; where --max-cost or "
            "--judge-max-cost stopped them, raise that"
        )
        first_messages = {}
        for answered in reversed(self.replies):
            reply = answered.reply
            if reply.message and reply.failure != FILTERED_REPLY:
                first_messages[reply.failure] = reply.message
        for failure, message in first_messages.items():
            yield f"{failure}: {message}"
        first_of_judge = {}
        for answered in reversed(self.replies):
            problem = answered.judge_failure
            if problem:
                reason = problem.partition(":")[0]
                first_of_judge[reason] = problem.replace("--max-cost", "--judge-max-cost")
        for problem in first_of_judge.values():
            yield f"judge: {problem}"

    def _ties(self) -> Iterator[str]:
        """Yield how many values people are tied about, and the commands that ask one more person."""
        number = self._count_unscored(TIED)
        if not number:
            return
        questions = []
        if any(reply.tied for reply in self.replies):
            questions.append("safety")
        tied_points = 0
        for reply in self.replies:
            tied_points += sum(point.unscored == TIED for point in reply.points)
        if tied_points:
            questions.append("points")
        command = f"h2htalk study open-round {self.study.path} --out ROUND --tied --ask"
        commands = "; ".join(f"{command} {question}" for question in questions)
        yield (
            f"{counted(number, 'value')} unscored: people are tied; ask one more person, who has not answered yet: "
            f"{commands}"
        )
