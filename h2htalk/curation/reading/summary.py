"""What a run says at its end of who has read its dialogues: how many nobody has, and how many wait in review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.curation.stage_folder import AUDIT, KEPT, Record
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import Language
from h2htalk.data.readers.certificate_rules import granted_gates
from h2htalk.data.readers.certificates import (
    Certificate,
    certificate_of,
    read_certificates,
    why_no_certificate,
)
from h2htalk.data.readers.passages import conversation_passages
from h2htalk.data.readers.reads import Read, read_read
from h2htalk.data.scenario import Turn
from h2htalk.errors import counted

STAGE = "safety"
CHECK = "h2htalk curate check-guard MODEL"


@dataclass(slots=True)
class ReadCounts:
    """The dialogues of a language that safety has kept.

    `readers`: how many each reader has read to the last message; `unread`: how many nobody has who counts for a gate,
    as a release counts them; `review`: how many wait for people; `unchecked`: readers who count for no gate in this
    language, and why.
    """

    kept: int = 0
    unread: int = 0
    review: int = 0
    readers: Counter[str] = field(default_factory=Counter)
    unchecked: dict[str, str] = field(default_factory=dict)


def count_reads(workspace: Workspace) -> dict[Language, ReadCounts]:
    """Who has read the dialogues that safety has kept, by language. Raises DataError for a damaged file."""
    folder = workspace.stage(STAGE)
    certificates = read_certificates(workspace.path)
    counts: dict[Language, ReadCounts] = {}
    for part in folder.parts():
        reads: dict[str, Read] = {}
        for audit in folder.part_records(part, AUDIT):
            if "read" in audit:
                reads[audit["id"]] = read_read(
                    audit["read"], f"{folder.file(AUDIT, part)}: {audit['id']}: read"
                )
        for record in folder.part_records(part, KEPT):
            language = str(record["language"])
            _count(
                counts.setdefault(language, ReadCounts()),
                record,
                reads.get(record["id"]),
                certificates,
            )
    return dict(sorted(counts.items()))


def _count(
    counts: ReadCounts, record: Record, read: Read | None, certificates: Sequence[Certificate]
) -> None:
    counts.kept += 1
    noted: Mapping[str, Any] = record.get("metadata", {}).get("safety", {})
    if noted.get("action") == "review":
        counts.review += 1
    if not counts_as_read(record, read, certificates):
        counts.unread += 1
    if read is not None and _is_whole(record, read):
        counts.readers[read.reader] += 1
        reason = _why_unchecked(record, read, certificates)
        if reason:
            counts.unchecked[read.reader] = reason


def counts_as_read(record: Record, read: Read | None, certificates: Sequence[Certificate]) -> bool:
    """Whether a reader who counts for a gate in this language has read a dialogue to its last message."""
    return (
        read is not None
        and _is_whole(record, read)
        and not _why_unchecked(record, read, certificates)
    )


def _why_unchecked(record: Record, read: Read, certificates: Sequence[Certificate]) -> str:
    """Why a reading counts for no gate in the language of a dialogue; empty where it counts for one."""
    certificate = certificate_of(read, certificates)
    if certificate is None:
        return why_no_certificate(read, certificates)
    if not granted_gates(certificate, record["language"]):
        return "is refused for every gate by its certificate"
    return ""


def _is_whole(record: Record, read: Read) -> bool:
    """Whether a reading covers every message of a dialogue."""
    turns = [Turn(message["role"], message["content"]) for message in record["messages"]]
    return all(passage.hash in read.passages for passage in conversation_passages(turns))


def reading_lines(workspace: Workspace) -> list[str]:
    """A line a language: who has read its dialogues, how many are unread, and how many wait in review; and what to do.

    None before safety has made anything.
    """
    lines: list[str] = []
    unchecked: dict[tuple[str, str], list[str]] = {}
    counts = count_reads(workspace)
    for language, count in counts.items():
        unread = counted(count.unread, "dialogue is unread", "dialogues are unread")
        line = f"{unread}, {count.review:,} {'waits' if count.review == 1 else 'wait'} in review"
        if count.readers:
            readers = ", ".join(
                f"{reader} has read {number:,}" for reader, number in sorted(count.readers.items())
            )
            line = f"of {counted(count.kept, 'dialogue')}, {readers}; {line}"
        lines.append(f"{STAGE:10} {language}: {line}")
        for reader, reason in count.unchecked.items():
            unchecked.setdefault((reader, reason), []).append(language)
    if any(count.unread for count in counts.values()) and not any(
        count.readers for count in counts.values()
    ):
        lines.append(
            f"{STAGE:10} words do not read: to have dialogues read, name a guard in [safety]"
        )
    for (reader, reason), languages in sorted(unchecked.items()):
        where = " and ".join(languages)
        lines.append(
            f"{STAGE:10} what {reader} has read in {where} counts as unread: it {reason}: {CHECK}"
        )
    return lines
