"""Read responses that another tool produced, and the authors' release: references without inputs, personas and ids."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.replies.finish_reasons import read_finish_reason
from h2htalk.data.responses import (
    FailedResponse,
    Response,
    SampleKey,
    fold_answer,
    read_outcomes,
    read_response,
)
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, listed, quoted

# The authors' file names and the subtask whose references each holds: DialogueSchedule and ItineraryInitialization are
# swapped there, as row counts and texts show.
AUTHORS_FILES = {
    "dialogue_base": "dialogue_base",
    "dialogue_emotion": "dialogue_emotion",
    "itinerary_initialize": "dialogue_schedule",
    "recollection_synthesize": "recollection_synthesis",
    "recollection_refine": "recollection_refinement",
    "recollection_initialize": "recollection_initialization",
    "itinerary_basic": "itinerary_basic",
    "itinerary_middle": "itinerary_middle",
    "itinerary_advanced": "itinerary_advanced",
    "itinerary_feedback": "itinerary_response",
    "dialogue_schedule": "itinerary_initialization",
}


def read_foreign_responses(path: Path, ids: Collection[str]) -> list[Response | FailedResponse]:
    """Read JSONL lines of `id` and `response` (or `text`), optionally `sample`, or of a run's `calls.jsonl`.

    `ids`: of the split; one that is missing from the file stays unscored. Raises DataError, which names file and line:
    a broken line, an id of another split, a repeated answer, or an item that lacks a sample which others have.
    """
    responses: dict[SampleKey, Response | FailedResponse] = {}
    lines: dict[str, str] = {}
    foreign: list[str] = []
    for where, record in read_jsonl(path, torn_tail=True):
        is_call = any(key in record for key in ("stage", "call", "job"))
        if is_call:
            outcomes = list(read_outcomes(record, where))
        else:
            outcomes = [_read_foreign(record, where)]
        for response in outcomes:
            if response.id not in ids:
                # Quoted: a foreign id may look exactly like one of the split's.
                foreign.append(f"{quoted(response.id)} ({where.rpartition(':')[2]})")
            elif (response.id, response.sample) in responses and not is_call:
                raise DataError(
                    f"{where}: a second response to {response.id}, sample {response.sample}"
                )
            else:
                fold_answer(responses, response)
                lines[response.id] = where
    if foreign:
        advice = f"id (line) {listed(foreign)}; name the split these responses answer"
        raise DataError(f"{path}: {len(foreign)} ids are not in the split: {advice}")
    if not responses:
        raise DataError(f"{path}: holds no response")
    count = -(-len(responses) // len(lines))
    for item_id, where in lines.items():
        lacking = [sample for sample in range(count) if (item_id, sample) not in responses]
        if lacking:
            advice = f"give every answered item the samples 0 to {count - 1} (a call without answer has a failure)"
            raise DataError(f"{where}: {item_id} lacks sample {lacking[0]}; {advice}")
    return list(responses.values())


def _read_foreign(line: Mapping[str, Any], where: str) -> Response | FailedResponse:
    """Read what is scored; other fields of other tools have other shapes."""
    record = {key: line[key] for key in ("id", "sample") if key in line}
    answers = {
        key: line[key] for key in ("response", "text", "failure") if line.get(key) is not None
    }
    if len(answers) > 1:
        raise DataError(f"{where}: holds a {' and a '.join(answers)}; keep one of them")
    response = line.get("response", "")
    if not isinstance(response, str):
        raise DataError(f"{where}: response must be text, not {type(response).__name__}")
    if isinstance(line.get("finish_reason"), str):
        record["finish_reason"] = read_finish_reason(line["finish_reason"])
    for key, answer in answers.items():
        record["text" if key == "response" else key] = answer
    return read_response(record, where)


def import_authors(folder: Path, out: Path) -> tuple[Path, int, list[str]]:
    """Write `references.jsonl` (`id`, `subtask`, `language`, `reference`) of the authors' release into `out`.

    `folder`: the eleven files of `{"response": ...}` lines. Returns the file, the number of references, and a line for
    each thing that the release lacks. Raises DataError: none of the files exists, a line is wrong, or the file exists.
    """
    path = out / "references.jsonl"
    if os.path.lexists(path):
        raise DataError(f"{path}: is there already; name a new folder with --out")
    references: dict[str, list[str]] = {}
    missing: list[str] = []
    for name, subtask in AUTHORS_FILES.items():
        title = SUBTASKS[subtask].title
        file = _find_authors_file(folder, name)
        if file is None:
            missing.append(f"{title}: no file {name}.jsonl")
            continue
        texts = [_reference_of(record, where) for where, record in read_jsonl(file)]
        references[subtask] = texts
        expected = SUBTASKS[subtask].count
        if len(texts) != expected:
            missing.append(
                f"{title}: {len(texts)} references of Table 1's {expected} ({file.name})"
            )
    if not references:
        raise DataError(
            f"{folder}: none of the authors' files is there, such as dialogue_base.jsonl"
        )
    missing.append(
        "every subtask: the inputs (persona, history, memories, schedules) and ids were never released"
    )
    count = write_jsonl(path, _reference_records(references))
    return path, count, missing


def _find_authors_file(folder: Path, name: str) -> Path | None:
    """The one file of that name, whatever its ending; None where there is none. Raises DataError for several."""
    paths = [folder / f"{name}.{ending}" for ending in ("jsonl", "json", "txt")]
    files = [path for path in paths if path.is_file()]
    if len(files) > 1:
        raise DataError(f"{folder}: both {files[0].name} and {files[1].name}; keep one")
    return files[0] if files else None


def _reference_of(record: Mapping[str, Any], where: str) -> str:
    text = record.get("response")
    if not isinstance(text, str):
        raise DataError(f"{where}: needs a response that is text")
    return text


def _reference_records(references: Mapping[str, list[str]]) -> Iterator[dict[str, str]]:
    for subtask in SUBTASKS:
        for number, text in enumerate(references.get(subtask, ()), 1):
            yield {
                "id": f"authors-{subtask}-{number:04}",
                "subtask": subtask,
                "language": "zh",
                "reference": text,
            }
