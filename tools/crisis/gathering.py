"""What each model learns from: our own texts, counted more than what the domain gives."""

from __future__ import annotations

from pathlib import Path

from crisis.texts import CRISIS, EVERYDAY, POLITICAL, Text, by_writer, harmless, insulted, own, replies

from h2htalk.data.languages import Language

TASKS = ("crisis", "political")
# What one text counts: writers who are at home in harmless look-alikes must not outweigh the talk of the domain;
# those of ordinary days are what most messages are like.
CRISIS_WEIGHT, HARMLESS_WEIGHT, OTHERS_HARMLESS_WEIGHT, EVERYDAY_WEIGHT = 1.5, 2.5, 0.5, 2.0
POLITICAL_WEIGHT = 1.5


def gather(task: str, language: Language, data: Path) -> list[Text]:
    """All texts of a task, those to be found first."""
    return _crisis(language, data) if task == "crisis" else _political(language, data)


def _crisis(language: Language, data: Path) -> list[Text]:
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
    # What looks like a question about means, a child, grooming or a threat is no crisis either.
    ordinary += [
        Text(text, False, OTHERS_HARMLESS_WEIGHT, f"own near {writer}")
        for writer, written in by_writer(CRISIS, language, "near").items()
        for text in written
    ]
    mentions = [
        Text(text, False, 0.25, "own political")
        for kind in ("sensitive", "harmless")
        for text in own(POLITICAL, language, kind)
    ]
    return [*told, *insulted(told, language), *ordinary, *mentions, *harmless(language, data)]


def _harmless_weight(writer: str, language: Language) -> float:
    if writer in EVERYDAY[language]:
        return EVERYDAY_WEIGHT
    return OTHERS_HARMLESS_WEIGHT if writer else HARMLESS_WEIGHT


def _political(language: Language, data: Path) -> list[Text]:
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
