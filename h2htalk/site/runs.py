"""List what lies below a folder: runs, attempts at shards, studies, rounds, releases and curations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from h2htalk.benchmark.gate.gated_run import MEMORY_DEFAULT
from h2htalk.benchmark.observations import Figure, Observation, figure_of, percent, read_observations, select
from h2htalk.benchmark.report.table2 import main_row, measure_name, with_half_width
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.benchmark.studies.report import COLUMNS, name_of, title_of
from h2htalk.benchmark.studies.run_study import read_study
from h2htalk.benchmark.summary import read_summary
from h2htalk.benchmark.watch import is_written
from h2htalk.chat.engines import model_name
from h2htalk.chat.prices import dollars_text, sum_totals
from h2htalk.chat.store.call_store import read_costs
from h2htalk.curation.stages import STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, MARK
from h2htalk.data.files import read_json_object
from h2htalk.data.releases.release_folder import read_manifest
from h2htalk.data.responses import CALLS
from h2htalk.data.run_folder import RunFolder
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from h2htalk.rounds.status import list_rounds
from h2htalk.text.tables import Table

DEPTH = 6  # of subfolders that are searched
COLUMN_NAMES = ("folder", "kind", "model", "split", "state", "scored", "figure", "US $", "protocol", "when")
HEADLINES = {"sap": "violation", "logs": "violation", "instructions": "points", "memory": "must.callback"}
Facts = dict[str, str]


def list_runs(folder: Path) -> Table:
    """Return a table of what lies in a folder and its subfolders; symbolic links are not followed.

    What cannot be read is listed as `damaged`, with the reason in the notes. Raises ConfigError for no folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    rows, notes = list[tuple[str | None, ...]](), list[str]()
    for path, kind in _found(folder, DEPTH):
        facts = {"folder": os.path.relpath(path, folder), "kind": kind}
        try:
            facts["when"] = str(datetime.fromtimestamp((path / _MARKERS[kind]).stat().st_mtime, UTC).date())
            facts |= {"state": "erasing"} if os.path.lexists(path / MARK) else _READERS[kind](path)
        except Exception as error:  # noqa: BLE001 - the files may hold anything; whoever reads the notes sees it
            facts["state"] = "damaged"
            what = error if isinstance(error, H2HTalkError) else f"not as it was written: {error!r}"
            notes.append(f"{facts['folder']}: {what}")
        rows.append(tuple(facts.get(name) for name in COLUMN_NAMES))
    return Table("", COLUMN_NAMES, rows, notes if rows else ["nothing found"], "runs")


def _found(folder: Path, depth: int) -> Iterator[tuple[Path, str]]:
    """Yield each folder of a kind; what lies inside one is a part of it, but for rounds inside a workspace."""
    kind = next((kind for kind, marker in _MARKERS.items() if os.path.isfile(folder / marker)), None)
    if kind is not None:
        yield folder, kind
    if depth and kind in (None, "curation") and os.access(folder, os.R_OK | os.X_OK):
        for path in sorted(
            one.path for one in os.scandir(folder) if one.is_dir(follow_symlinks=False) and one.name[0] != "."
        ):
            yield from _found(Path(path), depth - 1)


def _facts(folder: RunFolder, model: str, split: str) -> Facts:
    """Return what a run and a study have in common; its figures count where the state is `complete`."""
    if folder.summary.exists() and not folder.calls_file.exists():
        raise DataError(f"{folder.calls_file}: missing: the figures are of its replies; restore it")
    costs, state = read_costs(folder.path), "complete" if folder.summary.exists() else "unscored"
    facts = {"model": model_name(model), "split": split, "protocol": folder.signature().fingerprint[:8]}
    facts |= {"US $": dollars_text(sum_totals(costs.values()).usd_paid)} if costs else {}
    return facts | {"state": "running" if is_written(folder.calls_file) else state}


def _run(path: Path) -> Facts:
    spec = RunFolder(path).read_run()["spec"]
    facts = _facts(RunFolder(path), str(spec["model"]), str(spec["split"]))
    if facts["state"] == "complete":
        summary = read_summary(path / "summary.json")
        row, shown = main_row(summary), f"{summary.counts.scored:,} of {summary.counts.items:,}"
        cell = row["items_mean" if row["overall"].value is None else "overall"]
        facts |= {"scored": shown, "figure": f"{measure_name(summary)} {with_half_width(cell)}"}
        state = "incomplete" if summary.incomplete else "complete"
        facts |= {"model": summary.model, "split": summary.split, "state": state}
    return facts


def _attempt(path: Path) -> Facts:
    raw = read_json_object(path / "attempt.json")
    state = "running" if is_written(path / CALLS) else "complete" if (path / "shard.json").exists() else "incomplete"
    split = f"{raw['spec']['split']}, shard {raw['shard']['shard']} of {raw['shard']['of']}"
    return {"model": model_name(str(raw["spec"]["model"])), "split": split, "state": state}


def _study(path: Path) -> Facts:
    study = read_study(path)
    facts = _facts(study.folder, study.spec.ask.model, f"{study.spec.study}: {study.split.name} {study.split.version}")
    if facts["state"] == "complete":
        what, _, figure = headline(study, read_observations(study.folder.scores(study.signature)))
        facts |= {"scored": f"{figure.n:,} of {figure.total:,}", "figure": f"{what}: {percent(figure)}"}
        facts["state"] = "incomplete" if study.folder.read_summary()["failed"] else "complete"
    return facts


def headline(study: Study, rows: Sequence[Observation]) -> tuple[str, str, Figure]:
    """The figure that a study is named by, its arm (the first, or the whole history of memory) and what it is."""
    name, arms = HEADLINES[study.spec.study], study.spec.arms
    arm = MEMORY_DEFAULT if MEMORY_DEFAULT in arms else arms[0]
    what = f"{COLUMNS.get(name, name_of(name))}, {title_of(arm, study.spec.study)}"
    return what, arm, figure_of(select(rows, name, arm))


def _round(path: Path) -> Facts:
    status = next(list_rounds(path), None)
    if status is None or not status.kind:
        raise DataError("; ".join(status.notes if status else ["was never opened"]))
    return {"split": status.kind, "state": status.state, "scored": f"{status.items_done:,} of {status.items:,}"}


def _release(path: Path) -> Facts:
    manifest = read_manifest(path)
    items = sum(n for splits in manifest.configs.values() for n in splits.values())
    return {"split": f"{manifest.name} {manifest.version}", "state": "complete", "scored": f"{items:,} rows"}


def _curation(path: Path) -> Facts:
    workspace = Workspace(path)
    state = "purged" if workspace.facts().get("purged") else "incomplete"
    done = [name for name in STAGES if workspace.stage(name).finished]
    return {"split": done[-1] if done else "", "state": state, "scored": f"{len(done)} of {len(STAGES)} stages"}


# How a folder of each kind is read, and the file by which it is known.
_READERS = {"run": _run, "attempt": _attempt, "study": _study, "round": _round, "release": _release}
_READERS |= {"curation": _curation, "site": lambda path: {"state": "complete"}}
_MARKERS = {name: kind.marker for name, kind in FOLDER_KINDS.items()} | {"curation": "workspace.json"}
