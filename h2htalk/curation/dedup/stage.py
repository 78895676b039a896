"""Dedup: keep the best of duplicate dialogues, and remove dialogues that contain an item of a split.

Map: each part to hashes and signatures (`hashing`). Group: pairs that may be duplicates (`candidate_pairs`). Reduce:
the removed dialogues (`clustering`), and the replies that a dialogue gets from removed ones (`reply_folding`), two
tables in which the stage then looks up each dialogue. The files of the steps are removed when the stage is finished:

work/                     map/part-00000.npz, texts.bin, replies.jsonl
duplicates.jsonl          {"id", "reason", "evidence"}, by id; written when the reduce step is done
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, Nodes, group
from h2htalk.curation.dedup.clustering import find_removals
from h2htalk.curation.dedup.hashing import map_part, open_index
from h2htalk.curation.dedup.reply_folding import fold
from h2htalk.curation.outcomes import Kept, Outcomes, PartRule, Rejected, each_dialogue
from h2htalk.curation.pipeline import RuleFactory, StageRun, in_processes
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stage_settings import DedupSettings
from h2htalk.curation.stage_table import STAGES, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.scenario import Dialogue
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from h2htalk.parallel import usable_cores
from h2htalk.progress import Progress

# 2: replies are folded; 3: dialogues with unlike inputs stay whatever the reply, and more items of splits are found;
# 4: only replies to equal inputs are folded, and a dialogue is removed only for one that it is itself similar to
VERSION = 4
STAGE = "dedup"
DUPLICATES, WORK = STAGES[STAGE].temporary
REPLIES = "replies.jsonl"


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it; `key` is not used.

    Raises:
        ConfigError, DataError: a split of `dedup.contamination_splits` is missing or damaged.
    """
    settings = spec.section(DedupSettings)
    # By the splits' own names, so that no path of this machine is in a record.
    splits = [load_split(name) for name in settings.contamination_splits]
    if len({split.name for split in splits}) < len(splits):
        raise ConfigError(
            "dedup.contamination_splits: two splits have the same name; change it in the split.toml of one"
        )
    values = {
        "threshold": settings.threshold,
        "contamination_splits": {split.name: split.fingerprint for split in splits},
    }
    return StageRun(
        STAGE,
        VERSION,
        values,
        RuleFactory(open_rule, (workspace.stage(STAGE).path,)),
        prepare=partial(_make_tables, workspace.stage(stage_before(STAGE)), settings, spec.processes),
    )


def open_rule(folder: Path) -> PartRule:
    """The rule: a removed dialogue is rejected; one that stays names its duplicates, and gets the replies of those that
    are folded into it."""
    removed: dict[str, tuple[str, dict[str, object]]] = {}
    merged: dict[str, list[str]] = {}
    for _, line in read_jsonl(folder / DUPLICATES):
        removed[line["id"]] = (line["reason"], line["evidence"])
        if line["reason"] != "contaminated":
            merged.setdefault(line["evidence"]["of"], []).append(line["id"])
    folded = {line["id"]: line for _, line in read_jsonl(folder / WORK / REPLIES)}

    def rule(dialogue: Dialogue) -> Outcomes:
        record = dialogue.to_dict()
        if dialogue.id in removed:
            reason, evidence = removed[dialogue.id]
            return [Rejected(dialogue.id, reason, evidence, record)]
        if dialogue.id in merged:
            record["provenance"]["merged"] = merged[dialogue.id]
        if dialogue.id not in folded:
            return [Kept(record)]
        line = folded[dialogue.id]
        record["metadata"]["alternatives"] = line["alternatives"]
        return [Kept({**record, "licence": line["licence"]}, ("answers",))]

    return each_dialogue(rule)


def _make_tables(before: StageFolder, settings: DedupSettings, processes: int | None, folder: StageFolder) -> None:
    """Map, group and reduce all dialogues; the files of each step are complete or not there."""
    if (folder.path / DUPLICATES).exists():
        return
    work, threshold = folder.path / WORK, settings.threshold
    split_index = (settings.contamination_splits, threshold + (1 - threshold) / 3)
    paths = _map(before, work, split_index, processes)
    mapped = MappedDialogues(paths, work / "texts.bin")
    nodes = Nodes.of(mapped)
    removals = find_removals(mapped, nodes, group(paths, mapped, nodes), threshold)
    removals = fold(removals, before.records(), threshold, work / REPLIES)
    write_jsonl(folder.path / DUPLICATES, (removal.to_dict() for removal in removals))


def _map(
    before: StageFolder, work: Path, split_index: tuple[tuple[str, ...], float], processes: int | None
) -> list[Path]:
    """The files of all parts; maps those that are missing."""
    parts = before.parts()
    paths = {part: work / "map" / f"{part}.npz" for part in parts}
    missing = [part for part in parts if not paths[part].exists()]
    jobs = [(before, part, paths[part], split_index) for part in missing]
    workers = min(len(jobs), processes or usable_cores())
    with Progress(f"{STAGE}: signatures", sum(before.counts(part).written for part in missing)) as progress:
        sizes = in_processes(_map_one, jobs, workers) if workers > 1 else (_map_one(*job) for job in jobs)
        with closing(sizes):
            for size in sizes:
                progress.advance(count=size)
    return list(paths.values())


def _map_one(before: StageFolder, part: str, path: Path, split_index: tuple[tuple[str, ...], float]) -> int:
    """Map a part into its file; returns the number of its records."""
    records = list(before.read_kept(part))
    map_part(records, open_index(*split_index)).save(path)
    return len(records)
