"""What the small files of a curation must hold, checked where they are read: a disk, an editor or an older program may
have left something else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypeVar

from pydantic import ConfigDict, Field, with_config
from typing_extensions import TypedDict  # before Python 3.12 pydantic reads no other

from h2htalk.data.files import read_json_object
from h2htalk.data.records import read_record
from h2htalk.errors import DataError

T = TypeVar("T")
OTHERS = ConfigDict(extra="allow")  # what other versions wrote beside it stays
ADVICE = "; restore the file, or make the stage again with --from-stage"
WORKSPACE_ADVICE = (
    "; restore the file. Without a copy remove it if secret.key is there: the next command writes it again, and "
    "finishes every erasure once more. If secret.key is gone too, curate in a new workspace"
)
MOST_PROBLEMS = 10  # of a file that are named
Count = Annotated[int, Field(ge=0)]
Hash = Annotated[str, Field(min_length=1)]


@with_config(OTHERS)
class StageFile(TypedDict):
    """`stage.json`: how a stage was made."""

    stage: str
    version: int
    settings: dict[str, Any]
    source: str
    fingerprint: Hash


@with_config(ConfigDict(extra="forbid"))
class PartMark(TypedDict):
    """`parts/part-00000.json`: the counts of a part, and the tags of its records."""

    read: Count
    kept: Count
    rejected: Count
    written: Count
    dropped: Count
    reasons: dict[str, Count]
    tags: dict[str, Count]
    earlier: NotRequired[Count]
    record_tags: dict[str, list[str]]


@with_config(OTHERS)
class Note(TypedDict):
    """A result in `notes.json`."""

    message: str


@with_config(OTHERS)
class GatheredFile(TypedDict):
    """A file of a source in `sources.json`."""

    name: str
    start: Count
    end: Count
    sha256: str
    update: NotRequired[Count]
    by_content: NotRequired[bool]
    nothing_new: NotRequired[bool]


@with_config(OTHERS)
class GatheredFiles(TypedDict, total=False):
    """`sources.json`: the files of each source, the first part of each update, and states that an update gave up."""

    sources: dict[str, list[GatheredFile]]
    first_parts: Annotated[list[Count], Field(min_length=1)]
    abandoned: dict[str, list[str]]  # SHA-256 of the files of a source
    is_adopted: bool  # false from the begin of an update until the stages know of it


@with_config(OTHERS)
class WorkspaceFacts(TypedDict, total=False):
    """`workspace.json`: what holds of the workspace."""

    key: str
    erased: Count
    reached: Count
    purged: bool


@with_config(OTHERS)
class Tombstone(TypedDict):
    """A line of `tombstones.jsonl`."""

    id: str
    of: NotRequired[str | None]
    marks: NotRequired[list[str]]
    lines: NotRequired[list[str]]


@with_config(OTHERS)
class SourceSettings(TypedDict):
    """A source in the settings of a gathered stage."""

    name: str
    format: str
    sha256: str


NOTES = dict[str, Note]
# Of `gather`: what it has read, a `GatheredFiles`.
SOURCES = "sources.json"


def combined_hash(hashes: Sequence[str]) -> str:
    """The hash of the one file, or of the hashes of several."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def read_checked(
    kind: Any, path: Path, *, missing_ok: bool = False, advice: str = ADVICE
) -> dict[str, Any]:
    """Read a file of one object that must be of a kind; {} where it is missing and that is `missing_ok`.

    Raises FileNotFoundError, and DataError, which names the fields in one line.
    """
    record = read_json_object(path, missing_ok=missing_ok)
    if not record and missing_ok and not path.exists():
        return {}
    try:
        checked: dict[str, Any] = read_record(kind, record, str(path))
    except DataError as error:
        problems = [line.removeprefix(f"{path}: ") for line in str(error).splitlines()]
        shown = "; ".join(problems[:MOST_PROBLEMS])
        more = (
            f"; and {len(problems) - MOST_PROBLEMS} more" if len(problems) > MOST_PROBLEMS else ""
        )
        raise DataError(f"{path}: {shown}{more}{advice}") from None
    return checked


def require_id(record: Mapping[str, Any], where: str) -> None:
    """Raise DataError for a record of a stage without an id."""
    if not isinstance(record.get("id"), str):
        raise DataError(f"{where}: id: must be text{ADVICE}")
