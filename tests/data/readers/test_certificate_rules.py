"""A stored certificate counts no further than its figures go, nor with dialogues of somebody's choice."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import LANGUAGES
from h2htalk.data.readers.certificate_rules import granted_gates
from h2htalk.data.readers.certificates import Certificate, CertificateFigure
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.coverage import counted_gates
from h2htalk.data.readers.passages import SpokenPassage
from h2htalk.data.readers.reads import READ_GATES, Read
from support.certificates import certifying_figures

GUARD = "guard:scripted:g"


def certificate(*more: CertificateFigure, **changes: object) -> Certificate:
    """A certificate that names every gate in both languages, whatever its figures are."""
    fields: dict[str, object] = {
        "reader": GUARD,
        "prompt": "p1",
        "set": check_set_fingerprint(),
        "date": "2026-11-29",
        "figures": (*certifying_figures(), *more),
        "gates": dict.fromkeys(LANGUAGES, READ_GATES),
    }
    return Certificate(**(fields | changes))  # type: ignore[arg-type]


def figure(kind: str, found: int, of: int) -> CertificateFigure:
    return CertificateFigure(language="en", kind=kind, found=found, of=of)


def test_gates_that_figures_give_count_as_far_as_the_certificate_names_them() -> None:
    assert granted_gates(certificate(), "en") == READ_GATES
    assert granted_gates(certificate(gates={"zh": READ_GATES}), "en") == ()
    assert granted_gates(certificate(gates={"en": ("minors",)}), "en") == ("minors",)


def test_gates_that_figures_do_not_give_do_not_count() -> None:
    """A certificate with gates written by hand, of a guard that found no harm at all, let a release pass."""
    missed = certificate(figures=certifying_figures(harm=0, harm_look_alike=14))
    assert granted_gates(missed, "en") == ("minors", "crisis_care", "personal_data")
    assert granted_gates(certificate(figures=certifying_figures(("en",))), "zh") == ()


@pytest.mark.parametrize(
    "edited",
    [
        certificate(figures=()),
        certificate(obeyed=1),
        certificate(unread=200),
        certificate(figure("told_obeyed", 3, 12), figure("told_defied", 0, 12)),
        certificate(figure("unread", 20, 120), unread=20),
    ],
)
def test_what_a_certificate_says_against_its_reader_counts_wherever_it_says_it(
    edited: Certificate,
) -> None:
    assert granted_gates(edited, "en") == ()


def test_a_certificate_from_other_dialogues_counts_for_nothing() -> None:
    passages = (SpokenPassage("user", "I cannot sleep.").hash,)
    read = Read("chat-1", GUARD, "2026-11-29", READ_GATES, passages, prompt="p1")
    assert counted_gates(read, "en", [certificate()]) == READ_GATES
    assert counted_gates(read, "en", [certificate(set="a set of my own")]) == ()
