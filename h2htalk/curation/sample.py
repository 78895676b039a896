"""Have people read a sample of what the safety stage kept without a tag: open its round, and store what they found.

curate sample ─► a round of kind `safety` over whole dialogues ─► round close ─┬► samples.jsonl: figures
                                                                               └► item_reads.jsonl: who read which
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.curation.reading.samples import SampleFigure, SampleResult, add_sample, sample_lines
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import ids_in
from h2htalk.data.languages import Language
from h2htalk.data.readers.coverage import LEAST_PEOPLE
from h2htalk.data.readers.item_reads import (
    PEOPLE_OF_SAMPLE,
    ItemReads,
    add_read,
    read_item_reads,
    write_item_reads,
)
from h2htalk.data.stage_folders import is_workspace
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.questions import UNSURE, YES
from h2htalk.rounds.readers.planted import PlantedResult, planted_results
from h2htalk.rounds.reads import reads_of_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status

FOLDER = "samples"  # of a workspace, for rounds without a folder of their own


def open_sample(
    workspace: Path,
    keep: int,
    *,
    out: Path | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Path | None = None,
) -> tuple[Status, list[str]]:
    """Open a round over a sample of the dialogues that the safety stage kept without a tag.

    Args:
        workspace: of the curation, whose safety stage is finished.
        keep: how many dialogues of each language.
        out: the folder of the round; None for one in the workspace.
        options: of the round, as in `h2htalk round open`; `seed` also draws the sample.
        settings: a TOML file of the round's settings.

    Raises as `rounds.lifecycle.open_round`.
    """
    place = Workspace(workspace)
    place.require_begun()
    given = dict(options or {})
    seed = int(given.get("seed", 0))
    given["sample"] = {"keep": keep, "seed": seed}
    spec = make_spec("safety", str(place.stage("safety").path), given, settings)
    return open_round(spec, out if out is not None else place.path / FOLDER / f"seed-{seed}")


def store_sample(path: Path) -> list[str]:
    """Store what the people of a closed round found in the workspace of its dialogues; returns lines that say it.

    Nothing happens for a round that is no sample. Raises RoundError and DataError.
    """
    folder = RoundFolder(path)
    if not folder.spec().sample.keep:
        return []
    outcome = read_outcome(path)
    result = result_of(outcome, folder.manifest().get("sample", {}))
    workspace = Path(str(folder.source_paths().get("workspace", "")))
    if not is_workspace(workspace):
        lines = sample_lines(path, [result])
        return [*lines, f"{workspace}: the workspace is not there; the result was not stored"]
    with Workspace(workspace).locked():
        add_sample(workspace, result)
        _store_reads(workspace, outcome)
    return sample_lines(workspace, [result])


def _store_reads(workspace: Path, outcome: RoundOutcome) -> None:
    """Store what the people of a sample read, for releases of the dialogues; it replaces what they said before."""
    reader = f"{PEOPLE_OF_SAMPLE}{outcome.name}"
    lines: dict[str, ItemReads] = {}
    for name, line in read_item_reads(workspace).items():
        others = tuple(read for read in line.reads if read.reader != reader)
        # A line without a reading is of an item that a model is asked about: an erasure finds its replies by it.
        if others or not line.reads or line.exposures:
            lines[name] = replace(line, reads=others)
    for read in reads_of_round(outcome):
        ids = ids_in(outcome.sources[read.item]) - {read.item}
        line = lines.get(read.item, ItemReads(id=read.item, of=tuple(sorted(ids))))
        lines[read.item] = add_read(line, replace(read, reader=reader))
    write_item_reads(workspace, lines)


def result_of(outcome: RoundOutcome, drawn: Mapping[str, Any]) -> SampleResult:
    """What the people of a closed round found. `drawn`: from how many dialogues, of which stage.

    Who missed planted harm has read nothing: a no of theirs counts for no figure, a yes does.
    """
    items = [item for item in outcome.items if not item.gold]
    by_language = planted_results(outcome.items, outcome.annotations.values())
    languages = {item.id: item.language for item in outcome.items}
    refused: set[tuple[Language, str]] = set()
    results_of: dict[str, list[PlantedResult]] = {}
    for language, known in by_language.items():
        for name, result in known.items():
            results_of.setdefault(name, []).append(result)
            if result.is_refused:
                refused.add((language, name))
    votes = Counter(
        (one.item, one.question)
        for one in outcome.annotations.values()
        if one.value is not None and (languages[one.item], one.annotator) not in refused
    )
    figures: list[SampleFigure] = []
    unread: set[str] = set()
    for language in sorted({item.language for item in items}):
        for question in (one for one in outcome.questions if one.is_reading):
            labels: list[str | None] = []
            for item in (one for one in items if one.language == language):
                decision = outcome.decisions.get((item.id, question.name))
                is_few = votes[item.id, question.name] < LEAST_PEOPLE
                by_too_few = decision is not None and is_few and decision.label != YES
                if decision is None or by_too_few:
                    unread.add(item.id)
                else:
                    labels.append(str(decision.label))
            figure = SampleFigure(
                language=language,
                question=question.name,
                found=labels.count(YES),
                of=len(labels),
                unsure=labels.count(UNSURE),
            )
            figures.append(figure)
    return SampleResult(
        round=outcome.name,
        seed=outcome.spec.sample.seed,
        date=max((read.date for read in reads_of_round(outcome)), default="unknown"),
        stage=str(drawn.get("stage", "")),
        population=dict(drawn.get("population", {})),
        figures=tuple(figures),
        unread=len(unread),
        people=len(results_of),
        readers=sum(all(result.is_reader for result in results) for results in results_of.values()),
        missed=sum(any(result.is_refused for result in results) for results in results_of.values()),
    )
