"""Reading what was made elsewhere: responses by other tools, and the authors' released reference files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.run import FailedResponse, Response, read_response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

_NAMED_FOREIGN_IDS = 5


def read_foreign_responses(path: Path, ids: Collection[str]) -> list[Response | FailedResponse]:
    """Responses made by another tool: JSONL lines of `id` and `response` (or `text`), optionally `sample`.

    Args:
        path: the file.
        ids: the split's scenario ids. Ids that the file lacks stay unscored; ids that the split lacks are an
            error, since they mean another split.

    Raises:
        DataError: a broken line, a foreign id or an answer given twice; names file and line.
    """
    known = set(ids)
    responses: dict[tuple[str, int], Response | FailedResponse] = {}
    foreign: list[str] = []
    for where, record in read_jsonl(path):
        response = _read_foreign(record, where)
        if response.id not in known:
            foreign.append(f"{response.id} ({where.rpartition(':')[2]})")
            continue
        key = (response.id, response.sample)
        if key in responses:
            raise DataError(f"{where}: a second response to {response.id}, sample {response.sample}")
        responses[key] = response
    if foreign:
        more = f" and {len(foreign) - _NAMED_FOREIGN_IDS} more" if len(foreign) > _NAMED_FOREIGN_IDS else ""
        raise DataError(
            f"{path}: {len(foreign)} ids are not in the split: id (line) "
            f"{', '.join(foreign[:_NAMED_FOREIGN_IDS])}{more}; name the split these responses answer"
        )
    if not responses:
        raise DataError(f"{path}: holds no response")
    return list(responses.values())


def _read_foreign(record: Mapping[str, object], where: str) -> Response | FailedResponse:
    if "response" not in record:
        return read_response(record, where)
    if not isinstance(record["response"], str):
        raise DataError(f"{where}: response must be text, not {type(record['response']).__name__}")
    if record.get("failure") is not None:
        raise DataError(f"{where}: holds a response and a failure; keep the one that is true")
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
    """Write `references.jsonl` (`id`, `subtask`, `language`, `reference`) into a folder; returns the file."""
    path = folder / "references.jsonl"
    records = (
        {"id": f"authors-{subtask}-{row:04}", "subtask": subtask, "language": "zh", "reference": text}
        for subtask, texts in release.references.items()
        for row, text in enumerate(texts, 1)
    )
    write_jsonl(path, records)
    return path
