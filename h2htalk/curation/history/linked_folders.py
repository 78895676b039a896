"""What happened to items in the rounds and releases that were made from a workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.history.events import Event
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.releases.release_folder import VOTES, is_release, read_manifest, read_rows
from h2htalk.errors import H2HTalkError
from h2htalk.rounds.adjudication import read_adjudications
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, Decision, tie_id
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.rounds.round_folder import RoundFolder


def linked_events(folder: Path, ids: Collection[str]) -> Iterator[Event]:
    """Yield what happened to items in the rounds and releases that a workspace links, and in those linked by them.

    A folder that is missing or cannot be read is an event, too; `links.jsonl` that cannot be read a DataError.

    Args:
        folder: the workspace.
        ids: of items, or of dialogues for their candidates.
    """
    for link, path in follow_links(read_links(folder)):
        try:
            if link.kind == "round" and RoundFolder(path).exists:
                yield from _round_events(RoundFolder(path), ids)
            elif link.kind == "release" and is_release(path):
                yield from _release_events(path, ids)
            elif link.kind != "run":
                yield Event(link.kind, path.name, "missing", {"folder": str(path)})
        except H2HTalkError as error:
            yield Event(link.kind, path.name, "unreadable", {"error": str(error)})


def _round_events(folder: RoundFolder, ids: Collection[str]) -> Iterator[Event]:
    items = [item for item in folder.items() if _is_asked(item, ids)]
    if not items:
        return
    state = folder.state
    outcome = read_outcome(folder.path) if state == "closed" else None
    annotations = outcome.annotations if outcome else folder.annotations()
    decisions = outcome.decisions if outcome else {}
    by = {tie: one.by for tie, one in read_adjudications(folder).items()}
    values: dict[tuple[str, str], list[Value]] = {}
    for one in annotations.values():
        if one.value is not None:
            values.setdefault((one.item, one.question), []).append(one.value)
    questions = [question for question in folder.questions() if question.form != "text"]
    for item in items:
        details: dict[str, Any] = {"round": folder.name, "kind": folder.spec().kind}
        for question in questions:
            key = item.id, question.name
            if key in values or key in decisions:
                details[question.name] = _question_details(question, values.get(key, []), decisions.get(key), by)
        if skipped := len(values.get((item.id, SKIPPED), [])):
            details["skipped"] = skipped
        yield Event("round", item.id, state, details)


def _is_asked(item: Item, ids: Collection[str]) -> bool:
    """Whether an item, or the one whose tie it decides, is among the ids, or its dialogue is."""
    name = item.id.partition("#")[0]
    return name in ids or name.partition(":")[0] in ids


def _question_details(
    question: Question, values: list[Value], decision: Decision | None, by: Mapping[str, str]
) -> dict[str, Any]:
    """Votes by label or the mean of ratings; the decision and its rule, and the round that adjudicated it."""
    details: dict[str, Any] = {}
    if question.form == "rating":
        ratings = [value for value in values if isinstance(value, int)]
        return {"mean": f"{sum(ratings) / len(ratings):.2f}", "ratings": len(ratings)} if ratings else {"ratings": 0}
    chosen = [label for value in values for label in (value if isinstance(value, tuple) else (value,))]
    details["votes"] = dict(sorted(Counter(map(str, chosen)).items(), key=lambda pair: (-pair[1], pair[0])))
    if decision is not None:
        label = decision.label
        details["decision"] = list(label) if isinstance(label, tuple) else label or "none"
        details["rule"] = decision.rule
        if decision.tied:
            details["tied"] = list(decision.tied)
        if decision.rule == ADJUDICATION:
            details["by"] = by[tie_id(decision.item, decision.question)]
    return details


def _release_events(path: Path, ids: Collection[str]) -> Iterator[Event]:
    manifest = read_manifest(path)
    facts = {"release": manifest.name, "version": manifest.version}
    for config, splits in manifest.configs.items():
        for split in splits if config != VOTES else ():
            for _, row in read_rows(path, manifest, config, split):
                if row["id"] in ids:
                    yield Event("release", row["id"], "released", {**facts, "config": config, "split": split})
