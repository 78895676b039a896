"""Dedup: of dialogues that are one, keep the best; leave out what holds an item of a benchmark.

Map: each part to hashes and signatures (`dedup_map`). Group: pairs that may be one (`dedup_groups`,
`near_duplicates`). Reduce: who goes (`dedup_clusters`), and whose reply is carried by the dialogue that stays
(`reply_folding`), two tables; then the stage looks each dialogue up in them. The steps' files lie in the stage's folder
until the stage is finished:

work/                     what the map was made of (`made.json`), map/part-00000.npz, texts.bin, replies.jsonl
losers.jsonl              {"id", "reason", "evidence"}, by id; there when the reduce step is done
"""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from h2htalk.curation.dedup.candidate_pairs import Gathered, Nodes, group
from h2htalk.curation.dedup.clustering import choose
from h2htalk.curation.dedup.hashing import map_part, open_index
from h2htalk.curation.dedup.reply_folding import fold
from h2htalk.curation.outcomes import Kept, Outcomes, PartRule, Rejected, each_dialogue
from h2htalk.curation.pipeline import Opener, Stage, claim, in_processes, require_finished, run_stage
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_folder import Counts, StageFolder
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from h2htalk.parallel import usable_cores
from h2htalk.progress import Progress

# 2: replies are folded; 3: unlike inputs stay, whatever is replied, and more items of splits are found; 4: replies to
# equal inputs alone are folded, and a dialogue goes for one that it is itself alike
VERSION = 4
WORK, LOSERS, REPLIES = "work", "losers.jsonl", "replies.jsonl"


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> Stage:
    """The stage that looks dialogues up in the table of those that go; `run_dedup` makes the table first.

    Raises:
        ConfigError, DataError: a split of `dedup.against` is not there or damaged.
    """
    # By the splits' own names: no path of this machine stands in a record.
    against = [load_split(name) for name in spec.dedup.against]
    settings = {
        "threshold": spec.dedup.threshold,
        "against": {split.name: split.fingerprint for split in against},
    }
    if len({split.name for split in against}) < len(against):
        raise ConfigError("dedup.against: two splits have one name; set another in the split.toml of one")
    return Stage("dedup", VERSION, settings, Opener(open_rule, (workspace.stage("dedup").path,)))


def run_dedup(spec: CurateSpec, workspace: Workspace, key: bytes, *, processes: int | None = None) -> Counts:
    """Make the stage, or what a kill left undone of it.

    Args:
        spec: `dedup.threshold` and `dedup.against`.
        workspace: its lock held.
        key: the workspace's secret; not used, as nothing here is drawn.
        processes: 1 works in this process; None: the usable cores.

    Raises:
        ConfigError: the stage before is not finished, this one was made with other settings, or no such split.
        DataError: a file is damaged or cannot be written.
    """
    stage = make_stage(spec, workspace, key)
    before, folder = workspace.stage("safety"), workspace.stage("dedup")
    claim(folder, stage, require_finished(before))
    table = folder.path / LOSERS
    if any(not folder.done(part) for part in before.parts()) and not table.exists():
        _make_table(spec, workspace, processes)
    counts = run_stage(stage, workspace, processes=processes)
    # Ids and texts of others are in there; `erase` has no business with what nobody needs any more.
    shutil.rmtree(folder.path / WORK, ignore_errors=True)
    table.unlink(missing_ok=True)
    return counts


def open_rule(folder: Path) -> PartRule:
    """The rule: a dialogue goes where the table says so; one that stays for others' sake names them, and carries the
    replies of those that are folded into it."""
    gone: dict[str, tuple[str, dict[str, object]]] = {}
    merged: dict[str, list[str]] = {}
    for _, line in read_jsonl(folder / LOSERS):
        gone[line["id"]] = (line["reason"], line["evidence"])
        if line["reason"] != "contaminated":
            merged.setdefault(line["evidence"]["of"], []).append(line["id"])
    carries = {line["id"]: line for _, line in read_jsonl(folder / WORK / REPLIES)}

    def rule(dialogue: Dialogue) -> Outcomes:
        record = dialogue.to_dict()
        if dialogue.id in gone:
            reason, evidence = gone[dialogue.id]
            return [Rejected(dialogue.id, reason, evidence, record)]
        if dialogue.id in merged:
            record["provenance"]["merged"] = merged[dialogue.id]
        if dialogue.id not in carries:
            return [Kept(record)]
        held = carries[dialogue.id]
        record["metadata"]["alternatives"] = held["alternatives"]
        return [Kept({**record, "licence": held["licence"]}, ("answers",))]

    return each_dialogue(rule)


def _make_table(spec: CurateSpec, workspace: Workspace, processes: int | None) -> None:
    """Map, group, reduce; each step's files are whole or not there."""
    folder = workspace.stage("dedup")
    work = folder.path / WORK
    threshold = spec.dedup.threshold
    against = (spec.dedup.against, threshold + (1 - threshold) / 3)
    paths = _map(workspace.stage("safety"), work, against, processes)
    gathered = Gathered(paths, work / "texts.bin")
    nodes = Nodes.of(gathered)
    losers = choose(gathered, nodes, group(paths, gathered, nodes), threshold)
    losers = fold(losers, workspace.stage("safety").records(), threshold, work / REPLIES)
    write_jsonl(folder.path / LOSERS, (loser.to_dict() for loser in losers))


def _map(
    before: StageFolder,
    work: Path,
    against: tuple[tuple[str, ...], float],
    processes: int | None,
) -> list[Path]:
    """The files of all parts, those made that are not there."""
    parts = before.parts()
    paths = {part: work / "map" / f"{part}.npz" for part in parts}
    missing = [part for part in parts if not paths[part].exists()]
    jobs = [(before, part, paths[part], against) for part in missing]
    workers = min(len(jobs), processes or usable_cores())
    with Progress("dedup: signatures", sum(before.counts(part).written for part in missing)) as progress:
        made = in_processes(_map_one, jobs, workers) if workers > 1 else (_map_one(*job) for job in jobs)
        with closing(made):
            for count in made:
                for _ in range(count):
                    progress.advance()
    return list(paths.values())


def _map_one(
    before: StageFolder,
    part: str,
    path: Path,
    against: tuple[tuple[str, ...], float],
) -> int:
    """Map a part into its file; returns how many records it holds."""
    records = list(before.handed_on(part))
    map_part(records, open_index(*against)).save(path)
    return len(records)
