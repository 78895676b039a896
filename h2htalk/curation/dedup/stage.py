"""Dedup: keep the best of duplicate dialogues, and remove dialogues that contain an item of a split.

Map: each part to hashes and signatures (`signatures`). Group: pairs that may be duplicates (`candidate_pairs`). Reduce:
the removed dialogues (`find_removals`), and the replies that a dialogue gets from removed ones (`fold`), two tables in
which the stage then looks up each dialogue. The files of the steps are removed when the stage is finished:

work/                     map/part-00000.npz, texts.bin, kinds.npy, values.npy, pairs-00.npy, replies.jsonl
duplicates.jsonl          {"id", "reason", "evidence"}, by id; written when the reduce step is done
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.curation.licences import mixture
from h2htalk.curation.run import RuleFactory, StageRun
from h2htalk.curation.stage_folder import (
    Kept,
    Outcomes,
    PartRule,
    Record,
    Rejected,
    StageFolder,
    each_dialogue,
    read_dialogue,
)
from h2htalk.curation.stages import STAGES, CurateSpec, DedupSettings, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, replacing, write_jsonl
from h2htalk.data.scenario import Dialogue
from h2htalk.data.splits import load_split
from h2htalk.detect.duplicates.candidate_pairs import MappedDialogues, Pairs, find_pairs
from h2htalk.detect.duplicates.compared_texts import Match, match, plain, similarity
from h2htalk.detect.duplicates.signatures import map_part, open_index, quality, safety_decision
from h2htalk.errors import ConfigError
from h2htalk.parallel import in_processes, worker_count
from h2htalk.progress import Progress

VERSION = 7
STAGE = "dedup"
DUPLICATES, WORK = STAGES[STAGE].temporary
REPLIES = "replies.jsonl"


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` is not used. Raises ConfigError or DataError for a missing split."""
    settings = spec.section(DedupSettings)
    # By the splits' own names, so that no path of this machine is in a record.
    splits = [load_split(name) for name in settings.contamination_splits]
    if len({split.name for split in splits}) < len(splits):
        message = "two splits have the same name; change it in the split.toml of one"
        raise ConfigError(f"dedup.contamination_splits: {message}")
    values = {
        "threshold": settings.threshold,
        "contamination_splits": {one.name: one.fingerprint for one in splits},
    }
    rule = RuleFactory(open_rule, (workspace.stage(STAGE).path,))
    prepare = partial(_make_tables, workspace.stage(stage_before(STAGE)), settings, spec.processes)
    return StageRun(STAGE, VERSION, values, rule, prepare=prepare)


def open_rule(folder: Path) -> PartRule:
    """The rule: a removed dialogue is rejected; one that stays names its duplicates, and gets the replies of those that
    are folded into it."""
    removed: dict[str, Rejected] = {}
    merged: dict[str, list[str]] = {}
    for _, line in read_jsonl(folder / DUPLICATES):
        removed[line["id"]] = Rejected(**line)
        if line["reason"] != "contaminated":
            merged.setdefault(line["evidence"]["of"], []).append(line["id"])
    folded = {line["id"]: line for _, line in read_jsonl(folder / WORK / REPLIES)}

    def rule(dialogue: Dialogue) -> Outcomes:
        record = dialogue.to_dict()
        if dialogue.id in removed:
            return [replace(removed[dialogue.id], record=record)]
        if dialogue.id in merged:
            record["provenance"]["merged"] = merged[dialogue.id]
        if dialogue.id not in folded:
            return [Kept(record)]
        line = folded[dialogue.id]
        record["metadata"]["alternatives"] = line["alternatives"]
        return [Kept({**record, "licence": line["licence"]}, ("answers",))]

    return each_dialogue(rule)


def _make_tables(
    before: StageFolder, settings: DedupSettings, processes: int | None, folder: StageFolder
) -> None:
    """Map, group and reduce all dialogues; the files of each step are complete or not there."""
    if (folder.path / DUPLICATES).exists():
        return
    work = folder.path / WORK
    threshold = settings.threshold
    parts = before.parts()
    paths = {part: work / "map" / f"{part}.npz" for part in parts}
    missing = [part for part in parts if not paths[part].exists()]
    split_index = (settings.contamination_splits, threshold + (1 - threshold) / 3)
    jobs = [(before, part, paths[part], split_index) for part in missing]
    processes = worker_count(processes)
    total = sum(before.counts(part).written for part in missing)
    sizes = in_processes(_map_one, jobs, min(len(jobs), processes))
    with Progress(f"{STAGE}: signatures", total) as progress, closing(sizes):
        for size in sizes:
            progress.advance(count=size)
    mapped = MappedDialogues(map(np.load, paths.values()), work)
    removals = find_removals(mapped, find_pairs(mapped, processes), threshold)
    removals = fold(removals, before.records(), threshold, work / REPLIES)
    lines = ({"id": one.id, "reason": one.reason, "evidence": one.evidence} for one in removals)
    write_jsonl(folder.path / DUPLICATES, lines)


def _map_one(
    before: StageFolder, part: str, path: Path, split_index: tuple[tuple[str, ...], float]
) -> int:
    """Map a part into its file, without records that are no dialogues, which the rule rejects; returns the number of
    its records."""
    records = list(before.part_records(part))
    outcomes = map(read_dialogue, records)
    dialogues = [dialogue for dialogue in outcomes if isinstance(dialogue, Dialogue)]
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **map_part(dialogues, open_index(*split_index)))
    return len(records)


def find_removals(mapped: MappedDialogues, pairs: Pairs, threshold: float) -> list[Rejected]:
    """The removed dialogues, by id: each for a better one, to which duplicates of the same one link it (`duplicate`,
    `near_duplicate`), or as it is `contaminated`.

    The best dialogue of a cluster stays (`quality`), and its duplicates in the cluster are removed. The others of the
    cluster have a best one of their own, and so on. Every choice is by quality or content, none by the order of rows.
    """
    removals = [
        Rejected(name, "contaminated", evidence) for name, evidence in mapped.contaminated.items()
    ]
    links: dict[int, dict[int, Match]] = {}
    for first, second in zip(*(map(int, numbers) for numbers in pairs), strict=True):
        if found := match(mapped.sides(first), mapped.sides(second), threshold):
            links.setdefault(first, {})[second] = found
            links.setdefault(second, {})[first] = found
    decided: set[int] = set()
    for kept in sorted(links, key=mapped.quality_of):
        if kept in decided:
            continue
        decided.add(kept)
        sides = mapped.sides(kept)
        kept_id = mapped.id(kept)
        waiting = [kept]
        seen = {kept}
        while waiting:
            near = {other for number in waiting for other in links[number]} - seen
            seen |= near
            waiting = []
            for other in sorted(near - decided):
                # Of dialogues with one equal side only neighbours were compared.
                if found := links[other].get(kept) or match(sides, mapped.sides(other), threshold):
                    evidence = {
                        "of": kept_id,
                        "on": found.on,
                        "similarity": round(found.similarity, 4),
                    }
                    reason = "duplicate" if found.exact else "near_duplicate"
                    removals.append(Rejected(mapped.id(other), reason, evidence))
                    waiting.append(other)
            decided.update(waiting)
    return sorted(removals, key=lambda removal: removal.id)


MOST_REPLIES = 100  # that a dialogue gets: the maximum of `compose.references`


def fold(
    removals: Sequence[Rejected], records: Iterable[Record], threshold: float, path: Path
) -> list[Rejected]:
    """Fold dialogues of one exchange with the same question into the best; write a line for each that gets replies.

    The replies of the others become its `metadata.alternatives`, further references for `compose`. A reply is left out,
    and its dialogue stays a `duplicate`, where it is similar to a reply that the dialogue has, where safety decided
    differently, or where no licence covers all replies together. Lines of `path` hold `id`, the dialogue's new
    `licence`, and its `alternatives`, the best first. Returns the removals in order, folded ones with that reason.
    """
    equal = [
        one for one in removals if one.reason == "duplicate" and one.evidence["on"] == "inputs"
    ]
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
    return [
        replace(removal, reason="folded") if removal.id in folded else removal
        for removal in removals
    ]


def _with_replies(
    kept: Dialogue, dialogues: Sequence[Dialogue], threshold: float
) -> dict[str, Any]:
    """The line of a dialogue; `dialogues` have the same inputs, the best first."""
    replies = [plain(kept.messages[1].content, kept.language)]
    alternatives: list[dict[str, Any]] = []
    licence = kept.licence
    licences = {kept.licence}
    for other in dialogues:
        reply = plain(other.messages[1].content, kept.language)
        all_licences = {*licences, other.licence}
        together = licence if len(all_licences) == 1 else mixture(all_licences)
        decided_alike = safety_decision(other.metadata) == safety_decision(kept.metadata)
        fits = together and len(alternatives) < MOST_REPLIES and decided_alike
        if fits and all(similarity(reply, one, threshold) < threshold for one in replies):
            licence = str(together)
            licences = all_licences
            replies.append(reply)
            provenance = {**other.provenance, "dialogue": other.id}
            line = {"id": other.id, "text": other.messages[1].content, "provenance": provenance}
            alternatives.append({**line, "licence": other.licence})
    return {"id": kept.id, "licence": licence, "alternatives": alternatives}
