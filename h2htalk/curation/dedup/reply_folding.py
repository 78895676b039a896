"""Reply folding: dialogues of one exchange with the same question become one dialogue with several replies.

The best dialogue stays and gets the replies of the others as `metadata.alternatives`, further references for `compose`.
The others are rejected as `folded`. A reply is left out, and its dialogue rejected as a `duplicate`, where it is
similar to a reply that the dialogue has, where safety decided differently, or where no licence covers all replies
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.dedup.clustering import Removal
from h2htalk.curation.dedup.dialogue_quality import quality
from h2htalk.curation.dedup.minhash import plain
from h2htalk.curation.dedup.similarity import similarity
from h2htalk.curation.licences import mixture
from h2htalk.curation.outcomes import Record
from h2htalk.data.files import write_jsonl
from h2htalk.data.scenario import Dialogue

MOST_REPLIES = 100  # that a dialogue gets: the maximum of `compose.references`


def fold(removals: Sequence[Removal], records: Iterable[Record], threshold: float, path: Path) -> list[Removal]:
    """Choose the replies of folded dialogues, and write a line for each dialogue that gets some.

    Args:
        removals: the removed dialogues; those removed for equal inputs may be folded.
        records: all dialogues.
        threshold: the similarity (0 to 1) of duplicate replies.
        path: the file: `id` of the dialogue, its new `licence`, its `alternatives`, the best first.

    Returns:
        The removals in their order, folded ones with that reason.
    """
    equal = [one for one in removals if one.reason == "duplicate" and one.evidence["on"] == "inputs"]
    kept_of = {one.id: str(one.evidence["of"]) for one in equal}
    asked = {*kept_of, *kept_of.values()}
    exchanges: dict[str, list[Dialogue]] = {}
    for record in records if asked else ():
        name = str(record.get("id"))
        if name in asked and [turn["role"] for turn in record["messages"]] == ["user", "companion"]:
            exchanges.setdefault(kept_of.get(name, name), []).append(Dialogue.from_dict(record))
    lines = [
        _with_replies(kept, sorted(dialogues, key=quality), threshold)
        for name, dialogues in sorted(exchanges.items())
        for kept in dialogues
        if kept.id == name
    ]
    write_jsonl(path, [line for line in lines if line["alternatives"]])
    folded = {reply["id"] for line in lines for reply in line["alternatives"]}
    return [replace(removal, reason="folded") if removal.id in folded else removal for removal in removals]


def _with_replies(kept: Dialogue, dialogues: Sequence[Dialogue], threshold: float) -> dict[str, Any]:
    """The line of a dialogue; `dialogues` have the same inputs, the best first."""
    replies = [plain(kept.messages[1].content, kept.language)]
    alternatives: list[dict[str, Any]] = []
    licence, licences = kept.licence, {kept.licence}
    for other in dialogues:
        reply = plain(other.messages[1].content, kept.language)
        all_licences = {*licences, other.licence}
        together = licence if len(all_licences) == 1 else mixture(all_licences)
        fits = together and len(alternatives) < MOST_REPLIES and _safety(other) == _safety(kept)
        if fits and all(similarity(reply, one, threshold) < threshold for one in replies):
            licence, licences = str(together), all_licences
            replies.append(reply)
            provenance = {**other.provenance, "dialogue": other.id}
            line = {"id": other.id, "text": other.messages[1].content, "provenance": provenance}
            alternatives.append({**line, "licence": other.licence})
    return {"id": kept.id, "licence": licence, "alternatives": alternatives}


def _safety(dialogue: Dialogue) -> tuple[object, ...]:
    safety = dialogue.metadata.get("safety") or {}
    return safety.get("action"), safety.get("risk"), sorted(safety.get("tags") or ())
