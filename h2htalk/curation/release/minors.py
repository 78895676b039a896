"""The readings by which a person who is under 18 in one dialogue is so in the items of their other dialogues.

A guard, or the people of a sample, may learn the age in a dialogue of which the release holds nothing, also in one that
was removed for it. Whose dialogue it is, is known where the source names the `person`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from h2htalk.curation.stage_folder import AUDIT
from h2htalk.curation.stages import FIRST_STAGE
from h2htalk.curation.workspace import Workspace
from h2htalk.data.readers.item_reads import ItemReads
from h2htalk.data.readers.reads import Read, read_read

GATE = "minors"
READ = "read"  # the key of a reading in an audit record
SAFETY = "safety"
TOLD_IN_ANOTHER = "told in another dialogue of the same person"


@dataclass(frozen=True, slots=True)
class MinorRead:
    """A reading that found its user under 18, and the dialogue that it is of."""

    dialogue: str
    read: Read

    def for_item(self, item: str) -> Read:
        """The reading as one of an item of another dialogue: it has read nothing there, and knows the age."""
        findings = [
            replace(one, what=TOLD_IN_ANOTHER, text="")
            for one in self.read.findings
            if one.gate == GATE
        ]
        return replace(self.read, item=item, passages=(), findings=tuple(dict.fromkeys(findings)))


def minors_by_person(
    workspace: Workspace, of_people: Mapping[str, ItemReads]
) -> dict[str, tuple[MinorRead, ...]]:
    """The readings that found somebody under 18, by the person. `of_people`: those by people, by dialogue."""
    found: dict[str, list[Read]] = {}
    stage = workspace.stage(SAFETY)
    for part in stage.parts():
        for record in stage.part_records(part, AUDIT):
            # Most readings found nobody: they are not checked here.
            if GATE in _gates_of(record.get(READ)):
                name = str(record["id"])
                found.setdefault(name, []).append(
                    read_read(record[READ], f"{stage.file(AUDIT, part)}: {name}")
                )
    for name, line in of_people.items():
        about_age = [
            read for read in line.reads if any(finding.gate == GATE for finding in read.findings)
        ]
        if about_age:
            found.setdefault(name, []).extend(about_age)
    by_person: dict[str, list[MinorRead]] = {}
    for name, person in _persons_of(workspace, found).items():
        reads_of_person = [MinorRead(dialogue=name, read=read) for read in found[name]]
        by_person.setdefault(person, []).extend(reads_of_person)
    return {person: tuple(reads) for person, reads in by_person.items()}


def _gates_of(raw: object) -> set[str]:
    """The gates for which a stored reading, not yet checked, found anything."""
    findings = raw.get("findings") if isinstance(raw, Mapping) else None
    return {str(finding.get("gate")) for finding in findings or () if isinstance(finding, Mapping)}


def _persons_of(workspace: Workspace, dialogues: Mapping[str, object]) -> dict[str, str]:
    """Whose the dialogues are, as far as their source names the person."""
    persons: dict[str, str] = {}
    if not dialogues:
        return persons
    # A dialogue that safety removed without its text stands in the first stage alone.
    for stage in (workspace.stage(SAFETY), workspace.stage(FIRST_STAGE)):
        for record in stage.records():
            name = str(record["id"])
            person = record.get("provenance", {}).get("person")
            if person and name in dialogues:
                persons[name] = str(person)
    return persons
