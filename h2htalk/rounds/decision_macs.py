"""Keyed hashes of what closing writes: who lacks the round's private folder cannot forge what another round believes.

The hash of a decision covers the decision, the item's text and source record, and the annotations that it rests on.
Each stands alone: an item that is erased takes its decisions along, and the others stay valid.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import replace

from h2htalk.data.files import json_line
from h2htalk.rounds.aggregation.decisions import Decision
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder


def keyed_hash(folder: RoundFolder, purpose: str) -> Callable[..., str]:
    """Return a function of JSON values: 32 hexadecimal digits of their HMAC-SHA256 with the round's name and kind.

    The key is the round's salt, under which names of annotators are hashed, too; no name is a JSON list.
    """
    key, known = folder.salt(), [f"h2htalk {purpose}", folder.name, folder.spec().kind]
    return lambda *content: hmac.new(key, json_line([*known, *content]).encode(), hashlib.sha256).hexdigest()[:32]


def decision_signer(
    folder: RoundFolder, items: Iterable[Item], annotations: Iterable[Annotation]
) -> Callable[[Decision], Decision]:
    """Return a function that gives a decision its hash. `annotations`: the valid ones of the round."""
    sources, keyed = folder.sources(), keyed_hash(folder, "decisions")
    texts = {item.id: keyed(item.to_dict(), sources.get(item.id)) for item in items}
    answers: dict[tuple[str, str], hashlib._Hash] = {}
    for one in sorted(annotations, key=lambda annotation: annotation.key):
        given = json_line([one.annotator, one.value, one.when]).encode()
        answers.setdefault((one.item, one.question), hashlib.sha256()).update(given)

    def signed(decision: Decision) -> Decision:
        given = answers.get((decision.item, decision.question))
        content = replace(decision, mac="").to_dict(), texts[decision.item], given and given.hexdigest()
        return replace(decision, mac=keyed(*content))

    return signed
