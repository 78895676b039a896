"""A sample of the dialogues in which the safety stage found nothing, drawn by seed, for people to read.

Of each language the same number is drawn, of each source of a language its share of it (the method of largest
remainders), so that a share of the sample estimates that of all. Within a source the order is that of a hash of the
seed and the id: it depends on nothing else.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object
from h2htalk.errors import RoundError, quoted
from h2htalk.rounds.items import Item

SourcedDialogue = tuple[Item, Mapping[str, Any] | None]
Facts = dict[
    str, Any
]  # of the manifest: how many there were to draw from, by language, and of which stage


def draw_untagged(
    name: str, dialogues: Iterable[SourcedDialogue], keep: int, seed: int
) -> tuple[list[SourcedDialogue], Facts]:
    """Draw dialogues that a safety stage kept without tag, note or hint: `keep` of each language, or all there are.

    Raise RoundError where a record is none that a safety stage kept, or where nothing is left to draw from.
    """
    strata: dict[str, dict[str, list[SourcedDialogue]]] = defaultdict(lambda: defaultdict(list))
    for item, record in dialogues:
        if _is_untagged(name, item, record):
            strata[item.language][_source_of(record)].append((item, record))
    if not strata:
        raise RoundError(
            f"{name}: every dialogue has a tag, a note or a hint; there is nothing to draw a sample from"
        )
    drawn: list[SourcedDialogue] = []
    for _, by_source in sorted(strata.items()):
        sizes = {source: len(own) for source, own in by_source.items()}
        for source, number in shares(sizes, keep).items():
            ordered = sorted(by_source[source], key=lambda pair: _place(seed, pair[0].id))
            drawn += ordered[:number]
    population = {language: sum(map(len, own.values())) for language, own in sorted(strata.items())}
    return sorted(drawn, key=lambda pair: pair[0].id), {
        "population": population,
        "stage": stage_fingerprint(name),
    }


def shares(sizes: Mapping[str, int], keep: int) -> dict[str, int]:
    """Return how many to draw of each stratum: together `keep`, or all there are, in proportion to their sizes."""
    total = sum(sizes.values())
    wanted = min(keep, total)
    exact = {name: wanted * size / total for name, size in sizes.items()}
    numbers = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (numbers[name] - exact[name], name))
    for name in by_remainder[: wanted - sum(numbers.values())]:
        numbers[name] += 1
    return dict(sorted(numbers.items()))


def stage_fingerprint(folder: str | Path) -> str:
    """Return what tells a stage from the same one with other settings or sources; empty where it is not there."""
    stage = read_json_object(Path(folder) / "stage.json", missing_ok=True)
    return str(stage.get("fingerprint", ""))


def _is_untagged(name: str, item: Item, record: Mapping[str, Any] | None) -> bool:
    metadata = (record or {}).get("metadata")
    safety = metadata.get("safety") if isinstance(metadata, Mapping) else None
    if not isinstance(safety, Mapping) or "messages" not in (record or {}):
        raise RoundError(
            f"{name}: {quoted(item.id)} is no dialogue that a safety stage kept; a sample is drawn with "
            "`h2htalk curate sample WORKSPACE`"
        )
    noted = safety.get("tags") or safety.get("possible_crisis") or safety.get("crisis_hint")
    return safety.get("action") == "keep" and not noted


def _source_of(record: Mapping[str, Any] | None) -> str:
    provenance = (record or {}).get("provenance")
    return str(provenance.get("source", "")) if isinstance(provenance, Mapping) else ""


def _place(seed: int, name: str) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
