"""The rating R of each answer (Eq. 3): the mean of a panel's judgements, or people's rating in its place.

`run.json` names the judges whose mean counts in the tables (`judging`); `adjudication/ratings.jsonl` holds what people
gave, a line an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from h2htalk.benchmark.judge.judgements import Judgements, answer_id, read_judge
from h2htalk.benchmark.judge.rubric import HIGHEST, Judgement
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.records import read_record
from h2htalk.data.responses import Answers, Failure, Response, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError

KEY = "judging"  # in run.json
LONGEST = 100_000  # characters of an answer that is judged
TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Judging:
    """Which judgements count in a run's tables: of these judges, the first so many of each answer."""

    judges: Annotated[tuple[Annotated[str, Field(pattern="^[0-9a-f]{16}$")], ...], Field(min_length=1)]
    judgements: Annotated[int, Field(ge=1, le=100)] = 1
    scope: Literal["levels", "all"] = "levels"

    def judged(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return the scenarios whose answers are judged."""
        return [one for one in scenarios if self.scope == "all" or SUBTASKS[one.subtask].level]


@dataclass(frozen=True, slots=True)
class PeopleRating:
    """What people gave an answer: the mean of `annotators` ratings, 0 to 5, in a round.

    `answer` is the id of the judged answer (`judgements.answer_id`); in a study `REPLY:QUESTION`, with
    the id of a reply (`StudyReply.id`).
    """

    answer: str
    rating: Annotated[float, Field(ge=0, le=HIGHEST)]
    annotators: Annotated[int, Field(ge=1)]
    round: str


@dataclass(frozen=True, slots=True)
class AnswerRating:
    """R of one answer. `judges`: each judge's mean, in the panel's order; `rating` is people's where `people`.

    `unjudged` says why there is no rating, else None. `failed`: the first failed call, which a restart makes again.
    `points`: the share of yes of each point, 0 to 1; empty where a judgement is unscored. `unread`: what is wrong with
    the first reply of a judge that could not be read.
    """

    rating: float | None
    judges: tuple[float | None, ...] = ()
    people: bool = False
    unjudged: str | None = None
    failed: str | None = None
    points: Mapping[str, float] = field(default_factory=dict)
    unread: str = ""

    @property
    def by_judges(self) -> float | None:
        """The mean of the judges; None where one gave no rating."""
        return whole_mean(self.judges)

    @property
    def known(self) -> list[float]:
        """The means of the judges that gave a rating."""
        return [mean for mean in self.judges if mean is not None]


def whole_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of values; None where one is missing, or there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def write_judging(folder: RunFolder, judging: Judging) -> None:
    """Write down which judgements count."""
    folder.write_facts(KEY, TypeAdapter(Judging).dump_python(judging, mode="json"))


def read_judging(folder: RunFolder) -> Judging | None:
    """Read which judgements count, None in a run without any. Raises DataError where run.json was edited."""
    raw = folder.read_run().get(KEY)
    return None if raw is None else read_record(Judging, raw, f"{folder.path / 'run.json'}: {KEY}")


def require_judging(folder: RunFolder) -> Judging:
    """As `read_judging`; raises ConfigError in a run without any."""
    if (judging := read_judging(folder)) is None:
        raise ConfigError(f"{folder.path}: was not judged; run `h2htalk judge run` first")
    return judging


def write_people_ratings(folder: RunFolder, ratings: Iterable[PeopleRating]) -> None:
    """Write all ratings that people gave."""
    write_jsonl(folder.path / "adjudication" / "ratings.jsonl", map(asdict, ratings))


def list_people_ratings(folder: RunFolder) -> list[PeopleRating]:
    """Read all ratings that people gave. Raises DataError; names file and line."""
    path = folder.path / "adjudication" / "ratings.jsonl"
    lines = read_jsonl(path) if path.exists() else ()
    return [read_record(PeopleRating, record, where) for where, record in lines]


def read_people_ratings(folder: RunFolder) -> dict[str, PeopleRating]:
    """Read people's ratings, by the id of the judged answer. Raises DataError; names file and line."""
    return {one.answer: one for one in list_people_ratings(folder)}


def rate_answers(
    folder: RunFolder, judging: Judging, answers: Answers, scenarios: Iterable[Scenario]
) -> dict[SampleKey, AnswerRating]:
    """Rate the answers of a run.

    Args:
        folder: the run.
        judging: which judgements count.
        answers: of the run.
        scenarios: of the run; those in the scope of the judging count.
    """
    people, subtasks = read_people_ratings(folder), {s.id: s.subtask for s in judging.judged(scenarios)}
    panel = [Judgements(folder.path, read_judge(folder.path, name)) for name in judging.judges]
    ratings: dict[SampleKey, AnswerRating] = {}
    for key, answer in answers.items():
        if key[0] not in subtasks or not isinstance(answer, Response):
            continue
        if len(answer.answer) > LONGEST:
            ratings[key] = AnswerRating(None, (None,) * len(panel), unjudged=TOO_LONG)
            continue
        judged = [one.of(answer, subtasks[key[0]], judging.judgements) for one in panel]
        means = tuple(whole_mean([one.rating for one in own]) for own in judged)
        replies = (reply for one in panel for reply in one.outcomes(answer, judging.judgements))
        failed = next((one.message or one.reason for one in replies if isinstance(one, Failure)), None)
        unjudged = next((one.unscored for own in judged for one in own if one.unscored), None)
        points = _points(judged) if unjudged is None else {}
        unread = next((one.message for own in judged for one in own if one.message), "")
        own = AnswerRating(None, means, unjudged=unjudged, failed=failed, points=points, unread=unread)
        own = replace(own, rating=own.by_judges)
        if (by_people := people.get(answer_id(answer))) is not None:
            own = replace(own, rating=by_people.rating, people=True, unjudged=None, failed=None, unread="")
        ratings[key] = own
    return ratings


def _points(judged: Sequence[Sequence[Judgement]]) -> dict[str, float]:
    """The share of yes of each point over all judgements of an answer."""
    answers: dict[str, list[bool]] = {}
    for own in judged:
        for one in own:
            for name, yes in one.points.items():
                answers.setdefault(name, []).append(yes)
    return {name: fmean(yes) for name, yes in answers.items()}
