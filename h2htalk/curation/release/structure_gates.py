"""Gates over votes, licences, contracts, quotas and duplicates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, Nodes, group
from h2htalk.curation.dedup.hashing import map_part, open_index
from h2htalk.curation.dedup.similarity import match
from h2htalk.curation.licences import refusal
from h2htalk.curation.release.acceptance import contract_violations, objections
from h2htalk.curation.release.content import ReleaseContent, case_texts, scenario_texts
from h2htalk.curation.release.gates import Found, GateContext
from h2htalk.curation.release.items import VoteRow, families
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import quoted
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, DAWID_SKENE, TIE

# Similarity from which two items are near-duplicates, as in `dedup`.
THRESHOLD = 0.7


def contracts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """References that break their subtask's contract, and scenarios without a reference."""
    for item in content.items():
        scenario = item.scenario
        if not scenario.references and not context.unread:
            yield item.id, "has no reference"
        for number, text in enumerate(scenario.references, 1):
            if broken := contract_violations(scenario, text, content.personas):
                yield item.id, f"reference {number}: {', '.join(broken)}"


def licences(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items, and references of other dialogues, whose licence does not allow the release's."""
    owned = [
        (item.id, licence)
        for item in content.items()
        for licence in (item.scenario.licence, *item.reference_licences())
    ]
    for name, licence in [*owned, *((case.id, case.licence) for case in content.cases)]:
        if reason := refusal(licence, context.spec.licence):
            yield name, reason


def ties(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Questions on which the votes are tied."""
    for item in content.items():
        for vote in item.votes:
            if vote.form == "label" and (vote.rule == TIE or (not vote.decision and vote.values)):
                yield item.id, f"{vote.round}: {vote.question} is tied"


def decisions(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items that people have not accepted, and decisions that votes do not give."""
    for item in content.items():
        yield from ((item.id, objection) for objection in objections(item, context.spec.acceptance))
        for vote in item.votes:
            if vote.form == "label" and vote.rule not in (ADJUDICATION, DAWID_SKENE) and vote.decision != _most(vote):
                yield item.id, f"{vote.round}: the votes on {vote.question} do not give {quoted(vote.decision)}"


def _most(vote: VoteRow) -> str:
    """The label with most votes; empty for a tie and without votes."""
    (label, most), (_, second) = [*Counter(vote.values).most_common(2), ("", 0), ("", 0)][:2]
    return label if most > second else ""


def near_duplicates(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items and cases of different families that say nearly the same, and those that another split holds."""
    items = sorted(content.items(), key=lambda item: item.id)
    family = families(items) | {case.id: f"case {case.family}" for case in content.cases}
    dialogues = [Dialogue(item.id, item.scenario.language, tuple(scenario_texts(item.scenario))) for item in items]
    dialogues += [Dialogue(case.id, case.language, tuple(case_texts(case))) for case in content.cases]
    import numpy as np

    part = map_part([dialogue.to_dict() for dialogue in dialogues], open_index(context.spec.other_splits, THRESHOLD))
    mapped = MappedDialogues([part], None)  # a kill leaves no text in a temporary file
    nodes = Nodes.of(mapped)
    found = group([part], mapped, nodes)
    sides = cache(mapped.sides)
    names = [dialogue.id for dialogue in dialogues]
    for number, evidence in mapped.contaminated.items():
        of = f"{evidence['of']} of the split {evidence['split']}"
        yield names[number], f"{evidence['similarity']:.2f} similar to {of}"
    # Of equal texts one stands for all: those of other families are found already.
    first = nodes.first.tolist()
    pairs = [(first[node], number) for number, node in enumerate(nodes.node.tolist()) if node >= 0]
    pairs += [(first[one], first[other]) for one, other in zip(*map(np.ndarray.tolist, found), strict=True)]
    for one, other in pairs:
        if family[names[one]] != family[names[other]] and (same := match(sides(one), sides(other), THRESHOLD)):
            first_name, second_name = sorted((names[one], names[other]))
            yield second_name, f"{same.similarity:.2f} similar to {first_name}"


def splits(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Families in two splits, or in another one than in an earlier release."""
    family = families(content.items())
    first: dict[str, str] = {}
    for split, items in content.splits.items():
        before = context.history.test if split == DEV else context.history.dev
        for item in items:
            if first.setdefault(family[item.id], split) != split:
                yield item.id, f"its dialogue or person is in the split {first[family[item.id]]} too"
            if not before.isdisjoint({item.id, *item.family()}):
                yield item.id, f"was in the split {TEST if split == DEV else DEV} of an earlier release"


def quotas(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Subtasks, and the split `dev`, with fewer items than asked for."""
    counts = Counter(item.scenario.subtask for item in content.splits.get(TEST, ()))
    counts[DEV] = len(content.splits.get(DEV, ()))
    for name, quota in context.spec.quota_of().items():
        if counts[name] < quota:
            yield "", f"{name}: {counts[name]:,} of {quota:,} items"
    languages = {item.scenario.language for item in content.splits.get(TEST, ())}
    for language in languages - {item.scenario.language for item in content.splits.get(DEV, ())} if counts[DEV] else ():
        yield "", f"{DEV}: no item in {language}, which the split {TEST} has"
