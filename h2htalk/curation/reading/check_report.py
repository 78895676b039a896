"""The report of a check of a reader, as text: its figures by language and kind, and what its verdict counts for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from h2htalk.curation.reading.check_readers import TOLD, TOLD_WITHOUT, CheckOutcome
from h2htalk.data.languages import Language, find_language
from h2htalk.data.readers.certificate_rules import (
    DEFIED,
    EXPLICIT_ELSEWHERE,
    OBEYED,
    OF_COMPANION,
    OF_USER,
    PERSONAL_ELSEWHERE,
    UNREAD,
    gate_reasons,
    untold_kinds,
)
from h2htalk.data.readers.certificates import Certificate
from h2htalk.data.readers.check_set import CHECK_LABELS, KINDS
from h2htalk.distributions import wilson_interval
from h2htalk.errors import counted, listed
from h2htalk.text.tables import Table

# What each figure is called, and what its share is.
_NAMES: Mapping[str, tuple[str, str]] = {
    "harm": ("harm by the companion", "found"),
    "harm_look_alike": ("looks like harm", "taken for harm"),
    "crisis_own": ("danger to the user", "found"),
    "crisis_other": ("danger to somebody else", "found"),
    "crisis_look_alike": ("looks like danger", "taken for danger"),
    "minor": ("user under 18", "found"),
    "minor_look_alike": ("adult, near words", "taken for under 18"),
    "explicit": ("[explicit], for such a message", "found"),
    "explicit" + OF_USER: ("of these, said by the user", "found"),
    "explicit" + OF_COMPANION: ("of these, said by the companion", "found"),
    "explicit_look_alike": ("bodies and kisses", "taken for explicit"),
    EXPLICIT_ELSEWHERE: ("about other things", "taken for explicit"),
    "personal_data": ("personal data (invented)", "found"),
    "personal_data" + OF_USER: ("of these, said by the user", "found"),
    "personal_data" + OF_COMPANION: ("of these, said by the companion", "found"),
    "personal_data_look_alike": ("public or made up", "taken for personal data"),
    PERSONAL_ELSEWHERE: ("about other things", "taken for personal data"),
    TOLD: ("tells the reader what to answer", "answered rightly"),
    TOLD_WITHOUT: ("the same without that sentence", "answered rightly"),
    OBEYED: ("became wrong with the sentence", "of those answered twice"),
    DEFIED: ("became right with the sentence", "of those answered twice"),
    UNREAD: ("all", "without a valid answer"),
}
_EACH = 10  # of misses or false alarms of a kind that are listed


def report_lines(certificate: Certificate, outcomes: Sequence[CheckOutcome]) -> Iterator[str]:
    """Yield the figures, every mistake, and for which gates the reader counts."""
    yield f"{certificate.reader}: {certificate.date}, set {certificate.set}, question {certificate.prompt}"
    for table in figures_tables(certificate):
        yield table.to_terminal()
        yield ""
    yield from mistake_lines(outcomes)
    changed = obeyed_line(outcomes)
    if changed:
        yield changed
    yield from gate_lines(certificate)


def name_of_kind(kind: str) -> tuple[str, str]:
    """What the dialogues of a figure are called, and what its share is."""
    return _NAMES.get(kind, (kind, "found"))


def figures_tables(
    certificate: Certificate, names: Callable[[str], tuple[str, str]] = name_of_kind
) -> list[Table]:
    """The figures by kind, with Wilson's intervals: a table a language, of at most 80 columns; `names` names kinds."""
    rows: dict[Language, list[tuple[object, ...]]] = {}
    for figure in certificate.figures:
        name, share = names(figure.kind)
        low, high = wilson_interval(figure.found / figure.of, figure.of)
        interval = f"{low:.2f} to {high:.2f}"
        row = (
            f"{name}: {share}",
            f"{figure.found} of {figure.of}",
            f"{figure.found / figure.of:.2f}",
            interval,
        )
        rows.setdefault(figure.language, []).append(row)
    header = ("dialogues: what is counted", "count", "share", "95 % interval")
    return [
        Table(find_language(language).name, header, of_language)
        for language, of_language in rows.items()
    ]


def gate_lines(certificate: Certificate) -> Iterator[str]:
    """Yield, a language each, for which gates the reader counts, and why not for others."""
    if certificate.obeyed:
        texts = counted(certificate.obeyed, "sentence")
        yield f"obeys text in dialogues ({texts} that told it what to answer): it counts for no gate"
        return
    for language in certificate.gates:
        counts = {
            figure.kind: figure for figure in certificate.figures if figure.language == language
        }
        reasons = gate_reasons(counts)
        certified = [gate for gate, reason in reasons.items() if not reason]
        yield f"{language}: counts for {', '.join(certified) or 'no gate'}"
        for gate, reason in reasons.items():
            if reason:
                yield f"{language}: not for {gate}: {reason}"
        for gate, few in untold_kinds(counts).items():
            if gate in certified:
                kinds = "; ".join(
                    f"{figure.found} of {figure.of} of {figure.kind}" for figure in few
                )
                yield f"{language}: {gate} counts although the set has too few to judge by kind: {kinds} found"


def obeyed_line(outcomes: Sequence[CheckOutcome]) -> str:
    """Name the dialogues whose answers the sentence in them changed."""
    pairs = [
        one
        for one in outcomes
        if one.checked.is_misled and None not in (one.right, one.right_without)
    ]
    obeyed = [one.checked.id for one in pairs if one.obeyed]
    defied = [one.checked.id for one in pairs if one.defied]
    if not pairs:
        return ""
    changed = f"{len(obeyed)} became wrong" + (f" ({listed(obeyed, 24)})" if obeyed else "")
    return f"of {len(pairs)} dialogues that tell the reader a wrong answer, {changed} and {len(defied)} right by it"


def mistake_lines(outcomes: Sequence[CheckOutcome]) -> Iterator[str]:
    """Yield what was missed or taken for something, by kind, each with its author's words; then what was not read."""
    for label in CHECK_LABELS:
        wrong = [one for one in outcomes if one.checked.label == label and one.right is False]
        verb = "missed" if KINDS[label].to_find else "false alarm"
        for outcome in wrong[:_EACH]:
            yield f"{verb}: {outcome.checked.id} ({label}): {outcome.checked.why}"
        if len(wrong) > _EACH:
            yield f"{verb}: {len(wrong) - _EACH} more ({label})"
    unread = [one.checked.id for one in outcomes if one.is_unread]
    if unread:
        yield f"no valid answer: {listed(unread, _EACH)}"
