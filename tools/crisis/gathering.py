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
    told = [
        Text(text, True, CRISIS_WEIGHT, f"own {writer}".strip())
        for writer, written in by_writer(CRISIS, language, "crisis").items()
        for text in written
    ]
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


def _harmless_weight(writer: str, language: Language) -> float:
    if writer in EVERYDAY[language]:
        return EVERYDAY_WEIGHT
    return OTHERS_HARMLESS_WEIGHT if writer else HARMLESS_WEIGHT


def gather(language: Language, data: Path) -> list[Text]:
    """Texts about politics and others, those to be found first."""
    statements = [
        Text(text, True, POLITICAL_WEIGHT, f"own {writer}".strip())
        for writer, written in by_writer(POLITICAL, language, "sensitive").items()
        for text in written
    ]
    mentions = [
        Text(text, False, 1.0, f"own harmless {writer}".strip())
        for writer, written in by_writer(POLITICAL, language, "harmless").items()
        for text in written
    ]
    everyday = by_writer(CRISIS, language, "harmless")
    ordinary = [
        Text(text, False, 1.0, f"own harmless {writer}") for writer in EVERYDAY[language] for text in everyday[writer]
    ]
    crises = [Text(text, False, 0.5, "own crisis") for text in own(CRISIS, language, "crisis")]
    talk = [text for text in harmless(language, data) if "cold" not in text.source]
    return [*statements, *mentions, *ordinary, *crises, *talk, *replies(language, data)]
