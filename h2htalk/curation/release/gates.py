"""The gates: what stops a release, item by item and as a whole (DESIGN, section 6.6). Adding one is a record here."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.curation.dedup.removals import match
from h2htalk.curation.dedup.signatures import map_part, open_index
from h2htalk.curation.licences import refusal
from h2htalk.curation.release.acceptance import contract_violations, objections
from h2htalk.curation.release.content import ReleaseContent, case_texts, scenario_texts
from h2htalk.curation.release.invented_values import InventedValues
from h2htalk.curation.release.items import VoteRow, families
from h2htalk.curation.release.selection import History
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, DataError, quoted
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, DAWID_SKENE, TIE

_TEXTS = "h2htalk.curation.release.text_gates"
_RULES = __name__
# (item, what was found there), of gates with `may_allow` the text's hash; the item is empty for the release as a whole.
Found = tuple[str, str] | tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found: in which item (empty: the release as a whole), and what; `text`: the hash of what it read."""

    gate: str
    item: str
    detail: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class GateContext:
    """What gates know beside the content.

    `surrogates`: the invented values that anonymisation put into dialogues; `history`: of earlier releases;
    `invented`: of a split, the names, dates of birth and addresses of nobody, as findings print them; `allowed`: (gate,
    item, hash of a text or nothing for any) that the owner publishes; `unread`: private references are not at hand.
    """

    spec: ReleaseSpec
    surrogates: InventedValues = field(default_factory=InventedValues)
    history: History = field(default_factory=History)
    invented: frozenset[str] = frozenset()
    allowed: frozenset[tuple[str, str, str]] = frozenset()
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: its name, what it stops, and the module of its function `NAME(content, context)`, which yields `Found`.

    `each`: whether what it finds in an item depends on that item alone; `may_allow`: whether an owner may allow what it
    finds in an item, with a reason that the card prints.
    """

    name: str
    stops: str
    module: str
    each: bool = True
    may_allow: bool = False

    def run(self, content: ReleaseContent, context: GateContext) -> list[Finding]:
        """The findings, sorted, each once."""
        found: Iterable[Found] = getattr(import_module(self.module), self.name)(content, context)
        named = (Finding(self.name, *one) for one in sorted(set(found)))
        return [f for f in named if context.allowed.isdisjoint({(f.gate, f.item, ""), (f.gate, f.item, f.text)})]


GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("personal_data", "personal data that anonymisation did not invent", _TEXTS),
        Gate("crisis_care", "a crisis without a tag of its risk", _TEXTS),
        Gate("leaked_prompts", "instructions to a model", _TEXTS),
        Gate("minors", "an apparent minor in a romantic setting", _TEXTS),
        Gate("companion_harm", "a companion's turn that seems to do harm", _TEXTS, may_allow=True),
        Gate("explicit_content", "a companion's turn that seems sexual", _TEXTS, may_allow=True),
        Gate("contracts", "a reference that breaks its subtask's contract", _RULES),
        Gate("licences", "a licence that does not allow the release's", _RULES),
        Gate("ties", "an open tie", _RULES),
        Gate("decisions", "a decision that is missing or against the item", _RULES),
        Gate("near_duplicates", "items that say nearly the same as others", _RULES, each=False),
        Gate("splits", "a dialogue or person in two splits", _RULES, each=False),
        Gate("quotas", "fewer items than asked for", _RULES, each=False),
    )
}

_MAY_ALLOW = [gate.name for gate in GATES.values() if gate.may_allow]
_STORED = re.compile(rf"([0-9a-f]{{16}}(?:,[0-9a-f]{{16}})*) ({'|'.join(_MAY_ALLOW)}):([^=]+)=(.+)", re.DOTALL)


def read_allowed(texts: Sequence[str]) -> dict[tuple[str, str], str]:
    """Read what an owner allows, `GATE:ITEM=REASON` each: (gate, item) -> reason. Raises ConfigError."""
    found = {}
    for text in texts:
        place, _, reason = text.partition("=")
        gate, _, item = place.partition(":")
        seen = "".join(sign for sign in " ".join(reason.split()) if unicodedata.category(sign)[0] != "C")
        letters = [sum(s.isalpha() and "FILLER" not in unicodedata.name(s, "") for s in word) for word in seen.split()]
        if gate not in _MAY_ALLOW or not item or (sum(map(bool, letters)) < 2 and sum(letters) < 8):
            raise ConfigError(
                f"--allow {quoted(text)}: write GATE:ITEM=REASON; gates: {', '.join(_MAY_ALLOW)}; the card prints the "
                "reason: at least two words or eight letters"
            )
        found[gate, item] = seen.strip()
    return found


def stored_allowed(allowed: Mapping[tuple[str, str], str], content: ReleaseContent, context: GateContext) -> list[str]:
    """What is allowed as `release.json` holds it, with the hashes of what is found. Raises ConfigError."""
    lines = []
    for (gate, item), reason in sorted(allowed.items()):
        own = replace(content, splits={TEST: tuple(one for one in content.items() if one.id == item)})
        found = GATES[gate].run(own, replace(context, allowed=frozenset()))
        if not (texts := sorted({one.text for one in found if one.item == item})):
            raise ConfigError(f"--allow {quoted(f'{gate}:{item}')}: the gate finds nothing there; leave it out")
        lines.append(f"{','.join(texts)} {gate}:{item}={reason}")
    return lines


def read_stored(lines: Sequence[object], where: str) -> tuple[frozenset[tuple[str, str, str]], list[str]]:
    """What `stored_allowed` wrote: (gate, item, hash) of each text, and the lines without hashes. Raises DataError."""
    found = [_STORED.fullmatch(line) for line in lines if isinstance(line, str)]
    if None in found or len(found) < len(lines):
        raise DataError(f"{where}: facts.allowed: not the lines that a build writes; get the release again")
    parts = [one.groups() for one in found if one]
    texts = frozenset((gate, item, text) for hashes, gate, item, _ in parts for text in hashes.split(","))
    return texts, [f"{gate}:{item}={reason}" for _, gate, item, reason in parts]


def run_gates(
    content: ReleaseContent, context: GateContext, gates: Sequence[Gate] = tuple(GATES.values())
) -> list[Finding]:
    """The findings of gates, by default of all of them.

    Those that read each item alone run item by item, since they share what they have read of a text.
    """
    one = partial(replace, content, splits={}, cases=())
    parts = [
        *(one(splits={TEST: (item,)}) for item in content.items()),
        *(one(cases=(case,)) for case in content.cases),
    ]
    of_parts = [finding for part in parts for gate in gates if gate.each for finding in gate.run(part, context)]
    found = list(dict.fromkeys(of_parts))  # items share personas
    return found + [finding for gate in gates if not gate.each for finding in gate.run(content, context)]


# --- Gates over votes, licences, contracts, quotas and duplicates ---

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
    found = find_pairs([part], mapped)
    sides = cache(mapped.sides)
    names = [dialogue.id for dialogue in dialogues]
    for number, evidence in mapped.contaminated.items():
        of = f"{evidence['of']} of the split {evidence['split']}"
        yield names[number], f"{evidence['similarity']:.2f} similar to {of}"
    # Of equal texts one stands for all: those of other families are found already.
    first = mapped.first.tolist()
    pairs = [(first[node], number) for number, node in enumerate(mapped.node.tolist()) if node >= 0]
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
