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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from h2htalk.benchmark.judge.rubric import HIGHEST, RATING_RULE, Judgement, points_of, rubric_of
from h2htalk.benchmark.metrics.composite import (
    THRESHOLD,
    ItemScore,
    Scores,
    answer_hash,
    item_score,
    judged_score,
    whole_mean,
)
from h2htalk.benchmark.run import RunInputs
from h2htalk.benchmark.statistics.averages import aggregate, aggregate_slices
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import JudgeFigures
from h2htalk.chat.protocol import Outcome, Reply
from h2htalk.chat.refused_parameters import RefusedParameterError, with_other_forms
from h2htalk.data.files import (
    json_line,
    read_json_object,
    read_jsonl,
    read_sealed,
    replacing,
    write_json,
    write_jsonl,
)
from h2htalk.data.model_names import without_path
from h2htalk.data.records import read_record
from h2htalk.data.replies.finish_reasons import count_unknown
from h2htalk.data.responses import (
    CALLS,
    Answers,
    FailedResponse,
    Failure,
    Response,
    SampleKey,
    counted_answers,
    read_answers,
)
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, counted

JUDGEMENTS = "judgements"  # the folder of a run's or study's judgements
_MISSING = Failure("not judged", "no judgement is stored", 0)


@dataclass(frozen=True, slots=True)
class Judge:
    """What a judgement depends on, beside the answer.

    `model` has no path or address; `identity` adds a hash of a script's or a folder's content. `prompts` are templates
    by name; `reverse`: the rubric's qualities stand in the reverse order; `rule`: how R is made of the scores.
    `forms`: the engine options that name the form of its requests, where it is not the usual one.
    """

    model: str
    identity: str
    prompts: Mapping[str, str]
    temperature: float | None = 0.0
    thinking: int | None = None
    reverse: bool = False
    rule: str = RATING_RULE
    forms: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of all this: the name of its files."""
        return hashlib.sha256(json_line(self.to_dict()).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Its fields, without the forms where they are the usual ones: so a judge of an earlier version is the same."""
        fields = asdict(self)
        if not self.forms:
            del fields["forms"]
        return fields

    @property
    def label(self) -> str:
        """How tables name it: the model and the start of the fingerprint."""
        return f"{without_path(self.model)}@{self.fingerprint[:8]}"

    @property
    def stage(self) -> str:
        """The name of its stage in the call store."""
        return f"judge-{self.fingerprint}"


def begun_forms(run: Path, judge: Judge) -> dict[str, str]:
    """The forms in which the same judge was asked before, of a judge whose own forms are not named."""
    for path in sorted((run / JUDGEMENTS).glob("*.json")) if not judge.forms else ():
        if not re.fullmatch("[0-9a-f]{16}", path.stem):  # labels and calibration lie there too
            continue
        stored = read_judge(run, path.stem)
        if stored.forms and replace(stored, forms={}) == judge:
            return dict(stored.forms)
    return dict(judge.forms)


def ask_in_other_forms(
    run: Path, judge: Judge, ask: Callable[[Judge], None], option: str = "--engine-option"
) -> Judge:
    """Let a judge be asked, by `ask`; where its server refuses a parameter that has another form, a judge of this form.
    Returns the judge that answered, which was written down. `option`: how the command names the
    judge's engine options; it has no other flags for sampling."""

    def asked(forms: Mapping[str, str]) -> Judge:
        asked_judge = replace(judge, forms=forms)
        path = run / JUDGEMENTS / f"{asked_judge.fingerprint}.json"
        was_stored = path.exists()
        write_json(path, asked_judge.to_dict())  # what the judge is, before it is asked
        try:
            ask(asked_judge)
        except RefusedParameterError:
            if not was_stored:  # it has answered nothing
                path.unlink()
            raise
        return asked_judge

    return with_other_forms(asked, begun_forms(run, judge), option)


def read_judge(run: Path, fingerprint: str) -> Judge:
    """Read a judge of a run. Raises DataError where there is none of that fingerprint, or the file was edited."""
    path = run / JUDGEMENTS / f"{fingerprint}.json"
    try:
        judge = read_record(Judge, read_json_object(path), str(path), advice="; restore it")
    except FileNotFoundError:
        raise DataError(
            f"{path}: not there: the run has no such judge; run `h2htalk judge run`"
        ) from None
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
        rubric = rubric_of(subtask, self._judge.reverse)
        judged = answer_id(answer)
        return [rubric.read(self.outcome(judged, k) or _MISSING) for k in range(number)]

    def outcome(self, judged: str, k: int = 0) -> Outcome | None:
        """What the judge answered to its k-th call about a text; None where that call was not made."""
        return outcome_of(self._replies.get((judged, k)))


def outcome_of(stored: Response | FailedResponse | None) -> Outcome | None:
    """A stored outcome as the engine gave it; None where the call was not made."""
    if isinstance(stored, FailedResponse):
        return stored.failure
    if stored is None:
        return None
    return Reply(stored.text, stored.finish_reason, stored.usage, filtered_by=stored.filtered_by)


def fence_secret(folder: Path) -> bytes:
    """Return the secret of the fences in a folder of judgements, made at the first call.

    Raises DataError where it was removed or edited although there are judgements: all prompts would be others.
    """
    path = folder / "secret.key"
    if not path.exists() and not any(file.stat().st_size for file in folder.glob("*.jsonl")):
        with replacing(path, private=True) as part:
            part.write_text(secrets.token_hex(32))
    text = path.read_text(errors="replace") if path.is_file() else ""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise DataError(
            f"{path}: missing or edited; restore it, or remove {folder} and judge everything again"
        )
    return text.encode()


JUDGING = "judging"  # in run.json
LONGEST = 100_000  # characters of an answer that is judged
TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Judging:
    """Which judgements count in a run's tables: of these judges, the first so many of each answer."""

    judges: Annotated[
        tuple[Annotated[str, Field(pattern="^[0-9a-f]{16}$")], ...], Field(min_length=1)
    ]
    judgements: Annotated[int, Field(ge=1, le=100)] = 1
    scope: Literal["levels", "all"] = "levels"

    def judged(self, scenarios: Iterable[Scenario]) -> list[Scenario]:
        """Return the scenarios whose answers are judged."""
        return [
            scenario
            for scenario in scenarios
            if self.scope == "all" or SUBTASKS[scenario.subtask].level
        ]


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
    the first reply of a judge that could not be read. `declined`: what the filter of a judge's provider said;
    `unknown_reasons`: why replies of judges ended, where that is not known here.
    """

    rating: float | None
    judges: tuple[float | None, ...] = ()
    people: bool = False
    unjudged: str | None = None
    failed: str | None = None
    points: Mapping[str, float] = field(default_factory=dict)
    unread: str = ""
    declined: str = ""
    unknown_reasons: tuple[str, ...] = ()

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
    return (
        None if raw is None else read_record(Judging, raw, f"{folder.path / 'run.json'}: {JUDGING}")
    )


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


def rate_answers(
    folder: RunFolder, judging: Judging, answers: Answers, scenarios: Iterable[Scenario]
) -> Ratings:
    """Rate the answers of a run to those of its scenarios that are in the scope of the judging."""
    people = {rating.answer: rating for rating in list_people_ratings(folder)}
    subtasks = {s.id: s.subtask for s in judging.judged(scenarios)}
    panel = [Judgements(folder.path, read_judge(folder.path, name)) for name in judging.judges]
    ratings: dict[SampleKey, AnswerRating] = {}
    for key, answer in answers.items():
        if key[0] not in subtasks or not isinstance(answer, Response):
            continue
        if len(answer.answer) > LONGEST:
            ratings[key] = AnswerRating(None, (None,) * len(panel), unjudged=TOO_LONG)
            continue
        judged = [judge.of(answer, subtasks[key[0]], judging.judgements) for judge in panel]
        means = tuple(
            whole_mean([judgement.rating for judgement in judgements]) for judgements in judged
        )
        all_judgements = [*chain(*judged)]
        unjudged = next(
            (judgement.unscored for judgement in all_judgements if judgement.unscored), None
        )
        names = points_of(subtasks[key[0]]) if unjudged is None else ()
        points = {
            name: fmean(judgement.points[name] for judgement in all_judgements) for name in names
        }
        if (by_people := people.get(answer_id(answer))) is not None:
            ratings[key] = AnswerRating(by_people.rating, means, people=True, points=points)
            continue
        failed = next((judgement.failed for judgement in all_judgements if judgement.failed), None)
        unread = next((judgement.message for judgement in all_judgements if judgement.message), "")
        ratings[key] = AnswerRating(
            rating=whole_mean(means),
            judges=means,
            unjudged=unjudged,
            failed=failed,
            points=points,
            unread=unread,
            declined=next(
                (judgement.declined for judgement in all_judgements if judgement.declined), ""
            ),
            unknown_reasons=tuple(
                judgement.unknown_reason for judgement in all_judgements if judgement.unknown_reason
            ),
        )
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
    cells: Mapping[str, Estimate] = field(default_factory=dict)


def hash_of(judging: Judging, ratings: Ratings) -> str:
    """The hash of judges and their ratings of a run, people's ratings left out."""
    listed = [
        [*key, *rating.judges] for key, rating in sorted(ratings.items(), key=lambda pair: pair[0])
    ]
    return hashlib.sha256(
        json_line([judging.judges, judging.judgements, listed]).encode()
    ).hexdigest()


def read_corrected_cells(run: Path, judging: Judging, ratings: Ratings) -> CorrectedCells:
    """Read the corrected cells of a run; of a run without them, or with others' ratings by now, there are none."""
    path = run / CORRECTED
    try:
        corrected = read_record(
            CorrectedCells, read_sealed(path, _AGAIN), str(path), advice=f"; {_AGAIN}"
        )
    except FileNotFoundError:
        return CorrectedCells("", "")
    return (
        corrected
        if corrected.ratings == hash_of(judging, ratings)
        else CorrectedCells("", f"of other judgements: {_AGAIN}")
    )


class RatedScores(NamedTuple):
    """The scores of a run with ratings in them, what judges gave, and the signature that names the judges."""

    scores: Scores
    figures: JudgeFigures
    signature: Signature


def rate_scores(
    data: RunInputs, judging: Judging, answers: Answers, scores: Scores, signature: Signature
) -> RatedScores:
    """Join the ratings of judges and people to the scores of a run."""
    folder = data.folder
    scenarios = data.split.scenarios
    replies = counted_answers(answers, signature.filter_rule)
    ratings = rate_answers(folder, judging, replies, scenarios)
    rated = {item: with_ratings(score, ratings) for item, score in scores.items()}

    # R and J of levels I to III by the judges, whatever people gave.
    r_by_judges: dict[str, float] = {}
    j_by_judges: dict[str, float] = {}
    values: list[tuple[str, float | None]] = []
    yes_shares = defaultdict[tuple[str, str], list[float | None]](list)
    for scenario in judging.judged(scenarios):
        item = rated[scenario.id]
        values.append((scenario.subtask, None if item.rating is None else item.rating / HIGHEST))
        by_judges = []
        for sample in item.samples:
            rating = ratings.get((item.id, sample.sample))
            by_judges.append(None if rating is None else rating.by_judges)
            if rating is not None:
                for name in points_of(scenario.subtask):
                    # An item with an unscored judgement has no value.
                    yes_shares[name, item.id].append(rating.points.get(name))
        r = whole_mean(by_judges)
        if r is not None and SUBTASKS[scenario.subtask].level:
            r_by_judges[item.id] = r
            if item.s is not None:
                j_by_judges[item.id] = judged_score(item.s, r)

    listed = list(ratings.values())
    spreads = [max(rating.known) - min(rating.known) for rating in listed if len(rating.known) > 1]
    corrected = read_corrected_cells(folder.path, judging, ratings)
    figures = JudgeFigures(
        judges=tuple(read_judge(folder.path, name).label for name in judging.judges),
        judgements=judging.judgements,
        scope=judging.scope,
        scored=sum(rating.rating is not None for rating in listed),
        total=len(listed),
        people=sum(rating.people for rating in listed),
        failed=sum(rating.failed is not None for rating in listed),
        unscored=dict(
            sorted(Counter(rating.unjudged for rating in listed if rating.unjudged).items())
        ),
        unread={
            rating.unjudged: rating.unread
            for rating in reversed(listed)
            if rating.unjudged and rating.unread
        },
        ratings=aggregate(values),
        points=aggregate_slices((name, whole_mean(yes)) for (name, _), yes in yes_shares.items()),
        queue={
            "J": sum(j < THRESHOLD for j in j_by_judges.values()),
            "judge": sum(r_by_judges[item] < THRESHOLD for item in j_by_judges),
        },
        items=len(j_by_judges),
        disagreement=fmean(spreads) if spreads else None,
        corrected=corrected.cells,
        correction=corrected.correction,
        declined=dict(
            Counter(rating.declined for rating in listed if rating.declined).most_common()
        ),
        unknown_reasons=count_unknown(
            reason for rating in listed for reason in rating.unknown_reasons
        ),
    )
    judge = f"{'+'.join(figures.judges)}, {judging.judgements} each"
    by_people = {item for (item, _), rating in ratings.items() if rating.people}
    if by_people:
        digest = hashlib.sha256(json_line(sorted(by_people)).encode()).hexdigest()
        named = f"{counted(len(by_people), 'item')} ({digest[:8]})"
        # All items that a trigger sends make two runs comparable.
        for name, judged in (("R", r_by_judges), ("J", j_by_judges)):
            if by_people == {item for item, value in judged.items() if value < THRESHOLD}:
                named = f"all items of {name} < {THRESHOLD}"
        judge += f", people rated {named}"
    protocol = {**signature.protocol, "judge": judge}
    return RatedScores(rated, figures, replace(signature, protocol=protocol))


def with_ratings(score: ItemScore, ratings: Ratings) -> ItemScore:
    """Put the ratings of an item's answers into its score."""
    rated_samples = [(s, ratings.get((s.id, s.sample), AnswerRating(None))) for s in score.samples]
    return item_score(
        score.id,
        [
            replace(s, rating=r.rating, people=r.people, unjudged=r.unjudged)
            for s, r in rated_samples
        ],
    )
