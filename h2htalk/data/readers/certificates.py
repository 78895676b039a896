"""Certificates: how well a reader found what authors of known truth had written (DESIGN, rule 12).

Without one the readings of a guard or a reviewer do not count for any gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.reads import Read, ReadGate
from h2htalk.data.readers.served_by import describe_difference
from h2htalk.data.records import Text, as_json, read_record, strict_record

CERTIFICATES = "certificates.jsonl"  # of a workspace
OF_TALKS = (
    "talks:"  # before the hash of a set of an owner's own labelled talks (`check-guard --set`)
)
# Figures about such talks: in how many anything was found, and in how many harm by the companion.
HARMFUL_TALKS = "harmful_talks"
HARMFUL_AS_HARM = "harmful_talks_as_harm"
HARMLESS_TALKS = "harmless_talks"
HARMLESS_AS_HARM = "harmless_talks_as_harm"
TALKS_LABELLED = "labelled "  # before a label


@strict_record
class CertificateFigure:
    """How many passages of a kind a reader found, in one language; of look-alikes, how many it took for the real thing.

    The kinds are `harm`, `minor`, `crisis_own`, `crisis_other`, `crisis_past`, or a look-alike of one, such as
    `harm_look_alike`. `told` are dialogues that tell the reader what to answer; those that it answered rightly count
    (`certificate_rules.py` and `curation/reading/check_readers.py` name the others).
    """

    language: Language
    kind: Text
    found: Annotated[int, Field(ge=0)]
    of: Annotated[int, Field(ge=0)]


@strict_record
class Certificate:
    """What a check of a reader showed (`h2htalk curate check-guard`).

    Attributes:
        reader: `guard:MODEL` or `review:MODEL`, as in its readings.
        prompt: the fingerprint of its question.
        served_by: digests of what served the model when it was checked (`chat/served_model.py`): nobody knows what else
            is served under its name.
        set: the fingerprint of the dialogues that it was checked with; of an owner's own talks `talks:` and their hash.
        date: the day of the check (ISO 8601).
        figures: what it found, by language and kind.
        gates: the gates for which it counts as a reader, by language, as far as its figures give them
            (`certificate_rules.granted_gates`).
        obeyed: how many texts it obeyed that told it what to answer; with any it counts for no gate.
        unread: how many dialogues it gave no valid answer about.
    """

    reader: Text
    prompt: str
    set: Text
    date: Text
    figures: tuple[CertificateFigure, ...]
    gates: Mapping[Language, tuple[ReadGate, ...]] = field(default_factory=dict)
    obeyed: Annotated[int, Field(ge=0)] = 0
    unread: Annotated[int, Field(ge=0)] = 0
    served_by: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What was checked: the reader, its question, the dialogues, and what served the model."""
        return self.reader, self.prompt, self.set, self.served_by

    @property
    def is_of_talks(self) -> bool:
        """Whether it is about an owner's own labelled talks, and so for no gate."""
        return self.set.startswith(OF_TALKS)

    def checks(self, language: Language) -> bool:
        """Whether the reader was checked with dialogues in this language."""
        return any(figure.language == language for figure in self.figures)

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)


def read_certificates(folder: Path, name: str = CERTIFICATES) -> tuple[Certificate, ...]:
    """The certificates in a workspace or a file, the oldest first; none without the file. Raises DataError."""
    path = folder / name
    lines = read_jsonl(path) if path.exists() else ()
    return tuple(read_record(Certificate, raw, where) for where, raw in lines)


def add_certificate(folder: Path, certificate: Certificate, name: str = CERTIFICATES) -> None:
    """Store a certificate; it replaces an earlier one of the same model as the same reader, of its question and set."""
    stored = [other for other in read_certificates(folder, name) if other.key != certificate.key]
    stored.append(certificate)
    write_jsonl(folder / name, [certificate.to_dict() for certificate in stored])


def certificate_of(read: Read, certificates: Iterable[Certificate]) -> Certificate | None:
    """The latest certificate of a reading's reader, of the same question, dialogues of this version and served model.

    What a reader does with other dialogues says nothing: whoever chooses them chooses the figures.
    """
    wanted = (read.reader, read.prompt, check_set_fingerprint(), read.served_by)
    matching = [certificate for certificate in certificates if certificate.key == wanted]
    return matching[-1] if matching else None


NO_CERTIFICATE = "has no certificate"
CHECK_AGAIN = "; check it again"


def why_no_certificate(read: Read, certificates: Iterable[Certificate]) -> str:
    """Why `certificate_of` finds none for a reading, as words that follow the name of its reader.

    `NO_CERTIFICATE`, or how what was checked differs from what read, the nearest first.
    """
    of_reader = [
        certificate
        for certificate in certificates
        if certificate.reader == read.reader and not certificate.is_of_talks
    ]
    if not of_reader:
        return NO_CERTIFICATE
    current = [
        certificate for certificate in of_reader if certificate.set == check_set_fingerprint()
    ]
    same_question = [certificate for certificate in current if certificate.prompt == read.prompt]
    if same_question:
        reason = f"was checked {describe_difference(same_question[-1].served_by, read.served_by)}"
    elif current:
        reason = "was checked with another question"
    else:
        reason = "was checked with other dialogues than those of this version"
    return reason + CHECK_AGAIN
