"""The judgements of a run, one file a judge; the ratings that they make, and levels I to III as J (Eq. 3 and 4).

judgements/FINGERPRINT.json    what the judge is: model, prompts, temperature, rule
judgements/calls.jsonl         the judges' call store: `id` is `ITEM/SAMPLE/HASH OF THE ANSWER`, `sample` the number of
                               the judgement, `stage` the judge
judgements/secret.key          of the fences in the prompts; made before the first judgement
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

from pydantic import Field

from h2htalk.benchmark.judge.rubric import HIGHEST, RULE, Judgement, points_of, rubric_of
from h2htalk.benchmark.metrics.composite import (
    THRESHOLD,
    ItemScore,
    SampleScore,
    Scores,
    answer_hash,
    item_score,
    judged_score,
    whole_mean,
)
from h2htalk.benchmark.run import RunData
from h2htalk.benchmark.statistics import Cell, aggregate, aggregate_slices
from h2htalk.benchmark.summary import JUDGE_WARNING, JudgeFigures, Summary, by_sample, slices_of
from h2htalk.chat.protocol import Outcome, Reply
from h2htalk.data.files import json_line, read_json_object, read_jsonl, read_sealed, replacing, write_json, write_jsonl
from h2htalk.data.records import read_record
from h2htalk.data.responses import CALLS, Answers, FailedResponse, Failure, Response, SampleKey, read_answers
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, counted

JUDGEMENTS = "judgements"  # the folder of a run's or study's judgements
_MISSING = Failure("not judged", "no judgement is stored", 0)


@dataclass(frozen=True, slots=True)
class Judge:
    """What a judgement depends on, beside the answer.

    `model` has no path or address; `identity` adds a hash of a script's or a folder's content. `prompts` are templates
    by name; `reverse`: the rubric's qualities stand in the reverse order; `rule`: how R is made of the scores.
    """

    model: str
    identity: str
    prompts: Mapping[str, str]
    temperature: float | None = 0.0
    thinking: int | None = None
    reverse: bool = False
    rule: str = RULE

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of all this: the name of its files."""
        return hashlib.sha256(json_line(asdict(self)).encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """How tables name it: the model and the start of the fingerprint."""
        return f"{self.model}@{self.fingerprint[:8]}"

    @property
    def stage(self) -> str:
        """The name of its stage in the call store."""
        return f"judge-{self.fingerprint}"


def write_judge(run: Path, judge: Judge) -> None:
    """Write down what a judge is, before it is asked."""
    write_json(run / JUDGEMENTS / f"{judge.fingerprint}.json", asdict(judge))


def read_judge(run: Path, fingerprint: str) -> Judge:
    """Read a judge of a run. Raises DataError where there is none of that fingerprint, or the file was edited."""
    path = run / JUDGEMENTS / f"{fingerprint}.json"
    try:
        judge = read_record(Judge, read_json_object(path), str(path), advice="; restore it")
    except FileNotFoundError:
        raise DataError(f"{path}: not there: the run has no such judge; run `h2htalk judge run`") from None
    if judge.fingerprint != fingerprint:
        raise DataError(f"{path}: was edited; restore it, or judge again")
    return judge


def answer_id(answer: Response) -> str:
    """The id of a judged answer: its item, its sample and its hash."""
    return f"{answer.id}/{answer.sample}/{answer_hash(answer)}"


def item_of(judged: str) -> str:
    """The item's id in the id of a judged answer."""
    return judged.rsplit("/", 2)[0]


class Judgements:
    """The stored judgements of one judge."""

    def __init__(self, run: Path, judge: Judge) -> None:
        """Read them. Raises DataError for a line that is no reply; names file and line."""
        self._judge = judge
        self._replies = read_answers(run / JUDGEMENTS / CALLS, judge.stage)

    def of(self, answer: Response, subtask: str, number: int) -> list[Judgement]:
        """Return the first `number` judgements of an answer; those that are not stored are unscored."""
        rubric, judged = rubric_of(subtask, self._judge.reverse), answer_id(answer)
        return [rubric.read(self.outcome(judged, k) or _MISSING) for k in range(number)]

    def outcome(self, judged: str, k: int = 0) -> Outcome | None:
        """What the judge answered to its k-th call about a text; None where that call was not made."""
        return outcome_of(self._replies.get((judged, k)))


def outcome_of(stored: Response | FailedResponse | None) -> Outcome | None:
    """A stored outcome as the engine gave it; None where the call was not made."""
    if isinstance(stored, FailedResponse):
        return stored.failure
    return None if stored is None else Reply(stored.text, stored.finish_reason, stored.usage)


def fence_secret(folder: Path) -> bytes:
    """Return the secret of the fences in a folder of judgements, made at the first call.

    Raises DataError where it was removed or edited although there are judgements: all prompts would be others.
    """
    path = folder / "secret.key"
    if not path.exists() and not any(one.stat().st_size for one in folder.glob("*.jsonl")):
        with replacing(path, private=True) as part:
            part.write_text(secrets.token_hex(32))
    text = path.read_text(errors="replace") if path.is_file() else ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise DataError(f"{path}: missing or edited; restore it, or remove {folder} and judge everything again")
    return text.encode()


JUDGING = "judging"  # in run.json
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
    """What people gave an answer (`answer_id`; in a study `REPLY:QUESTION`): the mean of `annotators` ratings."""

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


def read_judging(folder: RunFolder) -> Judging | None:
    """Read which judgements count, None in a run without any. Raises DataError where run.json was edited."""
    raw = folder.read_run().get(JUDGING)
    return None if raw is None else read_record(Judging, raw, f"{folder.path / 'run.json'}: {JUDGING}")


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


def rate_answers(folder: RunFolder, judging: Judging, answers: Answers, scenarios: Iterable[Scenario]) -> Ratings:
    """Rate the answers of a run to those of its scenarios that are in the scope of the judging."""
    people = {one.answer: one for one in list_people_ratings(folder)}
    subtasks = {s.id: s.subtask for s in judging.judged(scenarios)}
    panel = [Judgements(folder.path, read_judge(folder.path, name)) for name in judging.judges]
    ratings: dict[SampleKey, AnswerRating] = {}
    for key, answer in answers.items():
        if key[0] not in subtasks or not isinstance(answer, Response):
            continue
        if len(answer.answer) > LONGEST:
            ratings[key] = AnswerRating(None, (None,) * len(panel), unjudged=TOO_LONG)
            continue
        judged = [one.of(answer, subtasks[key[0]], judging.judgements) for one in panel]
        means, every = tuple(whole_mean([one.rating for one in own]) for own in judged), [*chain(*judged)]
        unjudged = next((one.unscored for one in every if one.unscored), None)
        names = points_of(subtasks[key[0]]) if unjudged is None else ()
        points = {name: fmean(one.points[name] for one in every) for name in names}
        if (by_people := people.get(answer_id(answer))) is not None:
            ratings[key] = AnswerRating(by_people.rating, means, people=True, points=points)
            continue
        failed = next((one.failed for one in every if one.failed), None)
        unread = next((one.message for one in every if one.message), "")
        ratings[key] = AnswerRating(whole_mean(means), means, False, unjudged, failed, points, unread)
    return ratings


Ratings = Mapping[SampleKey, AnswerRating]
ALL_LEVELS = "levels"  # beside the names of the subtasks
CORRECTED = Path(JUDGEMENTS) / "calibration.json"  # of a run
_AGAIN = "run `h2htalk judge calibrate` again"


@dataclass(frozen=True, slots=True)
class CorrectedCells:
    """J corrected by people's labels: `levels` or a level's subtask -> 20 J; n of `total` items were labelled.

    `ratings`: `hash_of` what was corrected; `correction`: the estimator and the number of labels, or why there is none.
    """

    ratings: str
    correction: str
    cells: Mapping[str, Cell] = field(default_factory=dict)


def hash_of(judging: Judging, ratings: Ratings) -> str:
    """The hash of judges and their ratings of a run, people's ratings left out."""
    listed = [[*key, *one.judges] for key, one in sorted(ratings.items(), key=lambda pair: pair[0])]
    return hashlib.sha256(json_line([judging.judges, judging.judgements, listed]).encode()).hexdigest()


def read_corrected_cells(run: Path, judging: Judging, ratings: Ratings) -> CorrectedCells:
    """Read the corrected cells of a run; of a run without them, or with others' ratings by now, there are none."""
    path = run / CORRECTED
    try:
        found = read_record(CorrectedCells, read_sealed(path, _AGAIN), str(path), advice=f"; {_AGAIN}")
    except FileNotFoundError:
        return CorrectedCells("", "")
    return found if found.ratings == hash_of(judging, ratings) else CorrectedCells("", f"of other judgements: {_AGAIN}")


def with_judgements(
    data: RunData, judging: Judging, summary: Summary, answers: Answers, scores: Scores
) -> tuple[Summary, Scores]:
    """Add ratings to the scores of a run, and J to its summary."""
    folder, scenarios = data.folder, data.split.scenarios
    own, ratings = judging.judged(scenarios), rate_answers(folder, judging, answers, scenarios)
    scores = {item: with_ratings(score, ratings) for item, score in scores.items()}
    # R and J of levels I to III by the judges, whatever people gave.
    r, j, none = dict[str, float](), dict[str, float](), AnswerRating(None)
    for item in [scores[s.id] for s in own if SUBTASKS[s.subtask].level]:
        rating = whole_mean([ratings.get((item.id, one.sample), none).by_judges for one in item.samples])
        r |= {} if rating is None else {item.id: rating}
        j |= {} if rating is None or item.s is None else {item.id: judged_score(item.s, rating)}
    figures = _figures(folder, judging, own, ratings, scores, r, j)
    judge = f"{'+'.join(figures.judges)}, {judging.judgements} each"
    if people := {item for (item, _), one in ratings.items() if one.people}:
        rated = f"{counted(len(people), 'item')} ({hashlib.sha256(json_line(sorted(people)).encode()).hexdigest()[:8]})"
        for name, values in (("R", r), ("J", j)):  # all that a trigger sends make two runs comparable
            if people == {item for item, value in values.items() if value < THRESHOLD}:
                rated = f"all items of {name} < {THRESHOLD}"
        judge += f", people rated {rated}"
    signature = replace(summary.signature, protocol={**summary.signature.protocol, "judge": judge})
    warnings = (*summary.warnings, *(f"{JUDGE_WARNING}{one}" for one in _warnings(summary, figures)))
    summary = replace(summary, signature=signature, judging=figures, warnings=warnings)
    if summary.measure != "s":
        return summary, scores
    with_s = [s for s in scenarios if s.language in summary.s_languages]
    row = aggregate((s.subtask, judged_value(s, scores[s.id])) for s in with_s)
    slices, samples = slices_of(with_s, scores, judged_value), tuple(by_sample(with_s, scores, judged_value))
    rows = replace(summary.rows, judged=row)
    return replace(summary, judged=True, rows=rows, slices=slices, by_sample=samples), scores


def with_ratings(score: ItemScore, ratings: Ratings) -> ItemScore:
    """Put the ratings of an item's answers into its score."""
    found = [(s, ratings.get((s.id, s.sample), AnswerRating(None))) for s in score.samples]
    return item_score(score.id, [replace(s, rating=r.rating, people=r.people, unjudged=r.unjudged) for s, r in found])


def judged_value(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
    """J / 5 for levels I to III, S for others."""
    if not SUBTASKS[scenario.subtask].level:
        return score.s
    return None if score.j is None else score.j / 5


def _figures(
    folder: RunFolder,
    judging: Judging,
    scenarios: Sequence[Scenario],
    ratings: Ratings,
    scores: Scores,
    r: Mapping[str, float],
    j: Mapping[str, float],
) -> JudgeFigures:
    corrected, every = read_corrected_cells(folder.path, judging, ratings), list(ratings.values())
    subtasks, said = {s.id: s.subtask for s in scenarios}, defaultdict[tuple[str, str], list[float | None]](list)
    for (item, _), rating in ratings.items():
        for name in points_of(subtasks[item]):  # an item with an unscored judgement has no value
            said[name, item].append(rating.points.get(name))
    spreads = [max(one.known) - min(one.known) for one in every if len(one.known) > 1]
    values = [(s.subtask, None if (of := scores[s.id].rating) is None else of / 5) for s in scenarios]
    return JudgeFigures(
        judges=tuple(read_judge(folder.path, name).label for name in judging.judges),
        judgements=judging.judgements,
        scope=judging.scope,
        scored=sum(one.rating is not None for one in every),
        total=len(every),
        people=sum(one.people for one in every),
        failed=sum(one.failed is not None for one in every),
        unscored=dict(sorted(Counter(one.unjudged for one in every if one.unjudged).items())),
        unread={one.unjudged: one.unread for one in reversed(every) if one.unjudged and one.unread},
        ratings=aggregate(values),
        points=aggregate_slices((name, whole_mean(yes)) for (name, _), yes in said.items()),
        queue={"J": sum(one < THRESHOLD for one in j.values()), "judge": sum(r[item] < THRESHOLD for item in j)},
        items=len(j),
        disagreement=fmean(spreads) if spreads else None,
        corrected=corrected.cells,
        correction=corrected.correction,
    )


def _warnings(summary: Summary, figures: JudgeFigures) -> Iterator[str]:
    if figures.failed:
        yield (
            f"{counted(figures.failed, 'answer')} with judgements that failed or were not made: `h2htalk judge run` "
            "with the same judges repeats them; where --max-cost stopped it, raise that"
        )
    elif figures.unscored:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in figures.unscored.items())
        again = "; `h2htalk judge run --repeat-unscored` with the same judges asks again for replies that were not read"
        advice = "" if set(figures.unscored) == {TOO_LONG} else again
        yield f"answers without a rating ({reasons}) leave the judged row incomplete, which is not ranked{advice}"
        yield from (f"the first reply of a judge that is {why}: {message}" for why, message in figures.unread.items())
    if summary.measure != "s":
        yield "without S there is no J: the ratings of levels I to III stand apart; score with an --embedder"
