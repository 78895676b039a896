"""The gates: what stops a release, item by item and as a whole (DESIGN, section 6.6). Adding one is a record here."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module

from h2htalk.curation.release.content import ReleaseContent
from h2htalk.curation.release.invented_values import InventedValues
from h2htalk.curation.release.selection import History
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.data.releases.release_folder import TEST
from h2htalk.errors import ConfigError, DataError, quoted

_TEXTS = "h2htalk.curation.release.text_gates"
_RULES = "h2htalk.curation.release.structure_gates"
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
