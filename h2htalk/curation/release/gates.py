"""The gates: what stops a release, item by item and as a whole (DESIGN, section 6.6). Adding one is a record here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

from h2htalk.curation.release.content import ReleaseContent
from h2htalk.curation.release.gate_context import GateContext

_TEXTS = "h2htalk.curation.release.text_gates"
_RULES = "h2htalk.curation.release.structure_gates"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found: in which item (empty: the release as a whole), and what."""

    gate: str
    item: str
    detail: str


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: its name, what it stops, and its function `(content, context) -> iterable of (item, detail)`.

    `each`: whether what it finds in an item depends on that item alone.
    """

    name: str
    stops: str
    path: str
    each: bool = True

    def run(self, content: ReleaseContent, context: GateContext) -> list[Finding]:
        """The findings, sorted, each once."""
        module, _, function = self.path.partition(":")
        found: Iterable[tuple[str, str]] = getattr(import_module(module), function)(content, context)
        return [Finding(self.name, item, detail) for item, detail in sorted(set(found))]


GATES: Mapping[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("personal_data", "personal data that anonymisation did not invent", f"{_TEXTS}:personal_data"),
        Gate("crisis_care", "a crisis without a tag of its risk", f"{_TEXTS}:crisis_care"),
        Gate("leaked_prompts", "instructions to a model", f"{_TEXTS}:leaked_prompts"),
        Gate("minors", "an apparent minor in a romantic setting", f"{_TEXTS}:minors"),
        Gate("contracts", "a reference that breaks its subtask's contract", f"{_RULES}:contracts"),
        Gate("licences", "a licence that does not allow the release's", f"{_RULES}:licences"),
        Gate("ties", "an open tie", f"{_RULES}:ties"),
        Gate("decisions", "a decision that is missing or against the item", f"{_RULES}:decisions"),
        Gate("near_duplicates", "items that say nearly the same as others", f"{_RULES}:near_duplicates", each=False),
        Gate("splits", "a dialogue or person in two splits", f"{_RULES}:splits", each=False),
        Gate("quotas", "fewer items than asked for", f"{_RULES}:quotas", each=False),
    )
}


def run_gates(content: ReleaseContent, context: GateContext, *, each: bool | None = None) -> list[Finding]:
    """Run all gates in the order of the table, or those that look at each item alone (True) or at all (False)."""
    chosen = [gate for gate in GATES.values() if each in (None, gate.each)]
    return [finding for gate in chosen for finding in gate.run(content, context)]
