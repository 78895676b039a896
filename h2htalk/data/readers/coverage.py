"""What the readings of an item, and of what it was made from, cover: which passages nobody has read for a gate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from h2htalk.data.languages import Language
from h2htalk.data.readers.certificate_rules import granted_gates
from h2htalk.data.readers.certificates import Certificate, certificate_of
from h2htalk.data.readers.passages import SpokenPassage, text_hash
from h2htalk.data.readers.reads import Read, ReadFinding, ReadGate

LEAST_PEOPLE = 2  # who must have answered a question about an item, for it to be read by people


def counted_gates(
    read: Read, language: Language, certificates: Iterable[Certificate]
) -> tuple[ReadGate, ...]:
    """The gates for which a reading counts: of people where enough answered, of a model as its certificate says."""
    if read.kind == "people":
        return read.gates if read.people >= LEAST_PEOPLE else ()
    certificate = certificate_of(read, certificates)
    if certificate is None:
        return ()
    granted = granted_gates(certificate, language)
    return tuple(gate for gate in read.gates if gate in granted)


@dataclass(frozen=True, slots=True)
class ReadState:
    """What is known of an item for one gate.

    Attributes:
        gate: the gate.
        readers: who read any of it and counts, sorted.
        unread: the hashes of passages that nobody read who counts, in their order.
        findings: what was found at its passages or at the item as a whole, with its reader. A finding of a reader
            without a certificate is looked at all the same.
    """

    gate: ReadGate
    readers: tuple[str, ...]
    unread: tuple[str, ...]
    findings: tuple[tuple[str, ReadFinding], ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether every passage was read for the gate."""
        return not self.unread


def state_of(
    gate: ReadGate,
    passages: Sequence[SpokenPassage],
    language: Language,
    reads: Collection[Read],
    certificates: Collection[Certificate],
    item: str = "",
) -> ReadState:
    """What the readings of an item, and of what it was made from, say of its passages for a gate.

    `item` is its id: a finding without a passage concerns the item only where the reading was of the item itself.
    """
    wanted = list(dict.fromkeys(passage.hash for passage in passages))
    texts = {text_hash(passage.text) for passage in passages}
    covered: set[str] = set()
    readers: set[str] = set()
    findings: dict[tuple[str, ReadFinding], None] = {}
    for read in reads:
        if gate in counted_gates(read, language, certificates):
            common = covered_by(read, wanted)
            covered |= common
            if common:
                readers.add(read.reader)
        for finding in read.findings:
            concerns = finding.text in texts if finding.text else read.item == item
            if finding.gate == gate and concerns:
                findings[read.reader, finding] = None
    unread = tuple(passage for passage in wanted if passage not in covered)
    return ReadState(
        gate=gate, readers=tuple(sorted(readers)), unread=unread, findings=tuple(findings)
    )


def covered_by(read: Read, passages: Iterable[str]) -> set[str]:
    """Which of these passages, by their hashes, a reading covers."""
    return set(read.passages).intersection(passages)
