"""Who has read a release, in numbers, as its facts hold them and its card prints them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from h2htalk.curation.reading.check_report import name_of_kind
from h2htalk.curation.release.content import ReleaseContent
from h2htalk.curation.release.gate_context import GateContext, texts_of_items
from h2htalk.curation.release.read_gates import Untested, read_state
from h2htalk.data.languages import Language, find_language
from h2htalk.data.readers.certificate_rules import granted_gates
from h2htalk.data.readers.certificates import Certificate
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.distributions import wilson_interval


def read_facts(
    content: ReleaseContent, context: GateContext, untested: Sequence[Untested]
) -> dict[str, Any]:
    """How many items each reader has read for each gate, where it counts; when; and what is unread.

    `items`: scenarios and cases; `readers`: name -> the days of its readings, and gate -> items that it read and counts
    for; `unread`: gate -> items, cases among them, and the owner's reason to publish them.
    """
    readers: dict[str, dict[str, Any]] = {}
    number = 0
    for one in texts_of_items(content):
        number += 1
        for read in context.readings.of(one.record.id):
            known = readers.setdefault(
                read.reader, {"first": read.date, "last": read.date, "gates": {}}
            )
            known["first"] = min(known["first"], read.date)
            known["last"] = max(known["last"], read.date)
        for gate in READ_GATES:
            for reader in read_state(gate, one, context.readings).readers:
                of_gate = readers[reader]["gates"]
                of_gate[gate] = of_gate.get(gate, 0) + 1
    unread: dict[str, dict[str, Any]] = {}
    for of_gate in untested:
        unread[of_gate.gate] = {
            "items": len(of_gate.items),
            "cases": of_gate.cases,
            "reason": of_gate.allowed,
        }
    return {"items": number, "readers": dict(sorted(readers.items())), "unread": unread}


def cases_among(unread: Mapping[str, Any]) -> str:
    """How many of the unread items of a gate are cases, as the card says it; nothing without one."""
    cases = unread.get("cases", 0)
    return f" ({cases:,} of them {'a case' if cases == 1 else 'cases'})" if cases else ""


def certificate_rows(certificates: Sequence[Certificate]) -> Iterator[dict[str, str]]:
    """What the card says of the checks of readers: a row a reader, language and kind, with a 95 % interval."""
    for certificate in certificates:
        counts: dict[tuple[Language, str], list[int]] = defaultdict(lambda: [0, 0])
        for figure in certificate.figures:
            total = counts[figure.language, figure.kind]
            total[0] += figure.found
            total[1] += figure.of
        for (language, kind), (found, of) in counts.items():
            low, high = wilson_interval(found / of, of) if of else (0.0, 1.0)
            dialogues, share = name_of_kind(kind)
            yield {
                "reader": certificate.reader,
                "date": certificate.date,
                "language": find_language(language).name,
                "dialogues": dialogues,
                "share": share,
                "found": f"{found:,} of {of:,}",
                "interval": f"{low:.2f} to {high:.2f}",
            }


def counted_rows(certificates: Sequence[Certificate]) -> Iterator[dict[str, str]]:
    """For which gates each certificate counts: a row a reader and language."""
    for certificate in certificates:
        for language in dict.fromkeys(figure.language for figure in certificate.figures):
            granted = granted_gates(certificate, language)
            yield {
                "reader": certificate.reader,
                "language": find_language(language).name,
                "gates": ", ".join(granted) or "no gate",
            }
