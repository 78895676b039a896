"""Reply folding: dialogues of one exchange that ask the same become one dialogue with several replies.

The best dialogue stays and carries the replies of the others as `metadata.alternatives`: further references for
`compose`. The others are rejected as `folded`. A reply stays out, and its dialogue a `duplicate`, where it is like one
that is carried already, where safety decided otherwise on it, or where no licence covers all replies together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.dedup.clustering import Loser
from h2htalk.curation.dedup.dialogue_quality import quality
from h2htalk.curation.dedup.minhash import plain
from h2htalk.curation.dedup.similarity import similarity
from h2htalk.curation.licences import mixture
from h2htalk.curation.outcomes import Record
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import write_jsonl

MOST_REPLIES = 100  # that a dialogue carries: as many as `compose.references` may be


def fold(losers: Sequence[Loser], records: Iterable[Record], threshold: float, path: Path) -> list[Loser]:
    """Choose the replies that are carried, and write them, a line for each dialogue that carries some.

    Args:
        losers: the dialogues that go; one that goes for equal inputs may be folded.
        threshold: similarity (0 to 1) from which two replies are one.
        path: the file: `id` of the dialogue, its `licence` from now on, its `alternatives`, the best first.

    Returns the losers in their order, those that are folded with that reason.
    """
    kept_of = {
        loser.id: str(loser.evidence["of"])
        for loser in losers
        if loser.reason == "duplicate" and loser.evidence["on"] == "inputs"
    }
    asked = {*kept_of, *kept_of.values()}
    exchanges: dict[str, list[Dialogue]] = {}
    for record in records if asked else ():
        name = str(record.get("id"))
        if name in asked and [turn["role"] for turn in record["messages"]] == ["user", "companion"]:
            exchanges.setdefault(kept_of.get(name, name), []).append(Dialogue.from_dict(record))
    lines = [
        _carried(kept, sorted(dialogues, key=quality), threshold)
        for name, dialogues in sorted(exchanges.items())
        for kept in dialogues
        if kept.id == name
    ]
    write_jsonl(path, [line for line in lines if line["alternatives"]])
    folded = {reply["id"] for line in lines for reply in line["alternatives"]}
    return [replace(loser, reason="folded") if loser.id in folded else loser for loser in losers]


def _carried(kept: Dialogue, dialogues: Sequence[Dialogue], threshold: float) -> dict[str, Any]:
    """The line of a dialogue; `dialogues` are of its inputs, the best first."""
    replies = [plain(kept.messages[1].content, kept.language)]
    carried: list[dict[str, Any]] = []
    licence, licences = kept.licence, {kept.licence}
    for other in dialogues:
        reply = plain(other.messages[1].content, kept.language)
        all_licences = {*licences, other.licence}
        together = licence if len(all_licences) == 1 else mixture(all_licences).licence
        fits = together and len(carried) < MOST_REPLIES and _safety(other) == _safety(kept)
        if fits and all(similarity(reply, one, threshold) < threshold for one in replies):
            licence, licences = str(together), all_licences
            replies.append(reply)
            provenance = {**other.provenance, "dialogue": other.id}
            line = {"id": other.id, "text": other.messages[1].content, "provenance": provenance}
            carried.append({**line, "licence": other.licence})
    return {"id": kept.id, "licence": licence, "alternatives": carried}


def _safety(dialogue: Dialogue) -> tuple[object, ...]:
    safety = dialogue.metadata.get("safety") or {}
    return safety.get("action"), safety.get("risk"), sorted(safety.get("tags") or ())
