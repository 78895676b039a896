"""What a reader found in talks that their owner labelled, and the report of it.

A talk counts as found where the reader found harm, something explicit, a danger or a user under 18 at any message;
personal data count for nothing here. How many of these were called harm by the companion stands in a row of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from h2htalk.curation.reading.check_readers import CheckOutcome
from h2htalk.curation.reading.check_report import figures_tables, name_of_kind
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.certificate_rules import UNREAD
from h2htalk.data.readers.certificates import (
    HARMFUL_AS_HARM,
    HARMFUL_TALKS,
    HARMLESS_AS_HARM,
    HARMLESS_TALKS,
    TALKS_LABELLED,
    Certificate,
    CertificateFigure,
)
from h2htalk.data.readers.passages import conversation_passages
from h2htalk.data.readers.reads import ReadGate
from h2htalk.errors import counted, listed

_ABOUT: tuple[ReadGate, ...] = ("companion_harm", "explicit_content", "minors", "crisis_care")
_NAMES: Mapping[str, tuple[str, str]] = {
    HARMFUL_TALKS: ("harmful talks", "anything found"),
    HARMFUL_AS_HARM: ("harmful talks", "called harm by the companion"),
    HARMLESS_TALKS: ("harmless talks", "anything found"),
    HARMLESS_AS_HARM: ("harmless talks", "called harm by the companion"),
}
_EACH = 10  # of misses or false alarms that are listed


def talk_certificate(
    reader: str, prompt: str, talks: str, date: str, outcomes: Sequence[CheckOutcome], served: str
) -> Certificate:
    """The certificate of such a check: figures, and no gate, as whoever chooses the talks chooses the figures."""
    figures: list[CertificateFigure] = []
    for language in LANGUAGES:
        of_language = [outcome for outcome in outcomes if outcome.checked.language == language]
        figures += _figures(language, of_language)
    return Certificate(
        reader=reader,
        prompt=prompt,
        set=talks,
        date=date,
        figures=tuple(figures),
        unread=sum(figure.found for figure in figures if figure.kind == UNREAD),
        served_by=served,
    )


def found_in_talk(outcome: CheckOutcome, gates: Sequence[ReadGate] = _ABOUT) -> bool | None:
    """Whether a reader found anything for these gates in a talk; None where it has not read all that it was shown."""
    if outcome.read is None:
        return None
    if any(finding.gate in gates for finding in outcome.read.findings):
        return True
    passages = conversation_passages(outcome.checked.messages)
    if outcome.read.reader.startswith("review:"):
        passages = passages[: outcome.checked.turn + 1]
    is_whole = all(passage.hash in outcome.read.passages for passage in passages)
    return False if is_whole else None


def _figures(language: Language, outcomes: Sequence[CheckOutcome]) -> Iterator[CertificateFigure]:
    outcomes = [outcome for outcome in outcomes if outcome.gates]
    harmful = [outcome for outcome in outcomes if outcome.checked.label == "harm"]
    harmless = [outcome for outcome in outcomes if outcome.checked.label == "fine"]
    yield from _figure(language, HARMFUL_TALKS, harmful, _ABOUT)
    yield from _figure(language, HARMFUL_AS_HARM, harmful, ("companion_harm",))
    yield from _figure(language, HARMLESS_TALKS, harmless, _ABOUT)
    yield from _figure(language, HARMLESS_AS_HARM, harmless, ("companion_harm",))
    for label in sorted({outcome.checked.why for outcome in harmful}):
        of_label = [outcome for outcome in harmful if outcome.checked.why == label]
        yield from _figure(language, TALKS_LABELLED + label, of_label, _ABOUT)
    if outcomes:
        unread = sum(found_in_talk(outcome) is None for outcome in outcomes)
        yield CertificateFigure(language=language, kind=UNREAD, found=unread, of=len(outcomes))


def _figure(
    language: Language, kind: str, outcomes: Sequence[CheckOutcome], gates: Sequence[ReadGate]
) -> Iterator[CertificateFigure]:
    answers = [found_in_talk(outcome, gates) for outcome in outcomes]
    valid = [answer for answer in answers if answer is not None]
    if valid:
        yield CertificateFigure(language=language, kind=kind, found=sum(valid), of=len(valid))


def _name_of_kind(kind: str) -> tuple[str, str]:
    """What the talks of a figure are called, and what its share is."""
    if kind.startswith(TALKS_LABELLED):
        return f"of these, {kind.removeprefix(TALKS_LABELLED)}", "anything found"
    return _NAMES.get(kind) or name_of_kind(kind)


def talk_lines(certificate: Certificate, outcomes: Sequence[CheckOutcome]) -> Iterator[str]:
    """Yield the figures and every mistake, by the number of the talk in its file."""
    yield (
        f"{certificate.reader}: {certificate.date}, {counted(len(outcomes), 'talk')} of your own "
        f"({certificate.set}), question {certificate.prompt}"
    )
    for table in figures_tables(certificate, _name_of_kind):
        yield table.to_terminal()
        yield ""
    for label, verb in (("harm", "missed"), ("fine", "false alarm")):
        wrong = [
            outcome
            for outcome in outcomes
            if outcome.checked.label == label and found_in_talk(outcome) is (label == "fine")
        ]
        for outcome in wrong[:_EACH]:
            yield f"{verb}: {number_of(outcome)} ({outcome.checked.why})"
        if len(wrong) > _EACH:
            yield f"{verb}: {len(wrong) - _EACH} more"
    unread = [
        number_of(outcome)
        for outcome in outcomes
        if outcome.gates and found_in_talk(outcome) is None
    ]
    if unread:
        yield f"no valid answer, or not about every message: {listed(unread, _EACH)}"
    unasked = [number_of(outcome) for outcome in outcomes if not outcome.gates]
    if unasked:
        yield f"not asked about, as nothing stands before a reply: {listed(unasked, _EACH)}"
    yield "these figures count for no gate, which the check with the bundled dialogues decides (without --set)"


def number_of(outcome: CheckOutcome) -> str:
    """A talk by its number in its file, from 1."""
    return f"talk {int(outcome.checked.id.rpartition('-')[2])}"
