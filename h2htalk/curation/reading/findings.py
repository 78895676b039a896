"""What a reader found at a message, as the findings that a `Read` holds for its gates."""

from __future__ import annotations

from h2htalk.curation.reading.question import MessageFinding
from h2htalk.data.readers.reads import ReadFinding


def read_findings(found: MessageFinding, text: str) -> tuple[ReadFinding, ...]:
    """The findings about a passage, by its hash (empty: about the item as a whole), in the order of the gates.

    Harm counts from `HARMFUL` on. Of a danger `what` begins with whose it is, and when (`own_now: a plan`). Of personal
    data it is empty: a reader may repeat the value. What is in doubt is an unsure finding, whose words of a danger have
    no such beginning.
    """
    findings: list[ReadFinding] = []
    unsure = found.unsure
    if found.harmful or found.harm_in_doubt:
        findings.append(
            ReadFinding(
                gate="companion_harm",
                what=found.harm,
                text=text,
                unsure=unsure or found.harm_in_doubt,
                severity=found.severity,
            )
        )
    if found.explicit:
        findings.append(ReadFinding(gate="explicit_content", text=text, unsure=unsure))
    if found.under_18:
        findings.append(ReadFinding(gate="minors", text=text, unsure=unsure))
    if found.danger != "none":
        danger = f"{found.danger}: {found.danger_what}"
        findings.append(ReadFinding(gate="crisis_care", what=danger, text=text, unsure=unsure))
    elif found.danger_in_doubt:
        findings.append(
            ReadFinding(gate="crisis_care", what=found.danger_what, text=text, unsure=True)
        )
    if found.personal_data:
        findings.append(ReadFinding(gate="personal_data", text=text, unsure=unsure))
    return tuple(findings)
