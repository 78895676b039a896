"""Which items enter a release: those that crowd and experts kept, then as many as the quotas ask for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from scipy.cluster.hierarchy import DisjointSet

from h2htalk.curation.candidates import Candidate, broken_rules
from h2htalk.curation.release.content import REFERENCES, ReleaseItem, VoteRow
from h2htalk.curation.release.settings import Acceptance, Quota, ReleaseSpec
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.data.scenario import MOST_REFERENCES, Persona, Risk, Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.rounds.aggregation.decisions import TIE
from h2htalk.rounds.assignment.assignments import seeded_number
from h2htalk.rounds.outcome import RoundOutcome
from h2htalk.rounds.questions import ASKED, NO, QUESTIONS, YES

CROWD, EXPERT = "crowd", "expert"
# The key in the metadata of an item whose author read it and found no risk.
REVIEWED = "risk_reviewed"
# Split -> ids of items, dialogues and persons that were in it in an earlier release.
History = Mapping[str, frozenset[str]]
NO_HISTORY: History = {}


@dataclass(frozen=True, slots=True)
class Accepted:
    """The accepted items, and why each of the others was refused.

    `announced`: ids of accepted items that were tagged with no risk, and about whose crisis people answered yes.
    """

    items: tuple[ReleaseItem, ...]
    refused: Mapping[str, str]
    announced: tuple[str, ...] = ()


def accept(
    spec: ReleaseSpec,
    rounds: Sequence[RoundOutcome],
    personas: Mapping[str, Persona],
    erased: Collection[str],
) -> Accepted:
    """Accept the items that crowd and experts kept in closed rounds.

    `personas`: those whose names a reference must not say, by id; `erased`: ids of dialogues, persons and items. Raises
    ConfigError without a round of each kind, DataError where an item is in two of one kind.
    """
    if other := next((one for one in rounds if one.spec.kind not in (CROWD, EXPERT)), None):
        raise ConfigError(
            f"{other.path}: a round of {other.spec.kind} decides nothing in a release; leave it out"
        )
    sources: dict[str, RoundOutcome] = {}
    rows: dict[str, list[VoteRow]] = defaultdict(list)
    crises: dict[str, str] = {}
    for kind in (CROWD, EXPERT):
        own: dict[str, RoundOutcome] = {}
        for one in (one for one in rounds if one.spec.kind == kind):
            if twice := sorted(own.keys() & one.sources.keys()):
                both = f"{own[twice[0]].path} and {one.path}"
                raise DataError(
                    f"{twice[0]}: is in the rounds {both}; name only one of them under `rounds`"
                )
            own |= dict.fromkeys(one.sources, one)
            for row in _vote_rows(one):
                rows[row.item].append(row)
            crises |= _answers_about_crises(one)  # those of experts last
        if not own:
            raise ConfigError(
                f"the release has no closed {kind} round; open one, or name its folder under `rounds`"
            )
        sources |= own
    gone = ErasedIds(frozenset({*erased, *spec.exclude}))
    items: list[ReleaseItem] = []
    refused: dict[str, str] = {}
    announced: list[str] = []
    for name, source in sorted(sources.items()):
        scenario = scenario_of_record(
            source.sources[name], f"{source.path / 'sources.jsonl'}: {name}"
        )
        require_persona(scenario.persona, personas, name)
        tagged = _with_risk(scenario, crises.get(name) == YES, spec.crisis_risk)
        item = _move(ReleaseItem(tagged, tuple(rows[name])), personas)
        if gone.covers(scenario.to_dict()):
            refused[name] = "erased or excluded"
        elif reason := next(objections(item, spec.acceptance), None):
            refused[name] = reason
        elif not item.scenario.references:
            refused[name] = "the crowd chose a subtask whose contract does not hold"
        else:
            items.append(item)
            if tagged != scenario and name not in spec.crisis_risk:
                announced.append(name)
    return Accepted(items=tuple(items), refused=refused, announced=tuple(announced))


def _answers_about_crises(outcome: RoundOutcome) -> dict[str, str]:
    """What people decided about each item that they were asked about: yes or no; nothing where they were not sure."""
    answers: dict[str, str] = {}
    for (item, question), decision in outcome.decisions.items():
        if question == ASKED["crisis"].name and decision.label in (YES, NO):
            answers[item] = str(decision.label)
    return answers


def _with_risk(scenario: Scenario, called_crisis: bool, risks: Mapping[str, Risk]) -> Scenario:
    """The scenario with the risk that the owner names for it, or that people's yes gives it where it has none.

    Raises ConfigError where the owner finds no risk in what people call a crisis.
    """
    risk = risks.get(scenario.id)
    if called_crisis and risk == "none":
        raise ConfigError(
            f"crisis_risk: {quoted(scenario.id)}: people answered that it is about a crisis; write elevated or high, "
            "or remove the line"
        )
    if called_crisis and risk is None and scenario.tags.risk == "none":
        risk = "elevated"
    if risk is None:
        return scenario
    metadata = scenario.metadata
    if risk == "none":
        metadata = {**metadata, REVIEWED: True}
    return replace(scenario, tags=replace(scenario.tags, risk=risk), metadata=metadata)


def scenario_of_record(record: Mapping[str, Any], where: str) -> Scenario:
    """The scenario of a round's source record, with all its references. Raises DataError.

    `metadata.references` has origin and licence of each reference, `metadata.review` the reviewing model's scores.
    """
    if "messages" in record:
        raise DataError(f"{where} is a dialogue; a release is made of scenarios")
    if "scenario" not in record:
        return Scenario.from_dict(record, where)
    candidate = Candidate.from_dict(record, where)
    references = candidate.references[:MOST_REFERENCES]
    known = ("dialogue", "source", "licence")
    notes = [
        {"origin": one.origin} | {k: v for k, v in one.provenance.items() if k in known}
        for one in references
    ]
    metadata = {**candidate.scenario.metadata, REFERENCES: notes}
    if review := candidate.review:
        metadata["review"] = {
            "status": review.get("status"),
            "scores": review.get("rubric", {}).get("scores", {}),
        }
    return replace(
        candidate.scenario, references=tuple(one.text for one in references), metadata=metadata
    )


def objections(item: ReleaseItem, acceptance: Acceptance) -> Iterator[str]:
    """Why people have not accepted an item as it is; the crowd's reasons first."""
    votes = {(vote.round, vote.question): vote for vote in item.votes}
    wanted_of = {
        (CROWD, "keep"): "keep",
        (CROWD, "subtask"): item.scenario.subtask,
        (EXPERT, "keep"): "keep",
    }
    for (kind, question), wanted in wanted_of.items():
        vote = votes.get((kind, question))
        if vote is not None and vote.rule == TIE:
            yield f"{kind}: open tie on {question}"
        elif vote is None or not vote.decision:
            yield f"{kind}: no decision on {question}"
        elif vote.decision != wanted:
            yield f"{kind}: {question} is {vote.decision}"
    least_of = asdict(acceptance)
    experts = votes.get((EXPERT, "keep"))
    wanted_experts = least_of.pop("experts")
    if experts is not None and len(experts.values) < wanted_experts:
        yield f"fewer than {wanted_experts} experts"
    for question, least in least_of.items():
        rating = votes.get((EXPERT, question))
        if rating is None or not rating.decision:
            yield f"no rating of {question}"
        elif float(rating.decision) < least:
            yield f"{question} below {least:g}"


def require_persona(persona: str, personas: Mapping[str, Persona], where: str) -> None:
    """Raise DataError, starting with `where`, unless a persona is known."""
    if persona not in personas:
        advice = (
            f"choose from {', '.join(personas)}, or name the folder of your own under `personas`"
        )
        raise DataError(f"{where}: persona {quoted(persona)} is not known; {advice}")


def _move(item: ReleaseItem, personas: Mapping[str, Persona]) -> ReleaseItem:
    """The item in the subtask that the crowd chose, if that has the same inputs; without what breaks its contract."""
    old = item.scenario
    voted = next(
        (one.decision for one in item.votes if (one.round, one.question) == (CROWD, "subtask")), ""
    )
    if (
        voted == old.subtask
        or voted not in SUBTASKS
        or SUBTASKS[voted].inputs != SUBTASKS[old.subtask].inputs
    ):
        return item
    new = replace(old, subtask=voted)
    kept = [
        at
        for at, text in enumerate(old.references)
        if not broken_rules(text, new, personas[new.persona])
    ]
    notes = old.metadata.get(REFERENCES)
    metadata = {**old.metadata, REFERENCES: [notes[at] for at in kept]} if notes else old.metadata
    references = tuple(old.references[at] for at in kept)
    return replace(item, scenario=replace(new, references=references, metadata=metadata))


def _vote_rows(outcome: RoundOutcome) -> Iterator[VoteRow]:
    votes: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for (item, annotator, name), one in outcome.annotations.items():
        votes[item, name].append((annotator, str(one.value)))
    questions = [question for question in QUESTIONS[outcome.spec.kind] if question.decided]
    for item, question in product(outcome.sources, questions):
        decision = outcome.decisions[item, question.name]
        label = decision.label
        own = sorted(votes[item, question.name])
        pairs = len(own) * (len(own) - 1)
        equal = sum(n * (n - 1) for n in Counter(value for _, value in own).values())
        yield VoteRow(
            item=item,
            round=outcome.spec.kind,
            question=question.name,
            form=question.form,
            annotators=tuple(annotator for annotator, _ in own),
            values=tuple(value for _, value in own),
            decision=""
            if label is None
            else f"{label:g}"
            if isinstance(label, float)
            else str(label),
            rule=decision.rule,
            agreement=equal / pairs if pairs else None,
        )


def families(items: Iterable[ReleaseItem]) -> dict[str, str]:
    """Id -> a name of its family: items that share an id, directly or by way of others, are of one family."""
    groups = DisjointSet()
    for item in items:
        groups.add(item.id)
        for one in item.family():
            groups.add(one)
            groups.merge(item.id, one)
    return {name: first for group in groups.subsets() for first in [min(group)] for name in group}


def select(
    items: Sequence[ReleaseItem],
    quotas: Mapping[str, Quota],
    seed: int,
    history: History = NO_HISTORY,
) -> dict[str, tuple[ReleaseItem, ...]]:
    """Choose the items of a release; the result depends on seed and ids, never on the order of items.

    Families are whole: those of split `dev` come first, so that no item of `test` shares a dialogue or person with one
    of them. Families once in `test` never enter `dev`, those once in `dev` never `test`; items of an earlier release
    are chosen before others. Within a subtask of `test`, and in `dev`, language, emotion and complexity keep the shares
    that they have among the accepted items.

    `quotas`: subtask -> items of split `test`, or `all`; also `dev`. Returns split -> items, sorted by id; fewer than a
    quota where there are no more.
    """
    family = families(items)
    test_before = history.get(TEST, frozenset())
    dev_before = history.get(DEV, frozenset())
    once_test = {family[item.id] for item in items if not test_before.isdisjoint(item.family())}
    once_dev = {family[item.id] for item in items if not dev_before.isdisjoint(item.family())}
    free = [item for item in items if family[item.id] not in once_test]
    free.sort(key=lambda item: seeded_number(seed, DEV, item.id))
    free.sort(
        key=lambda item: (
            family[item.id] not in once_dev,
            seeded_number(seed, DEV, family[item.id]),
        )
    )
    dev_quota = quotas.get(DEV, 0)
    dev_count = dev_quota if isinstance(dev_quota, int) else len(free)
    dev = _stratified(free, dev_count, seed, dev_before)
    # A language with a small share has one item all the same.
    first = {item.scenario.language: item for item in reversed(free)}
    languages = {item.scenario.language for item in dev}
    dev = [*(item for language, item in first.items() if language not in languages), *dev][
        : len(dev)
    ]
    in_dev = {family[item.id] for item in dev} | once_dev
    by_subtask: dict[str, list[ReleaseItem]] = defaultdict(list)
    for item in sorted(items, key=lambda item: seeded_number(seed, TEST, item.id)):
        if family[item.id] not in in_dev:
            by_subtask[item.scenario.subtask].append(item)
    test: list[ReleaseItem] = []
    for name, candidates in by_subtask.items():
        quota = quotas.get(name, 0)
        count = quota if isinstance(quota, int) else len(candidates)
        test += _stratified(candidates, count, seed, test_before)
    splits = {TEST: test} | ({DEV: dev} if quotas.get(DEV) else {})
    return {
        split: tuple(sorted(chosen, key=lambda item: item.id)) for split, chosen in splits.items()
    }


def _stratified(
    order: Sequence[ReleaseItem], count: int, seed: int, before: Collection[str]
) -> list[ReleaseItem]:
    """At most `count` items: those of earlier releases, then of each stratum its share, by largest remainder."""
    kept = [item for item in order if item.id in before][:count]
    rest = [item for item in order if item.id not in before]
    count = count - len(kept)
    if len(rest) <= count:
        return [*kept, *rest]
    strata: dict[tuple[str, ...], list[ReleaseItem]] = defaultdict(list)
    for item in rest:
        tags = item.scenario.tags
        strata[item.scenario.language, tags.emotion, tags.complexity].append(item)
    exact = {key: len(theirs) * count / len(rest) for key, theirs in strata.items()}
    left = count - sum(map(int, exact.values()))
    one_more = sorted(
        strata, key=lambda key: (int(exact[key]) - exact[key], seeded_number(seed, *key))
    )[:left]
    return [
        *kept,
        *(
            item
            for key, theirs in strata.items()
            for item in theirs[: int(exact[key]) + (key in one_more)]
        ),
    ]
