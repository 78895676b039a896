"""Reading what was made elsewhere: responses by other tools, and the authors' released reference files."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.responses import FailedResponse, Response, SampleKey, read_response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, quoted

_NAMED_FOREIGN_IDS = 5


def read_foreign_responses(path: Path, ids: Collection[str]) -> list[Response | FailedResponse]:
    """Responses made by another tool: JSONL lines of `id` and `response` (or `text`), optionally `sample`.

    Args:
        path: the file.
        ids: the split's scenario ids. Ids that the file lacks stay unscored; ids that the split lacks are an
            error, since they mean another split.

    Raises:
        DataError: a broken line, a foreign id, an answer given twice, or an item that lacks a sample which others
            have; names file and line.
    """
    known = set(ids)
    responses: dict[SampleKey, Response | FailedResponse] = {}
    lines: dict[str, list[tuple[int, str]]] = {}
    foreign: list[str] = []
    for where, record in read_jsonl(path):
        response = _read_foreign(record, where)
        if response.id not in known:
            # In ASCII, since a foreign id may look just like one of the split's.
            foreign.append(f"{quoted(response.id)} ({where.rpartition(':')[2]})")
            continue
        key = (response.id, response.sample)
        if key in responses:
            raise DataError(f"{where}: a second response to {response.id}, sample {response.sample}")
        responses[key] = response
        lines.setdefault(response.id, []).append((response.sample, where))
    if foreign:
        more = f" and {len(foreign) - _NAMED_FOREIGN_IDS} more" if len(foreign) > _NAMED_FOREIGN_IDS else ""
        raise DataError(
            f"{path}: {len(foreign)} ids are not in the split: id (line) "
            f"{', '.join(foreign[:_NAMED_FOREIGN_IDS])}{more}; name the split these responses answer"
        )
    if not responses:
        raise DataError(f"{path}: holds no response")
    _require_equal_samples(lines)
    return list(responses.values())


def _require_equal_samples(lines: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    """Raise DataError unless every item has the samples 0 to K - 1, with one K for all.

    An item's score is the mean of its samples, so that one with fewer would never be scored.
    """
    count = max(map(len, lines.values()))
    for item_id, found in lines.items():
        lacking = sorted(set(range(count)) - {sample for sample, _ in found})
        if lacking:
            raise DataError(
                f"{found[-1][1]}: {item_id} lacks sample {lacking[0]}; give every answered item the samples "
                f"0 to {count - 1} (a call that gave no answer is a line with a failure)"
                if count > 1
                else f"{found[-1][1]}: {item_id} has sample {found[-1][0]} alone; the first sample is 0"
            )


def _read_foreign(record: Mapping[str, object], where: str) -> Response | FailedResponse:
    if "response" not in record:
        return read_response(record, where)
    if not isinstance(record["response"], str):
        raise DataError(f"{where}: response must be text, not {type(record['response']).__name__}")
    for other in ("text", "failure"):
        if record.get(other) is not None:
            raise DataError(f"{where}: holds a response and a {other}; keep the one that is true")
    # Other tools' usage and reasoning fields have other shapes: only what is scored is read.
    read = ("id", "sample", "finish_reason")
    own = {key: record[key] for key in read if key in record}
    return read_response({**own, "text": record["response"]}, where)


# The authors' file names and the subtask whose references each really holds: DialogueSchedule and
# ItineraryInitialization are swapped there (row counts and texts say so).
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


@dataclass(frozen=True, slots=True)
class AuthorsRelease:
    """The references of the authors' release, by true subtask, and what the release lacks, in words."""

    references: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]


def read_authors_release(folder: Path) -> AuthorsRelease:
    """Read the eleven files of `{"response": ...}` lines (`.json`, `.jsonl` or `.txt`) as references.

    They are references only: no inputs, persona, history or ids were released, so they cannot become scenarios.

    Raises:
        DataError: none of the files is there, or a line is not such an object; names file and line.
    """
    references: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    for name, subtask in AUTHORS_FILES.items():
        path = _find_file(folder, name)
        if path is None:
            missing.append(f"{SUBTASKS[subtask].title}: no file {name}.jsonl")
            continue
        rows = tuple(_reference(record, where) for where, record in read_jsonl(path))
        references[subtask] = rows
        expected = SUBTASKS[subtask].count
        if len(rows) != expected:
            missing.append(
                f"{SUBTASKS[subtask].title}: {len(rows)} references of Table 1's {expected} ({path.name})"
            )
    if not references:
        raise DataError(f"{folder}: none of the authors' files is there, such as dialogue_base.jsonl")
    missing.append(
        "every subtask: the inputs (persona, history, memories, schedules) and ids were never released"
    )
    return AuthorsRelease({name: references[name] for name in SUBTASKS if name in references}, tuple(missing))


def _find_file(folder: Path, name: str) -> Path | None:
    found = [path for ending in (".jsonl", ".json", ".txt") if (path := folder / f"{name}{ending}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: both {found[0].name} and {found[1].name}; keep one")
    return found[0] if found else None


def _reference(record: Mapping[str, object], where: str) -> str:
    text = record.get("response")
    if not isinstance(text, str):
        raise DataError(f"{where}: needs a response that is text")
    return text


def write_authors_references(release: AuthorsRelease, folder: Path) -> Path:
    """Write `references.jsonl` (`id`, `subtask`, `language`, `reference`) into a folder; returns the file.

    Raises:
        DataError: such a file is there already, or the folder cannot be written.
    """
    path = folder / "references.jsonl"
    if os.path.lexists(path):
        raise DataError(f"{path}: is there already; name a new folder with --out")
    records = (
        {"id": f"authors-{subtask}-{row:04}", "subtask": subtask, "language": "zh", "reference": text}
        for subtask, texts in release.references.items()
        for row, text in enumerate(texts, 1)
    )
    write_jsonl(path, records)
    return path
