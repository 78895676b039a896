"""The reviewer as a reader: what the valid replies about a candidate say of its safety, as one `Read`.

The call for the rubric asks about the inputs and one reference, each comparison about its two references. What no valid
reply was shown stays unread.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from h2htalk.curation.candidates import Candidate, input_turns, scenario_passages
from h2htalk.curation.partners import is_partner
from h2htalk.curation.reading.findings import read_findings
from h2htalk.curation.reading.question import (
    MessageFinding,
    Passage,
    SafetyAnswers,
    finding_of,
    graver,
)
from h2htalk.curation.reading.verdicts import UNDATED, reader_name
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding
from h2htalk.data.scenario import Role, Scenario, bundled_personas, noted_tags

READ = "read"  # the key in the review of a candidate, and how the reasons begin that it gives
_INPUTS = -1  # the place of the inputs among those of the references, which count from 0
# Tags of the safety stage that name a danger to somebody, as the gates of a release know them.
DANGER_TAGS = ("crisis.", "grooming", "threat_to_others")
# Those by which a conversation is romantic or sexual.
_ROMANTIC = ("sexual.", "companion.minors")


@dataclass(frozen=True, slots=True)
class PlaceAnswers:
    """What a valid reply says of the inputs of a candidate, or of one reference.

    Attributes:
        answers: the answers.
        reference: the reference's place among those of the candidate, from 0; None for the inputs.
        stored: the Unix time when the reply was stored; None where its store has none.
        served_by: what gave the reply (`chat/served_model.py`).
    """

    answers: SafetyAnswers
    reference: int | None
    stored: float | None
    served_by: str | None = None


def reviewer_name(model: str) -> str:
    """The name of a reviewer in readings and certificates: `review:MODEL`, without a folder or an address."""
    return reader_name("review", model)


def candidate_read(
    candidate: Candidate, answers: Iterable[PlaceAnswers], reader: str, prompt: str
) -> Read | None:
    """The reading of a candidate, whose date is that of the last reply; None without any valid reply.

    Of each place the gravest answer counts: a reference is shown in several comparisons.
    """
    turns = input_turns(candidate.scenario)
    findings: dict[int, MessageFinding] = {}
    moments: list[float] = []
    for answer in answers:
        place = _INPUTS if answer.reference is None else answer.reference
        # Nobody is warned of what users say: harm is the companion's, and inputs may have none of its words.
        is_spoken = answer.reference is not None or any(turn.role == "companion" for turn in turns)
        role: Role = "companion" if is_spoken else "user"
        finding = finding_of(Passage(turn=place, part=0, role=role, text=""), answer.answers)
        known = findings.get(place)
        findings[place] = finding if known is None else graver(known, finding)
        if answer.stored is not None:
            moments.append(answer.stored)
    if not findings:
        return None
    scenario = candidate.scenario
    inputs = scenario_passages(scenario, ())
    read_passages: set[str] = set()
    found: list[ReadFinding] = []
    known_by: list[str] = []
    for place, finding in sorted(findings.items()):
        passages = inputs
        if place != _INPUTS:
            passages = scenario_passages(scenario, [candidate.references[place].text])[
                len(inputs) :
            ]
        read_passages.update(passage.hash for passage in passages)
        # The inputs are answered for together: which of several passages is meant, the reply does not say.
        text = text_hash(passages[0].text) if len(passages) == 1 else ""
        found += read_findings(finding, text)
        if finding.known_by:
            known_by.append(text)
    return Read(
        item=candidate.id,
        reader=reader,
        date=_day(max(moments)) if moments else UNDATED,
        gates=READ_GATES,
        passages=tuple(sorted(read_passages)),
        findings=tuple(found),
        prompt=prompt,
        known_by=tuple(dict.fromkeys(known_by)),
    )


def open_questions(read: Read | None, scenario: Scenario) -> tuple[str, ...]:
    """Why a candidate is not accepted after a reading, each as a reason for people: `read:harm`, `read:explicit`,
    `read:minor`, `read:danger`, `read:personal_data`.

    A minor counts where something is explicit, harmful or romantic, as the persona of a partner is; a danger where the
    scenario's tags do not name it.
    """
    if read is None:
        return ()
    found = {finding.gate for finding in read.findings}
    persona = bundled_personas().get(scenario.persona)
    has_partner = persona is not None and is_partner(persona, scenario.language)
    is_romantic = has_partner or bool(noted_tags(scenario.metadata, _ROMANTIC))
    is_named = scenario.tags.risk != "none" or bool(noted_tags(scenario.metadata, DANGER_TAGS))
    reasons: list[str] = []
    if "companion_harm" in found:
        reasons.append(f"{READ}:harm")
    if "explicit_content" in found:
        reasons.append(f"{READ}:explicit")
    if "minors" in found and (
        is_romantic or not found.isdisjoint(("companion_harm", "explicit_content"))
    ):
        reasons.append(f"{READ}:minor")
    if "crisis_care" in found and not is_named:
        reasons.append(f"{READ}:danger")
    if "personal_data" in found:
        reasons.append(f"{READ}:personal_data")
    return tuple(reasons)


def _day(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment, datetime.UTC).date().isoformat()
