"""How a study's judge agrees with people about the points that both answered, for policies that need it calibrated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from h2htalk.benchmark.raters import PEOPLE, WANTED
from h2htalk.benchmark.studies.points.point_answers import AnsweredReply
from h2htalk.data.languages import find_language
from h2htalk.errors import counted
from h2htalk.text.point_checks import decided

LEAST_POINTS = 100  # that people answered, of a calibrated judge
LEAST_OF_LANGUAGE = WANTED  # of them, in each language in which the judge answers
Pair = tuple[
    bool, bool
]  # whether a reply has the fault that a point names: as the judge says, as people say


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """The points of a study that both the judge and people answered."""

    points: int
    equal: int  # of them, those with the same answer
    kappa: float  # Cohen's, of fault and no fault; 1 where all answers are the same

    @property
    def text(self) -> str:
        return f"agree on {self.equal:,} of {counted(self.points, 'point')}, kappa {self.kappa:.2f}"


def answered_pairs(replies: Iterable[AnsweredReply]) -> dict[str, tuple[Pair, ...]]:
    """What the judge and people say of each point that both answered, by language.

    Points that a rule of code decides are left out, and of equal replies in several arms all but one. Fault and no
    fault are compared, not true and false: of a judge that sees nothing nearly every must is true and nearly every
    must_not is false, as of people.
    """
    pairs: dict[str, dict[tuple[str, str], Pair]] = {}
    for reply in replies:
        for answer in reply.points:
            if answer.by != PEOPLE or answer.true is None or answer.judged is None:
                continue
            if decided(reply.reply.text or "", answer.point.check) is not None:
                continue
            good = answer.point.kind == "must"
            faults = (answer.judged != good, answer.true != good)
            pairs.setdefault(reply.case.language, {})[reply.reply.id, answer.point.id] = faults
    return {language: tuple(pairs[language].values()) for language in sorted(pairs)}


def agreement_of(pairs: Sequence[Pair]) -> JudgeAgreement:
    """Cohen's kappa of the judge and people (Cohen 1960); where it is not defined, all answers are the same."""
    number = len(pairs)
    equal = sum(judge == people for judge, people in pairs)
    kappa = 1.0 if number else 0.0
    if equal < number:
        by_judge = sum(judge for judge, _ in pairs) / number
        by_people = sum(people for _, people in pairs) / number
        chance = by_judge * by_people + (1 - by_judge) * (1 - by_people)
        kappa = (equal / number - chance) / (1 - chance)
    return JudgeAgreement(points=number, equal=equal, kappa=kappa)


def calibration_doubts(
    pairs: Mapping[str, Sequence[Pair]], languages: Collection[str], least: float
) -> list[str]:
    """Why a judge is not calibrated for the languages in which it answers; nothing where it is.

    `least`: the lowest kappa.
    """
    everything = list(chain.from_iterable(pairs.values()))
    advice = "ask people (study open-round --ask points)"
    if len(everything) < LEAST_POINTS:
        return [
            f"people answered {len(everything):,} of the {LEAST_POINTS} points that a calibrated judge needs; {advice}"
        ]
    doubts = []
    overall = agreement_of(everything)
    if overall.kappa < least:
        doubts.append(f"the judge and people {overall.text}, which is below {least:g}")
    for language in sorted(languages):
        name = find_language(language).name if language else "no language"
        of_language = pairs.get(language, ())
        agreement = agreement_of(of_language)
        if agreement.points < LEAST_OF_LANGUAGE:
            few = (
                f"people answered {agreement.points:,} of the {LEAST_OF_LANGUAGE} points in {name}"
            )
            doubts.append(f"{few} that a calibrated judge needs; {advice}")
        elif len(languages) > 1 and agreement.kappa < least:
            doubts.append(
                f"the judge and people {agreement.text} in {name}, which is below {least:g}"
            )
    return doubts
