"""Which items people kept: decisions of crowd and expert rounds held against the thresholds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.curation.release.items import ReleaseItem, VoteRow, scenario_of_record, with_references
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.persona import Persona
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.rounds.aggregation.decisions import TIE
from h2htalk.rounds.outcome import RoundOutcome
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.text.contracts.contract import check_scenario

CROWD, EXPERT = "crowd", "expert"
NO_SUBTASK = "none"
# (item, question) -> annotator and value of each vote.
Votes = Mapping[tuple[str, str], Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The accepted items, and why each of the others was refused."""

    items: tuple[ReleaseItem, ...]
    refused: Mapping[str, str]

    def reasons(self) -> dict[str, int]:
        """Reason -> number of items, the most frequent first."""
        return count_values(self.refused.values())


def count_values(values: Iterable[str]) -> dict[str, int]:
    """Value -> number, the most frequent first."""
    return dict(sorted(Counter(values).items(), key=lambda pair: (-pair[1], pair[0])))


def accept(
    spec: ReleaseSpec,
    rounds: Sequence[RoundOutcome],
    personas: Mapping[str, Persona],
    erased: Collection[str],
) -> Accepted:
    """Accept the items that the crowd and the experts kept.

    Args:
        spec: of the release.
        rounds: closed crowd and expert rounds.
        personas: whose names a reference must not say, by id.
        erased: ids of dialogues, persons and items that were erased.

    Raises:
        ConfigError: there is no crowd round or no expert round.
        DataError: an item is in two rounds of one kind, or a record is invalid.
    """
    by_kind: dict[str, list[RoundOutcome]] = {CROWD: [], EXPERT: []}
    for one in rounds:
        if one.spec.kind not in by_kind:
            raise ConfigError(f"{one.path}: a round of {one.spec.kind} decides nothing in a release; leave it out")
        by_kind[one.spec.kind].append(one)
    for kind, found in by_kind.items():
        if not found:
            raise ConfigError(f"the release has no closed {kind} round; open one, or name its folder under `rounds`")
    crowd, expert = (_by_item(by_kind[kind]) for kind in (CROWD, EXPERT))
    votes = {one.path: _votes(one) for one in rounds}
    gone = ErasedIds(frozenset({*erased, *spec.exclude}))
    items: list[ReleaseItem] = []
    refused: dict[str, str] = {}
    for name in sorted({*crowd, *expert}):
        source = expert.get(name) or crowd[name]
        scenario = scenario_of_record(source.sources[name], f"{source.path / 'sources.jsonl'}: {name}")
        require_persona(scenario.persona, personas, name)
        item = _judge(spec, scenario, crowd.get(name), expert.get(name), personas, gone, votes)
        if isinstance(item, str):
            refused[name] = item
        else:
            items.append(item)
    return Accepted(tuple(items), refused)


def require_persona(persona: str, personas: Mapping[str, Persona], where: str) -> None:
    """Raise DataError, starting with `where`, unless a persona is known."""
    if persona not in personas:
        raise DataError(
            f"{where}: persona {quoted(persona)} is not known; choose from {', '.join(personas)}, or name the folder "
            "of your own under `personas`"
        )


def _by_item(rounds: Sequence[RoundOutcome]) -> dict[str, RoundOutcome]:
    found: dict[str, RoundOutcome] = {}
    for one in rounds:
        for name in one.sources:
            if name in found:
                raise DataError(
                    f"{name}: is in the rounds {found[name].path} and {one.path}; name only one of them under `rounds`"
                )
            found[name] = one
    return found


def _judge(
    spec: ReleaseSpec,
    scenario: Scenario,
    crowd: RoundOutcome | None,
    expert: RoundOutcome | None,
    personas: Mapping[str, Persona],
    gone: ErasedIds,
    votes: Mapping[Path, Votes],
) -> ReleaseItem | str:
    """The item, or the reason why it is refused."""
    name = scenario.id
    if gone.covers(scenario.to_dict()):
        return "erased or excluded"
    if reason := _crowd_refuses(name, crowd):
        return reason
    if reason := _experts_refuse(spec, name, expert):
        return reason
    assert crowd is not None  # _crowd_refuses has a reason without a round
    assert expert is not None
    voted = str(crowd.decisions[name, "subtask"].label)
    if voted != scenario.subtask:
        moved = _moved(scenario, voted, personas)
        if moved is None:
            return "the crowd chose a subtask whose contract does not hold"
        scenario = moved
    rows = [row for one in (crowd, expert) for row in _vote_rows(name, one, votes[one.path])]
    return ReleaseItem(scenario, tuple(rows))


def _crowd_refuses(name: str, crowd: RoundOutcome | None) -> str:
    for question in ("keep", "subtask"):
        decision = crowd.decisions.get((name, question)) if crowd else None
        if decision is None or (decision.label is None and decision.rule != TIE):
            return f"no decision of the crowd on {question}"
        if decision.rule == TIE:
            return f"open tie of the crowd on {question}"
        if decision.label in ("drop", NO_SUBTASK):
            return "dropped by the crowd" if question == "keep" else "no subtask, said the crowd"
    return ""


def _experts_refuse(spec: ReleaseSpec, name: str, expert: RoundOutcome | None) -> str:
    keep = expert.decisions.get((name, "keep")) if expert else None
    if expert is None or keep is None:
        return "not put to experts"
    if keep.votes < spec.acceptance.experts:
        return f"fewer than {spec.acceptance.experts} experts"
    if keep.rule == TIE:
        return "open tie of the experts on keep"
    if keep.label != "keep":
        return "dropped by the experts"
    for question, least in spec.acceptance.ratings().items():
        rating = expert.decisions.get((name, question))
        if rating is None or not isinstance(rating.label, (int, float)):
            return f"no rating of {question}"
        if rating.label < least:
            return f"{question} below {least:g}"
    return ""


def _moved(scenario: Scenario, subtask: str, personas: Mapping[str, Persona]) -> Scenario | None:
    """The scenario as one of another subtask, with the references that keep its contract; None where none does."""
    if SUBTASKS[subtask].inputs != SUBTASKS[scenario.subtask].inputs:
        return None
    moved = replace(scenario, subtask=subtask)
    kept = [at for at, text in enumerate(scenario.references) if not contract_violations(moved, text, personas)]
    return with_references(moved, kept) if kept else None


def contract_violations(scenario: Scenario, text: str, personas: Mapping[str, Persona]) -> list[str]:
    """The rules of its contract that a reference breaks."""
    persona = personas[scenario.persona]
    description = persona.descriptions.get(scenario.language, "")
    names = tuple(persona.names.values())
    return [violation.rule for violation in check_scenario(text, scenario, names, None, description)]


def _votes(outcome: RoundOutcome) -> Votes:
    """(item, question) -> the votes, each with its annotator, in the order of their ids."""
    votes: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for (item, annotator, question), one in outcome.annotations.items():
        votes[item, question].append((annotator, str(one.value)))
    return votes


def _vote_rows(name: str, outcome: RoundOutcome, votes: Votes) -> Iterator[VoteRow]:
    for question in QUESTIONS[outcome.spec.kind]:
        if question.decided:
            decision = outcome.decisions[name, question.name]
            label = decision.label
            own = sorted(votes.get((name, question.name), ()))
            pairs = len(own) * (len(own) - 1)
            equal = sum(n * (n - 1) for n in Counter(value for _, value in own).values())
            yield VoteRow(
                item=name,
                round=outcome.spec.kind,
                question=question.name,
                form=question.form,
                annotators=tuple(annotator for annotator, _ in own),
                values=tuple(value for _, value in own),
                decision="" if label is None else f"{label:g}" if isinstance(label, float) else str(label),
                rule=decision.rule,
                agreement=equal / pairs if pairs else None,
            )
