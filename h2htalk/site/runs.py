"""List what lies below a folder: runs, attempts at shards, studies, rounds, releases and curations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from h2htalk.benchmark.estimate_text import format_percent, format_with_interval
from h2htalk.benchmark.observations import Observation, figure_of, read_observations, select
from h2htalk.benchmark.observed_run import MEMORY_DEFAULT
from h2htalk.benchmark.report.run_tables import main_title
from h2htalk.benchmark.report.table2 import main_row
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.benchmark.studies.report.memory_tables import COLUMNS
from h2htalk.benchmark.studies.report.study_tables import name_of, title_of
from h2htalk.benchmark.studies.run_study import read_study
from h2htalk.benchmark.summary import read_summary
from h2htalk.benchmark.watch import is_written
from h2htalk.chat.engines import model_name
from h2htalk.chat.prices import dollars_text, sum_totals
from h2htalk.chat.store.call_store import read_costs
from h2htalk.curation.curate import summaries
from h2htalk.curation.reading.summary import STAGE as READ_STAGE
from h2htalk.curation.reading.summary import count_reads
from h2htalk.curation.stage_folder import count_values
from h2htalk.curation.stages import STAGES, find_stage
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS
from h2htalk.data.erasure.unfinished_erasure import MARK
from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.data.readers.describe import NOBODY
from h2htalk.data.releases.release_folder import read_manifest
from h2htalk.data.responses import CALLS
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, listed
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import list_rounds
from h2htalk.text.tables import Table, value_text

DEPTH = 6  # of subfolders that are searched
COLUMN_NAMES = (
    "folder",
    "kind",
    "model",
    "split",
    "state",
    "scored",
    "figure",
    "US $",
    "protocol",
    "when",
)
HEADLINES = {
    "sap": "violation",
    "logs": "violation",
    "instructions": "points",
    "memory": "must.callback",
}
Facts = dict[str, str]


def list_runs(folder: Path) -> Table:
    """Return a table of what lies in a folder and its subfolders; symbolic links are not followed.

    What cannot be read is listed as `damaged`, with the reason in the notes. Raises ConfigError for no folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    rows: list[tuple[str | None, ...]] = []
    notes: list[str] = []
    for path, kind in find_folders(folder):
        name = os.path.relpath(path, folder)
        facts = {"folder": name, "kind": kind, **read_facts(path, kind)}
        if facts["state"] == "damaged":
            notes.append(f"{name}: {facts['why']}")
        rows.append(tuple(facts.get(name) for name in COLUMN_NAMES))
    return Table("", COLUMN_NAMES, rows, notes if rows else ["nothing found"], "runs")


def read_facts(path: Path, kind: str) -> Facts:
    """Return what the table says of a folder of a kind, by column; of one that is `damaged`, `why`."""
    facts: Facts = {}
    try:
        modified = (path / _MARKERS[kind]).stat().st_mtime
        facts["when"] = str(datetime.fromtimestamp(modified, UTC).date())
        if os.path.lexists(path / MARK):
            facts["state"] = "erasing"
        else:
            facts |= _READERS[kind](path)
    except Exception as error:  # noqa: BLE001 - the files may hold anything; whoever reads `why` sees it
        facts |= {"state": "damaged", "why": why_damaged(error)}
    return facts


def why_damaged(error: Exception) -> str:
    """Return why a folder cannot be read."""
    return str(error) if isinstance(error, H2HTalkError) else f"not as it was written: {error!r}"


def find_folders(folder: Path, depth: int = DEPTH) -> Iterator[tuple[Path, str]]:
    """Yield each folder of a kind; what lies inside one is a part of it, but for rounds inside a workspace."""
    kind = next(
        (kind for kind, marker in _MARKERS.items() if os.path.isfile(folder / marker)), None
    )
    if kind is not None:
        yield folder, kind
    if depth and kind in (None, "curation") and os.access(folder, os.R_OK | os.X_OK):
        subfolders = []
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                subfolders.append(entry.path)
        for path in sorted(subfolders):
            yield from find_folders(Path(path), depth - 1)


def _facts(folder: RunFolder, model: str, split: str) -> Facts:
    """Return what a run and a study have in common; its figures count where the state is `complete`."""
    if folder.summary.exists() and not folder.calls_file.exists():
        raise DataError(f"{folder.calls_file}: missing: the figures are of its replies; restore it")
    costs = read_costs(folder.path)
    facts = {
        "model": model_name(model),
        "split": split,
        "protocol": folder.signature().fingerprint[:8],
    }
    if costs:
        facts["US $"] = dollars_text(sum_totals(costs.values()).usd_paid)
    facts["state"] = "complete" if folder.summary.exists() else "unscored"
    if is_written(folder.calls_file):
        facts["state"] = "running"
    return facts


def _run(path: Path) -> Facts:
    spec = RunFolder(path).read_run()["spec"]
    facts = _facts(RunFolder(path), str(spec["model"]), str(spec["split"]))
    if facts["state"] == "complete":
        summary = read_summary(path / "summary.json")
        row = main_row(summary)
        cell = row["items_mean" if row["overall"].value is None else "overall"]
        facts |= {
            "scored": f"{summary.counts.scored:,} of {summary.counts.items:,}",
            "figure": f"{main_title(summary)} {format_with_interval(cell)}",
            "model": summary.model,
            "split": summary.split,
            "state": "incomplete" if summary.incomplete else "complete",
        }
    return facts


def _attempt(path: Path) -> Facts:
    raw = read_json_object(path / "attempt.json")
    state = "incomplete"
    if is_written(path / CALLS):
        state = "running"
    elif (path / "shard.json").exists():
        state = "complete"
    split = f"{raw['spec']['split']}, shard {raw['shard']['shard']} of {raw['shard']['of']}"
    return {"model": model_name(str(raw["spec"]["model"])), "split": split, "state": state}


def _study(path: Path) -> Facts:
    study = read_study(path)
    facts = _facts(
        study.folder,
        study.spec.ask.model,
        f"{study.spec.study}: {study.split.name} {study.split.version}",
    )
    if facts["state"] == "complete":
        what, _, figure = headline(study, read_observations(study.folder.scores(study.signature)))
        facts["scored"] = f"{figure.n:,} of {figure.total:,}"
        facts["figure"] = f"{what}: {format_percent(figure)}"
        facts["state"] = "incomplete" if study.folder.read_summary()["failed"] else "complete"
    return facts


def headline(study: Study, rows: Sequence[Observation]) -> tuple[str, str, Estimate]:
    """The figure that a study is named by, its arm (the first, or the whole history of memory) and what it is."""
    name = HEADLINES[study.spec.study]
    arms = study.spec.arms
    arm = MEMORY_DEFAULT if MEMORY_DEFAULT in arms else arms[0]
    what = f"{COLUMNS.get(name, name_of(name))}, {title_of(arm, study.spec.study)}"
    return what, arm, figure_of(select(rows, name, arm))


def _round(path: Path) -> Facts:
    status = next(list_rounds(path), None)
    if status is None or not status.kind:
        raise DataError("; ".join(status.notes if status else ["was never opened"]))
    figure = f"{status.completed:,} of {counted(status.assignments, 'assignment')}"
    if status.state == "closed":
        figure = _decided(path)
    return {
        "split": status.kind,
        "state": status.state,
        "scored": f"{status.items_done:,} of {status.items:,}",
        "figure": figure,
    }


def _decided(path: Path) -> str:
    """What people decided in a closed round: whether items are kept, or else its first question that has decisions."""
    decisions = path / "decisions.jsonl"
    if not decisions.is_file():
        return ""
    labels: dict[str, list[str]] = {}
    for _, line in read_jsonl(decisions):
        label = line.get("label")
        labels.setdefault(str(line["question"]), []).append(
            "tie" if label is None else value_text(label)
        )
    if not labels:
        return ""
    names = ["keep", *(question.name for question in RoundFolder(path).questions())]
    question = next(name for name in names if name in labels)
    counts = [f"{label} {count:,}" for label, count in count_values(labels[question]).items()]
    return f"{question}: {listed(counts, 3)}"


def _release(path: Path) -> Facts:
    manifest = read_manifest(path)
    items = sum(sum(splits.values()) for splits in manifest.configs.values())
    reads = manifest.facts.get("reads") or {}
    # Of a release of an earlier version nobody on record has read anything.
    unread = [items]
    if reads:
        unread = [question["items"] for question in reads.get("unread", {}).values()]
    readers = ", ".join(reads.get("readers", ())) or NOBODY
    return {
        "split": f"{manifest.name} {manifest.version}",
        "state": ("unread" if any(unread) else "complete"),
        "scored": f"{items:,} rows",
        "figure": f"read by {readers}",
    }


def _curation(path: Path) -> Facts:
    workspace = Workspace(path)
    done = [name for name in STAGES if workspace.stage(name).finished]
    state = "complete" if len(done) == len(STAGES) else "incomplete"
    if is_written(path / "workspace"):
        state = "running"
    elif workspace.facts().get("purged"):
        state = "purged"
    facts = {
        "split": done[-1] if done else "",
        "state": state,
        "scored": f"{len(done)} of {len(STAGES)} stages",
    }
    figure: list[str] = []
    if done:
        figure.append(_kept(workspace, done[-1]))
    if READ_STAGE in done:
        unread = sum(count.unread for count in count_reads(workspace).values())
        figure.append(f"{unread:,} unread")
    return facts | {"figure": ", ".join(figure)}


def _kept(workspace: Workspace, stage: str) -> str:
    """What the last finished stage of a curation left of the dialogues that the first one read."""
    counts = {summary.stage: summary.counts for summary in summaries(workspace)}
    first = next(iter(counts.values()))
    # Of a stage that makes several candidates of a dialogue, each of them is one more item.
    unit = "candidate" if find_stage(stage).reads == "candidates" else "dialogue"
    return f"{counted(counts[stage].kept, unit)} of {counted(first.read, 'dialogue')}"


# How a folder of each kind is read, and the file by which it is known.
_READERS = {"run": _run, "attempt": _attempt, "study": _study, "round": _round, "release": _release}
_READERS |= {"curation": _curation, "site": lambda path: {"state": "complete"}}
_MARKERS = {name: kind.marker for name, kind in FOLDER_KINDS.items()} | {
    "curation": "workspace.json"
}
