"""Turn what a model's replies say of a dialogue into a `Read`: the stored record of who has read what, and what for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from h2htalk.chat.engines import model_name
from h2htalk.chat.protocol import Reply
from h2htalk.curation.reading.findings import read_findings
from h2htalk.curation.reading.question import DialogueReading
from h2htalk.data.readers.passages import conversation_passages, text_hash
from h2htalk.data.readers.reads import Read, ReaderKind, ReadFinding, ReadGate
from h2htalk.data.scenario import Dialogue

UNDATED = "unknown"  # of replies whose store says no time


def reader_name(kind: ReaderKind, model: str) -> str:
    """The name of a model as a reader: `guard:MODEL`, without a path or an address of this machine."""
    return f"{kind}:{model_name(model)}"


def day_of(replies: Iterable[Reply]) -> str:
    """The day (UTC, ISO 8601) on which the last of these replies was stored."""
    times = [reply.at for reply in replies if reply.at is not None]
    if not times:
        return UNDATED
    return datetime.fromtimestamp(max(times), UTC).date().isoformat()


def read_of(
    dialogue: Dialogue,
    reading: DialogueReading,
    *,
    reader: str,
    gates: tuple[ReadGate, ...],
    prompt: str,
    date: str,
) -> Read | None:
    """The stored record of a reading of a dialogue; None where no message was read whole and nothing was found."""
    spoken = [turn for turn, message in enumerate(dialogue.messages) if message.content.strip()]
    read: set[str] = set()
    for turn, passage in zip(spoken, conversation_passages(dialogue.messages), strict=True):
        if turn not in reading.unread:
            read |= {passage.hash, passage.hash_as_first}
    findings: list[ReadFinding] = []
    known_by: list[str] = []
    for found in reading.findings:
        text = text_hash(dialogue.messages[found.turn].content)
        findings += read_findings(found, text)
        if found.known_by:
            known_by.append(text)
    if not read and not findings:
        return None
    return Read(
        item=dialogue.id,
        reader=reader,
        date=date,
        gates=gates,
        passages=tuple(sorted(read)),
        findings=tuple(findings),
        prompt=prompt,
        known_by=tuple(dict.fromkeys(known_by)),
    )
