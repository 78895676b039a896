"""What a study's planted replies show of its judge."""

from __future__ import annotations

from collections import Counter, defaultdict

from h2htalk.benchmark.judge.judgements import Judge, Judgements
from h2htalk.benchmark.planted.draw import languages_of, missing_arms, read_planted
from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.data.responses import Failure

# The fields of a check that are counted.
COUNTED = [
    "good",
    "good_wrong",
    "good_unread",
    "bad",
    "bad_wrong",
    "bad_unread",
    "unanswered",
    "at_turns",
]


def check_judge(study: Study, judge: Judge) -> tuple[PlantedCheck, ...] | None:
    """Compare a judge's stored answers with the truth of its planted replies, a draw at a time.

    None where the judge has no planted replies, as in studies of earlier versions. Otherwise every language and arm of
    the study has a check; one without planted replies is not passed.
    """
    planted = read_planted(study, judge.fingerprint)
    if not planted:
        return None
    stored = Judgements(study.path, judge)
    cases = {case.id for case in study.cases}
    draws = defaultdict[tuple[str, tuple[str, ...], str], Counter[str]](Counter)
    for reply in planted:
        counts = draws[reply.language, reply.arms, reply.seed]
        kind = "good" if reply.good else "bad"
        counts[kind] += 1
        counts["at_turns"] += reply.case in cases
        outcome = stored.outcome(reply.id)
        if outcome is None or isinstance(outcome, Failure):
            counts["unanswered"] += 1
            continue
        answer = reply.rubric.read(outcome).points.get(reply.point)
        if answer is None:
            counts[f"{kind}_unread"] += 1
        elif answer != reply.true:
            counts[f"{kind}_wrong"] += 1
    for language in languages_of(study):
        missing = missing_arms(study, language, planted)
        if missing:
            draws[language, tuple(missing), ""] = Counter()
    checks = []
    for (language, arms, _), counts in sorted(draws.items()):
        numbers = {name: counts[name] for name in COUNTED}
        checks.append(PlantedCheck(language=language, arms=arms, **numbers))
    return tuple(checks)
