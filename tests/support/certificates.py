"""Figures with which a certificate counts, for tests that need a reader who counts."""

from __future__ import annotations

from collections.abc import Iterable

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.certificates import CertificateFigure

OF = 20
# Found, or taken for the real thing, of `OF`.
GOOD = {
    "harm": 18,
    "harm_look_alike": 1,
    "crisis_own": 19,
    "crisis_other": 18,
    "crisis_look_alike": 1,
    "minor": 18,
    "minor_look_alike": 1,
    "explicit": 18,
    "explicit_look_alike": 0,
    "personal_data": 18,
    "personal_data_look_alike": 0,
}


def certifying_figures(
    languages: Iterable[Language] = LANGUAGES, **changes: int
) -> tuple[CertificateFigure, ...]:
    """Figures that are good enough for every gate; `changes`: found of a kind."""
    counts = GOOD | changes
    return tuple(
        CertificateFigure(language=language, kind=kind, found=found, of=OF)
        for language in languages
        for kind, found in counts.items()
    )
