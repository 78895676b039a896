"""What each model learns from: our own texts, counted more than what the domain gives."""

from __future__ import annotations

from pathlib import Path

from crisis.texts import CRISIS, EVERYDAY, POLITICAL, Text, by_writer, harmless, own, replies

from h2htalk.data.languages import Language

# What one text counts: those of ordinary days are what most messages are like.
CRISIS_WEIGHT, HARMLESS_WEIGHT, OTHERS_HARMLESS_WEIGHT, EVERYDAY_WEIGHT = 1.5, 2.5, 0.5, 2.0
POLITICAL_WEIGHT = 1.5


def gather_talk(language: Language, data: Path) -> list[Text]:
    """Talk of the domain, crises first."""
    told = _written(CRISIS, language, "crisis", CRISIS_WEIGHT)
    ordinary = [
        Text(text, False, _harmless_weight(writer, language), f"own harmless {writer}".strip())
        for writer, written in by_writer(CRISIS, language, "harmless").items()
        for text in written
    ]
    mentions = [
        Text(text, False, 0.25, "own political")
        for kind in ("sensitive", "harmless")
        for text in own(POLITICAL, language, kind)
    ]
    return [*told, *ordinary, *mentions, *harmless(language, data)]


def _written(folder: Path, language: Language, kind: str, weight: float) -> list[Text]:
    lines = (
        (writer, text) for writer, own in by_writer(folder, language, kind).items() for text in own
    )
    found = kind != "harmless"
    name = "own harmless" if kind == "harmless" else "own"
    return [Text(text, found, weight, f"{name} {writer}".strip()) for writer, text in lines]


def _harmless_weight(writer: str, language: Language) -> float:
    if writer in EVERYDAY[language]:
        return EVERYDAY_WEIGHT
    return OTHERS_HARMLESS_WEIGHT if writer else HARMLESS_WEIGHT


def gather(language: Language, data: Path) -> list[Text]:
    """Texts about politics and others, those to be found first."""
    statements = _written(POLITICAL, language, "sensitive", POLITICAL_WEIGHT)
    mentions = _written(POLITICAL, language, "harmless", 1.0)
    everyday = by_writer(CRISIS, language, "harmless")
    ordinary = [
        Text(text, False, 1.0, f"own harmless {one}")
        for one in EVERYDAY[language]
        for text in everyday[one]
    ]
    crises = [Text(text, False, 0.5, "own crisis") for text in own(CRISIS, language, "crisis")]
    talk = [text for text in harmless(language, data) if "cold" not in text.source]
    return [*statements, *mentions, *ordinary, *crises, *talk, *replies(language, data)]
