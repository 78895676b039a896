"""Keyed hashes of what closing writes: who lacks the round's private folder cannot forge what another round believes.

The hash of a decision covers the decision, the item's text and source record, and the annotations that it rests on.
Each stands alone: an item that is erased takes its decisions along, and the others stay valid.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from h2htalk.data.files import json_line
from h2htalk.rounds.aggregation.decisions import Decision
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder


def keyed_hash(folder: RoundFolder, purpose: str, *content: object) -> str:
    """Return 32 hexadecimal digits of the HMAC-SHA256 over the round's name and kind and JSON values.

    The key is the round's salt, under which names of annotators are hashed, too; no name is a JSON list.
    """
    covered = json_line([f"h2htalk {purpose}", folder.name, folder.spec().kind, *content])
    return hmac.new(folder.salt(), covered.encode(), hashlib.sha256).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class DecisionMacs:
    """The keyed hashes of one round's decisions.

    Attributes:
        key: of this round's decisions, made from its salt, name and kind.
        items: item -> digest of its text and its source record.
        answers: (item, question) -> digest of the valid annotations, in the order of annotators.
    """

    key: bytes
    items: Mapping[str, str]
    answers: Mapping[tuple[str, str], str]

    @classmethod
    def of(cls, folder: RoundFolder, items: Iterable[Item], annotations: Iterable[Annotation]) -> DecisionMacs:
        """Prepare the hashes; `annotations`: the valid ones."""
        sources = folder.sources()
        digests = {item.id: _digest([item.to_dict(), sources.get(item.id)]) for item in items}
        answers: dict[tuple[str, str], hashlib._Hash] = {}
        for one in sorted(annotations, key=lambda annotation: annotation.key):
            given = json_line([one.annotator, one.value, one.when]).encode()
            answers.setdefault((one.item, one.question), hashlib.sha256()).update(given)
        found = {key: digest.hexdigest() for key, digest in answers.items()}
        return cls(keyed_hash(folder, "decisions").encode(), digests, found)

    def signed(self, decision: Decision) -> Decision:
        """Return the decision with its hash."""
        content = replace(decision, mac="").to_dict()
        answers = self.answers.get((decision.item, decision.question), "")
        covered = json_line([content, self.items[decision.item], answers])
        return replace(decision, mac=hmac.new(self.key, covered.encode(), hashlib.sha256).hexdigest()[:32])


def _digest(value: object) -> str:
    return hashlib.sha256(json_line(value).encode()).hexdigest()
