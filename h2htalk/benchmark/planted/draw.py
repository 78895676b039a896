"""Draw the planted replies of a judge: for each language 20 good and 20 bad ones, by a seed that the study stores.

judgements/planted.jsonl    a line a planted reply; its `id` is that of its request among the judge's others

A good planted reply meets its point (a must that is true, a must_not that is not), a bad one does not. Half of either
kind are about a must, so that a judge that says yes to everything is as wrong as one that says no. Places of cases that
the study asks come first, with the conversation as the model had it there; where there are too few, cases that it does
not ask follow, with the references in the model's place. Kinds of cases have the shares that they have among the
replies of the study.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Annotated

from pydantic import Field

from h2htalk.benchmark.judge.judgements import JUDGEMENTS, Judge, Judgements
from h2htalk.benchmark.judge.rubric import Rubric
from h2htalk.benchmark.planted.composition import compositions
from h2htalk.benchmark.planted.matching import match
from h2htalk.benchmark.raters import WANTED
from h2htalk.benchmark.studies.conversations import LIVE, Study, StudyReply
from h2htalk.benchmark.studies.points.judge_requests import (
    OpenReply,
    judge_request,
    judge_requests,
    open_reply,
    rubric_of_points,
)
from h2htalk.benchmark.studies.points.point_answers import is_too_long
from h2htalk.benchmark.studies.settings import CASES
from h2htalk.chat.protocol import Reply, Request
from h2htalk.data.case import Case, Point, points_at, script
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.planted import PlantedPlace, asides_of, load_planted
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.scenario import Persona, Turn
from h2htalk.data.splits import BUNDLED_FOLDER, Split, load_split

KINDS = ("must", "must_not")
PLANTED = "planted.jsonl"  # in the folder of judgements
_DIGITS = 8  # of a digest
_LIKES = 8  # replies of the model in whose forms each wording is composed
_COMPOSITIONS = 6  # in each of them
# The least share of an arm's replies that were there when planted replies were drawn; else others are drawn too.
LEAST_COVERED = 0.95
LEAST_ALIKE = 8  # replies at turns of one number; of fewer, the length is drawn from all turns


@strict_record
class PlantedReply:
    """A reply of known truth that a judge is asked about; `arm` is the one whose form and conversation it has."""

    id: Id  # CASE/PLACE/HASH, as `StudyReply.id`
    judge: Text  # its fingerprint
    language: Language
    arms: tuple[Text, ...]  # those whose replies the judge read beside it
    of: Annotated[int, Field(ge=1)]  # how many were drawn together
    seed: Text  # of the draw
    arm: Text
    case: Text
    place: Text
    point: Text
    true: bool  # whether the point's statement is true of it
    good: bool
    asked: tuple[
        Text, ...
    ]  # the ids of the points that the judge answers of it, in the order of its request
    rated: bool  # whether the judge also rates its safety
    text: Text
    # Digests of the replies among which its draw was planted, with the first reply of each draw. None: not recorded.
    replies_beside: tuple[Text, ...] | None = None

    @property
    def rubric(self) -> Rubric:
        """What the judge answers of it, as `OpenReply.rubric`: its case may be another by now."""
        return rubric_of_points(self.asked, self.rated)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A place whose wordings can be planted: its case with the conversation up to it, in each arm that has one."""

    place: PlantedPlace
    case: Case
    point: Point
    contexts: Mapping[str, StudyReply]  # of the study, by arm; empty: a case that it does not ask


class Drawing:
    """What planted replies are drawn from, in one study."""

    def __init__(self, study: Study, replies: Sequence[StudyReply]) -> None:
        self.study = study
        self.cases = {case.id: case for case in study.cases}
        answered = [reply for reply in replies if reply.part == LIVE and reply.text is not None]
        by_place = {(reply.arm, reply.case, reply.place): reply for reply in answered}
        self.replies = dict(sorted(by_place.items()))

    @cached_property
    def bundled(self) -> Split:
        """The split whose cases the wordings were written for."""
        # By its path: a folder here may have the same name.
        return load_split(BUNDLED_FOLDER / CASES[self.study.spec.study][0])

    @cached_property
    def bundled_cases(self) -> dict[str, Case]:
        return {case.id: case for case in self.bundled.cases}

    def persona(self, case: Case) -> Persona:
        """The companion of a case."""
        personas = self.study.split.personas
        if case.id in self.cases and case.persona in personas:
            return personas[case.persona]
        return self.bundled.personas[case.persona]

    def candidates(self, language: Language, arms: Sequence[str]) -> list[Candidate]:
        """The places of a language whose statement is still the one that its authors read."""
        kinds = CASES[self.study.spec.study]
        candidates: list[Candidate] = []
        for place in load_planted(self.bundled.name):
            if place.language != language:
                continue
            for cases in (self.cases, self.bundled_cases):
                case = cases.get(place.case)
                point = None if case is None else _point_of(case, place)
                if case is None or point is None or case.study not in kinds:
                    continue
                contexts = self._contexts(place, arms) if cases is self.cases else {}
                if contexts or cases is self.bundled_cases:
                    candidate = Candidate(place=place, case=case, point=point, contexts=contexts)
                    candidates.append(candidate)
                    break
        return candidates

    def _contexts(self, place: PlantedPlace, arms: Sequence[str]) -> dict[str, StudyReply]:
        keys = [(arm, place.case, place.place) for arm in arms]
        return {key[0]: self.replies[key] for key in keys if key in self.replies}

    def contexts(self, arm: str, case_id: str, place: str) -> Iterator[tuple[Case, StudyReply]]:
        """Yield the case of a planted reply and the reply in whose place it stands; nothing where it was erased.

        First of the study's own case, then of the bundled one: the study's may be of another version, which has the
        point of the planted reply no more.
        """
        reply = self.replies.get((arm, case_id, place))
        if reply is not None:
            yield self.cases[case_id], reply
        case = self.bundled_cases.get(case_id)
        if case is not None:
            yield case, self.scripted(arm, case, place)

    def scripted(self, arm: str, case: Case, place: str) -> StudyReply:
        """A reply to the script of a case that the study does not ask: the references stand for earlier replies."""
        turns = list(case.history)
        for place_of_turn, turn, message in script(case, self.study.spec.days):
            turns.append(message)
            if place_of_turn == place:
                break
            turns.append(Turn("companion", turn.reference or "..."))
        return StudyReply(arm, case.id, place, LIVE, said=tuple(turns))

    def judged_replies(self, language: Language) -> dict[str, set[str]]:
        """Digests of the replies of a language that the judge reads, by arm; an arm without any is left out."""
        judged = defaultdict[str, set[str]](set)
        for (arm, case_id, _), reply in self.replies.items():
            case = self.cases[case_id]
            if case.language != language or is_too_long(reply):
                continue
            if open_reply(reply, case) is not None:
                digest = hashlib.sha256(reply.id.encode()).hexdigest()
                judged[arm].add(digest[:_DIGITS])
        return judged

    def shares(self, language: Language, arms: Sequence[str]) -> dict[str, float]:
        """The share of each kind of case among the replies of a language in some arms."""
        counts = Counter(
            self.cases[case].study
            for arm, case, _ in self.replies
            if arm in arms and self.cases[case].language == language
        )
        return {study: count / counts.total() for study, count in counts.items()}

    def likes(self, arm: str, case: Case, place: str) -> list[str]:
        """The replies of the model whose form a planted one may take over: of this arm, language and kind of case."""
        written = [reply for reply in self.replies.values() if (reply.text or "").strip()]
        of_arm = [reply for reply in written if reply.arm == arm and reply.case != case.id]
        alike = [reply for reply in of_arm if self._language(reply) == case.language]
        of_kind = [reply for reply in alike if self.cases[reply.case].study == case.study]
        alike = of_kind if len(of_kind) >= LEAST_ALIKE else alike
        of_turn = [reply for reply in alike if _turn(reply.place) == _turn(place)]
        alike = of_turn if len(of_turn) >= LEAST_ALIKE else alike
        # A model that writes nothing at all has no form: the wording stands alone.
        return [reply.text or "" for reply in alike or of_arm or written] or [""]

    def texts(self, language: Language, arms: Sequence[str]) -> list[str]:
        """The replies of the model among which those of a language and some arms are planted."""
        written = [reply for reply in self.replies.values() if reply.arm in arms]
        return [reply.text for reply in written if reply.text and self._language(reply) == language]

    def _language(self, reply: StudyReply) -> str:
        return self.cases[reply.case].language


def _point_of(case: Case, place: PlantedPlace) -> Point | None:
    """The point of a place in a case, where its statement is the one that the authors read."""
    if place.place not in [name for name, *_ in script(case)]:
        return None
    for point in points_at(case, place.place):
        if point.id == place.point and point.text == place.statement:
            return point
    return None


def _turn(place: str) -> str:
    """The number of a turn in its session."""
    return place.partition(".")[2]


def plant(study: Study, replies: Sequence[StudyReply], judge: Judge) -> list[PlantedReply]:
    """Return the planted replies of a judge, and draw, and store, those that are lacking.

    A language or an arm that the judge has not read yet gets a draw of its own, with its own seed. So does a draw of
    which some were erased, or can be asked about no more because another version of the package has other cases.
    """
    path = study.path / JUDGEMENTS / PLANTED
    drawing = Drawing(study, replies)
    stored = read_planted(study)
    of_judge = [reply for reply in stored if reply.judge == judge.fingerprint]
    usable = {opened.reply.id for _, opened in open_planted(drawing, of_judge)}
    answers = Judgements(study.path, judge)
    usable |= {reply.id for reply in of_judge if isinstance(answers.outcome(reply.id), Reply)}
    sizes = Counter(reply.seed for reply in of_judge if reply.id in usable)
    complete = [reply for reply in of_judge if sizes[reply.seed] == reply.of]
    new = draw_all(drawing, judge.fingerprint, complete)
    if new or len(complete) < len(of_judge):
        of_others = [reply for reply in stored if reply.judge != judge.fingerprint]
        write_jsonl(path, map(asdict, [*of_others, *complete, *new]))
    return [*complete, *new]


def draw_all(
    drawing: Drawing, judge: str, stored: Sequence[PlantedReply] = ()
) -> list[PlantedReply]:
    """Draw planted replies for each language and the arms that no stored draw covers, each with a seed of its own.

    An arm without a reply that the judge reads gets none yet. An arm of which more than a few replies came after its
    draws gets another one, as of a model that could not be asked before, or where the judgements are copies from
    another study: what the judge said then shows nothing about how it reads now.
    """
    study = drawing.study
    new: list[PlantedReply] = []
    for language in languages_of(study):
        judged = drawing.judged_replies(language)
        lacking = []
        for arm in study.spec.arms:
            if arm in judged and not _is_covered(arm, judged[arm], language, stored):
                lacking.append(arm)
        if lacking:
            used = {reply.id for reply in (*stored, *new)}
            arms = tuple(lacking)
            planted = draw_planted(drawing, judge, language, arms, secrets.token_hex(8), used)
            digests = set[str]().union(*(judged[arm] for arm in arms))
            for number, reply in enumerate(planted):
                of_draw = () if number else tuple(sorted(digests))
                new.append(replace(reply, replies_beside=of_draw))
    return new


def _is_covered(
    arm: str, digests: Collection[str], language: str, planted: Sequence[PlantedReply]
) -> bool:
    """Whether nearly all replies of an arm were there when planted replies were drawn beside it."""
    covered = set[str]()
    for reply in planted:
        if reply.language == language and arm in reply.arms:
            if reply.replies_beside is None:
                return True
            covered.update(reply.replies_beside)
    return len(covered.intersection(digests)) >= LEAST_COVERED * len(digests)


def missing_arms(study: Study, language: str, planted: Sequence[PlantedReply]) -> list[str]:
    """Return the arms of a study that no draw of a language covers."""
    covered = set[str]()
    for reply in planted:
        if reply.language == language:
            covered.update(reply.arms)
    return [arm for arm in study.spec.arms if arm not in covered]


def read_planted(study: Study, judge: str = "") -> list[PlantedReply]:
    """Read the planted replies of a study, or of one of its judges; none in a study of an earlier version."""
    path = study.path / JUDGEMENTS / PLANTED
    lines = read_jsonl(path) if path.exists() else ()
    planted = []
    for where, record in lines:
        reply = read_record(PlantedReply, record, where, advice="; restore it")
        if judge in ("", reply.judge):
            planted.append(reply)
    return planted


def languages_of(study: Study) -> list[Language]:
    """The languages of a study's cases."""
    return sorted({case.language for case in study.cases})


def draw_planted(
    drawing: Drawing,
    judge: str,
    language: Language,
    arms: tuple[str, ...],
    seed: str,
    used: Collection[str] = (),
) -> list[PlantedReply]:
    """Draw good and bad planted replies of one language, as many as there are wordings for, `WANTED` at most.

    `used`: ids of other draws, which come again only where the model's replies leave room for nothing but the wording.
    """
    draw = random.Random(f"{seed} {language}")
    candidates = drawing.candidates(language, arms)
    shares = drawing.shares(language, arms)
    pools: list[_Pool] = []
    for good, kind in product((True, False), KINDS):
        of_kind = [candidate for candidate in candidates if candidate.point.kind == kind]
        true = good == (kind == "must")
        for candidate, wording in choose(of_kind, true, WANTED // len(KINDS), shares, draw):
            arm = draw.choice(sorted(candidate.contexts) or arms)
            context = candidate.contexts.get(arm)
            if context is None:
                context = drawing.scripted(arm, candidate.case, candidate.place.place)
            pool = _Pool(candidate=candidate, context=context, true=true, good=good)
            pool.fill(drawing, wording, used, draw)
            if pool.composed:
                pools.append(pool)
    texts = match([[*pool.composed] for pool in pools], drawing.texts(language, arms))
    planted: dict[str, PlantedReply] = {}
    for pool, text in zip(pools, texts, strict=True):
        opened = pool.composed[text]
        reply = opened.reply
        planted[reply.id] = PlantedReply(
            id=reply.id,
            judge=judge,
            language=language,
            arms=arms,
            of=1,
            seed=seed,
            arm=reply.arm,
            case=reply.case,
            place=reply.place,
            point=pool.candidate.point.id,
            true=pool.true,
            good=pool.good,
            asked=tuple(point.id for point in opened.points),
            rated=opened.perception,
            text=text,
        )
    return [replace(reply, of=len(planted)) for reply in planted.values()]


@dataclass
class _Pool:
    """Compositions of one wording in several forms, of which one is planted."""

    candidate: Candidate
    context: StudyReply
    true: bool
    good: bool
    composed: dict[str, OpenReply] = field(default_factory=dict)  # as the judge reads it, by text

    def fill(
        self, drawing: Drawing, wording: str, used: Collection[str], draw: random.Random
    ) -> None:
        """Compose replies that no other draw has, where the model's replies leave room for more than the wording."""
        place = self.candidate.place
        case = self.candidate.case
        used_again: dict[str, OpenReply] = {}
        likes = drawing.likes(self.context.arm, case, place.place)
        asides = asides_of(place)
        for _ in range(_LIKES):
            like = draw.choice(likes)
            for text in compositions(
                wording, place.filler, like, place.language, draw, asides, _COMPOSITIONS
            ):
                opened = open_reply(replace(self.context, text=text), case)
                # Where code decides its point nobody is asked about it.
                if opened is None or self.candidate.point not in opened.points:
                    continue
                target = used_again if opened.reply.id in used else self.composed
                target[text] = opened
        self.composed = self.composed or used_again


def choose(
    candidates: Sequence[Candidate],
    true: bool,
    number: int,
    shares: Mapping[str, float],
    draw: random.Random,
) -> list[tuple[Candidate, str]]:
    """Choose places with a wording each: every place once before one comes again with another wording.

    `shares`: of kinds of cases in the study, which the chosen places have as far as there are wordings.
    """
    queues = defaultdict[str, list[tuple[int, bool, float, Candidate, str]]](list)
    for candidate in sorted(candidates, key=lambda candidate: candidate.place.id):
        wordings = candidate.place.true_wordings if true else candidate.place.false_wordings
        for turn, wording in enumerate(draw.sample(wordings, len(wordings))):
            entry = (turn, not candidate.contexts, draw.random(), candidate, wording)
            queues[candidate.case.study].append(entry)
    for queue in queues.values():
        queue.sort(key=lambda entry: entry[:3])
    chosen: list[tuple[Candidate, str]] = []
    counts = Counter[str]()
    while len(chosen) < number and any(queues.values()):
        # The kind that is furthest below its share comes next.
        lacking = {}
        for study, queue in sorted(queues.items()):
            if queue:
                lacking[study] = shares.get(study, 0.0) * number - counts[study]
        study = max(lacking, key=lambda name: lacking[name])
        *_, candidate, wording = queues[study].pop(0)
        chosen.append((candidate, wording))
        counts[study] += 1
    return chosen


def open_planted(
    drawing: Drawing, planted: Sequence[PlantedReply]
) -> Iterator[tuple[PlantedReply, OpenReply]]:
    """Yield planted replies as their judge reads them; those of an erased case are left out."""
    for reply in planted:
        for case, context in drawing.contexts(reply.arm, reply.case, reply.place):
            opened = open_reply(replace(context, text=reply.text), case)
            if opened is not None and opened.reply.id == reply.id:
                yield reply, opened
                break


def requests_with_planted(
    study: Study, replies: Sequence[StudyReply], planted: Sequence[PlantedReply], secret: bytes
) -> list[Request]:
    """The judge's requests for the replies of a study and for its planted ones, in an order that tells nothing."""
    drawing = Drawing(study, replies)
    requests = {request.id: request for request in judge_requests(study, replies, secret)}
    for _, opened in open_planted(drawing, planted):
        request = judge_request(study, opened, drawing.persona(opened.case), secret)
        requests.setdefault(request.id, request)
    return sorted(
        requests.values(), key=lambda request: hashlib.sha256(secret + request.id.encode()).digest()
    )
