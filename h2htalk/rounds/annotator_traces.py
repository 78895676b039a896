"""Remove an annotator from the files of a round: lines, cells, codes. Every step can be repeated after a kill.

Files whose meaning is known here lose what they hold of the annotator. In all others, also those of a later version, a
code stands where the annotator's id stood, and nothing where the id of Prolific did.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import unescape

from h2htalk.data.files import (
    json_line,
    read_json_object,
    read_jsonl,
    reading,
    write_jsonl,
    write_text,
)
from h2htalk.data.imports.zip_members import read_member
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.payments.lists import read_payment_lists
from h2htalk.rounds.payments.submissions import SUBMISSIONS, participant_ids, read_submissions
from h2htalk.rounds.round_folder import (
    ANNOTATORS,
    ASSIGNMENT_SETS,
    PAYMENTS,
    PENDING_ERASURE,
    RoundFolder,
)

Record = Mapping[str, Any]
# Files whose lines are about one annotator, in a field of this name.
_LINES = {
    "annotations.jsonl": "annotator",
    ANNOTATORS: "id",
    SUBMISSIONS: "annotator",
    "private/argilla_discards.jsonl": "annotator",
}
# CSV files of what is paid keep the row, without names; of the others it goes.
_PAID = "payment"
# Headings of columns that hold names of annotators, ids of participants, and what a participant may have got alone.
_NAMED = ("annotator", "name")
_PARTICIPANT_IDS = ("participant id", "participant_id")
_CODES = ("completion code", "completion_code", "submission")
# Columns in which other annotators' rows name the annotator, and what stands between two entries of theirs.
_PARTNERS = {"shares answers with": " ", "warnings": "; "}
# Events about one annotator, which cannot be undone once the annotator is erased.
_ABOUT_ONE = ("removed", "restored")
# Lists of annotators in events.
_LISTS = ("joined", "left", "changed")
# A shorter comment is found in other texts by chance (characters).
_SHORT = 12
# Bytes of a workbook's parts that are searched; workbooks of more are not read as answers either.
_LARGEST_WORKBOOK = 64 << 20


@dataclass(frozen=True, slots=True)
class Trace:
    """Whom to remove, the code that stands in their place, and all participant ids that they ever had in the round."""

    annotator: Annotator
    code: str
    participant_ids: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, str]:
        """Id of the annotator -> what stands in its place. A name may be a word that means something else."""
        participants = [self.annotator.participant_id, *self.participant_ids]
        return {self.annotator.id: self.code} | {
            participant: "" for participant in participants if participant
        }


def participant_ids_in(folder: RoundFolder, annotator: Annotator) -> tuple[str, ...]:
    """Return all participant ids that an annotator ever had in a round: in its records, and in its files by name.

    An id that is another annotator's now is left out: it is theirs, and everything else of it goes with the name. Raise
    DataError.
    """
    ids = [annotator.participant_id, *participant_ids(read_submissions(folder), annotator.id)]
    for one in read_payment_lists(folder):
        ids += [
            payment.participant_id for payment in one.payments if payment.annotator == annotator.id
        ]
    for path in sorted(folder.private.glob("*.csv")):
        rows = _read_table(path)
        headings = rows[0] if rows else []
        for row in rows[1:]:
            cells = [*zip(headings, row, strict=False)]
            if any(heading in _NAMED and cell == annotator.name for heading, cell in cells):
                ids += [cell for heading, cell in cells if heading in _PARTICIPANT_IDS]
    others = {one.participant_id for one in folder.listed_annotators() if one.id != annotator.id}
    return tuple(dict.fromkeys(one for one in ids if one and one not in others))


def remove_traces(folder: RoundFolder, trace: Trace) -> None:
    """Remove an annotator from all files of a round but the spreadsheets. Raise DataError."""
    folder.remove_half_written()
    for name, field in _LINES.items():
        _rewrite_lines(folder.path / name, lambda line, field=field: _without(line, field, trace))  # type: ignore[misc]
    for path in sorted(folder.path.glob("shared_answers*.jsonl")):
        _rewrite_lines(path, lambda line: _shared_without(line, trace))
    _rewrite_lines(folder.path / ASSIGNMENT_SETS, lambda line: _without_assignments(line, trace))
    _rewrite_lines(folder.path / "events.jsonl", lambda line: _event_without(line, trace))
    _rewrite_lines(folder.path / PAYMENTS, lambda line: _payments_without(line, trace))
    for place in (folder.path, folder.private):
        for path in sorted(place.glob("*.jsonl")):
            _rewrite_lines(path, lambda line: _replaced(line, trace.ids))
        for path in sorted(place.glob("*.json")):
            _rewrite_object(path, trace)
        for path in sorted(place.glob("*.csv")):
            _rewrite_table(path, trace)
    folder.protect()


def _rewrite_lines(path: Path, change: Callable[[Record], Record | None]) -> None:
    """Replace each line of a JSONL file by its change, or remove it for None; an unchanged file is not written."""
    if not path.is_file():
        return
    before = [line for _, line in read_jsonl(path, torn_tail=True)]
    after = [changed for line in before if (changed := change(line)) is not None]
    if after != before:
        write_jsonl(path, after)


def _shared_without(line: Record, trace: Trace) -> Record | None:
    return None if trace.annotator.id in line["annotators"] else line


def _without(line: Record, field: str, trace: Trace) -> Record | None:
    return None if line.get(field) == trace.annotator.id else line


def _without_assignments(line: Record, trace: Trace) -> Record:
    kept = [one for one in line["assignments"] if one["annotator"] != trace.annotator.id]
    return {**line, "assignments": kept}


def _payments_without(line: Record, trace: Trace) -> Record:
    """Return a list of payments in which the annotator has no participant id, also none that is another's now."""
    payments = []
    for payment in line["payments"]:
        is_theirs = payment["annotator"] in (trace.annotator.id, trace.code)
        payments.append({**payment, "participant_id": ""} if is_theirs else payment)
    return {**line, "payments": payments}


def _event_without(line: Record, trace: Trace) -> Record:
    """Return an event without the annotator. The number of events stays: archived results are numbered by them."""
    if line["event"] in _ABOUT_ONE and line.get("annotator") == trace.annotator.id:
        kept = {key: value for key, value in line.items() if key not in ("annotator", "why")}
        return {**kept, "event": f"erased annotator {line['event']}"}
    lists = {
        name: [one for one in line[name] if one != trace.annotator.id]
        for name in _LISTS
        if _is_list(line, name)
    }
    return {**line, **lists}


def _is_list(line: Record, name: str) -> bool:
    return isinstance(line.get(name), list)


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value in which every text and key that is one of the names is replaced."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {names.get(key, key): _replaced(one, names) for key, one in value.items()}
    return [_replaced(one, names) for one in value] if isinstance(value, list) else value


def _rewrite_object(path: Path, trace: Trace) -> None:
    if path.name == Path(PENDING_ERASURE).name:
        return
    before = read_json_object(path)
    # Accounts on servers by annotator: without the annotator nobody needs them.
    after = _replaced(
        {key: value for key, value in before.items() if key != trace.annotator.id}, trace.ids
    )
    if after != before:
        write_text(path, json_line(after))


def _rewrite_table(path: Path, trace: Trace) -> None:
    """Remove rows of a CSV file that are about the annotator; of payments the row stays, without name and ids."""
    before = _read_table(path)
    headings = before[0] if before else []
    rows = [_without_partner(row, headings, trace) for row in before]
    about = [_is_about(row, headings, trace) for row in rows]
    if rows == before and not any(about):
        return
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    for row, is_theirs in zip(rows, about, strict=True):
        if not is_theirs:
            writer.writerow(row)
        elif path.name.startswith(_PAID):
            writer.writerow(_paid_row(row, headings, trace))
    write_text(path, output.getvalue())


def _read_table(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file. Raise DataError."""
    with reading(path):
        text = path.read_text(encoding="utf-8")
    return list(csv.reader(io.StringIO(text)))


def _without_partner(row: Sequence[str], headings: Sequence[str], trace: Trace) -> list[str]:
    """Return a row without what it says of the annotator as the partner of another one."""
    cells = list(row)
    for at, heading in enumerate(headings[: len(cells)]):
        separator = _PARTNERS.get(heading)
        if separator is not None and cells[at] != heading:
            kept = [
                entry for entry in cells[at].split(separator) if trace.annotator.id not in entry
            ]
            cells[at] = separator.join(kept)
    return cells


def _is_about(row: Sequence[str], headings: Sequence[str], trace: Trace) -> bool:
    if not trace.ids.keys().isdisjoint(row):
        return True
    cells = zip(headings, row, strict=False)
    return any(heading in _NAMED and cell == trace.annotator.name for heading, cell in cells)


def _paid_row(row: Sequence[str], headings: Sequence[str], trace: Trace) -> list[str]:
    cells = [trace.ids.get(cell, cell) for cell in row]
    for at, heading in enumerate(headings):
        if heading in _NAMED:
            cells[at] = trace.code
        elif heading in (*_PARTICIPANT_IDS, *_CODES):
            cells[at] = ""
    return cells


# --- What is left -----------------------------------------------------------------------------------------------------


def find_traces(
    folder: Path, annotator: Annotator, comments: Iterable[str], participant_ids: Iterable[str] = ()
) -> Iterator[str]:
    """Yield the files of a folder that hold an annotator's id, name, an id of Prolific or a comment."""
    ids = [annotator.id, annotator.participant_id, *participant_ids]
    needles = [*ids, *(one for one in comments if len(one) >= _SHORT)]
    forms = {
        form for needle in needles if needle for form in (needle, json_line(needle).strip()[1:-1])
    }
    # A name may be a word of an item.
    named = re.compile(rf"(?<![\w-]){re.escape(annotator.name)}(?![\w-])")
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"
    ):
        with reading(path):
            text = _text_of(path)
        is_about_people = path.parent.name == "private" or path.name == "events.jsonl"
        if any(form in text for form in forms) or (is_about_people and named.search(text)):
            yield str(path)


def _text_of(path: Path) -> str:
    """Return what a file says; of a workbook also what its compressed sheets say. Raise OSError."""
    texts = [path.read_bytes().decode("utf-8", errors="replace")]
    # A damaged workbook is searched as it is.
    with suppress(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError):
        if path.suffix.lower() == ".xlsx":
            bytes_left = _LARGEST_WORKBOOK
            with zipfile.ZipFile(path) as workbook:
                for part in workbook.infolist():
                    bytes_left -= part.file_size
                    if bytes_left >= 0:
                        sheet = read_member(workbook, part).decode("utf-8", errors="replace")
                        texts.append(unescape(sheet, {"&quot;": '"', "&apos;": "'"}))
    return "\n".join(texts)
