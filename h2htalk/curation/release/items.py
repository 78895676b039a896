"""An item that may enter a release, and what belongs to it: its votes, the licences of its references, its family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import with_config

from h2htalk.curation.candidates import Candidate
from h2htalk.data.records import STRICT
from h2htalk.data.scenario import MOST_REFERENCES, Scenario
from h2htalk.errors import DataError

# Keys of a scenario's metadata in a release.
REFERENCES, REVIEW = "references", "review"


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class VoteRow:
    """The votes on one question of one item in a round of a kind (`round`), and what was decided.

    Attributes:
        form: `label` or `rating`.
        annotators: salted hashes, one a vote.
        values: the votes, as text.
        decision: the decided label or the mean as text; empty for a tie or without votes.
        rule: the rule of the decision (`rounds.aggregation.decisions.RULES`).
        agreement: the share of pairs of votes that are equal, 0 to 1; None below two votes.
    """

    item: str
    round: str
    question: str
    form: str
    annotators: tuple[str, ...]
    values: tuple[str, ...]
    decision: str
    rule: str
    agreement: float | None = None


@dataclass(frozen=True, slots=True)
class ReleaseItem:
    """A scenario with the votes on it."""

    scenario: Scenario
    votes: tuple[VoteRow, ...] = ()

    @property
    def id(self) -> str:
        return self.scenario.id

    def licences(self) -> list[str]:
        """The licence of the item, and those of references from other dialogues."""
        notes = self.scenario.metadata.get(REFERENCES, ())
        own = [str(note["licence"]) for note in notes if isinstance(note, Mapping) and "licence" in note]
        return [self.scenario.licence, *own]

    def family(self) -> frozenset[str]:
        """The ids that items of one family share: of the dialogue, its duplicates, the person, other replies."""
        provenance = self.scenario.provenance
        notes = self.scenario.metadata.get(REFERENCES, ())
        ids = {provenance.get("dialogue") or self.id, provenance.get("person"), *provenance.get("merged", ())}
        ids.update(note.get("dialogue") for note in notes if isinstance(note, Mapping))
        return frozenset(str(one) for one in ids if one)


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
    notes = [
        {"origin": one.origin}
        | {key: one.provenance[key] for key in ("dialogue", "source", "licence") if key in one.provenance}
        for one in references
    ]
    metadata = {**candidate.scenario.metadata, REFERENCES: notes}
    if review := candidate.review:
        metadata[REVIEW] = {"status": review.get("status"), "scores": review.get("rubric", {}).get("scores", {})}
    return replace(candidate.scenario, references=tuple(one.text for one in references), metadata=metadata)


def families(items: Iterable[ReleaseItem]) -> dict[str, str]:
    """Item -> a name of its family: items that share an id, directly or by way of others, are of one family."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    ids = {item.id: sorted(item.family()) for item in items}
    for first, *others in ids.values():
        for other in others:
            one, two = sorted((root(first), root(other)))
            parent[two] = one
    return {name: root(first) for name, (first, *_) in ids.items()}
