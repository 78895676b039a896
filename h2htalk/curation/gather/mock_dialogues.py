"""Mock dialogues for examples, tests and measurements, where no real ones are available.

No language model writes them: they are sentences of eight topics in two languages, with random days, places and people.
Every third dialogue holds invented personal data: names from lists, telephone numbers that belong to nobody (US
555-01xx, or Chinese ones with 199-0000), addresses at example.com.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import COMPLEXITIES, Dialogue, Turn
from h2htalk.text.language_data import language_data

VERSION = 1
LICENCE = "CC0-1.0"
PERSONAL_EVERY = 3
_SLOT = re.compile(r"\{([a-z]+)\}")


def mock_dialogues(n: int, seed: int, language: Language | None = None) -> Iterator[Dialogue]:
    """Generate `n` dialogues, `generated-000001` and on: each a function of the seed, its language and its number.

    Without `language` all languages come in turn.
    """
    for row in range(1, n + 1):
        yield _dialogue(row, seed, language or LANGUAGES[(row - 1) % len(LANGUAGES)])


def _dialogue(row: int, seed: int, language: Language) -> Dialogue:
    parts = language_data("curation/gather/mock_dialogues", language)
    rng = random.Random(f"{seed} {language} {row}")
    topic = rng.choice(parts["topic"])
    exchanges = rng.randint(2, 4)
    sentences: dict[str, list[str]] = {
        role: rng.sample(topic[role], exchanges) + rng.sample(parts["shared"][role], 2 * exchanges)
        for role in ("user", "companion")
    }
    joint = find_language(language).joint
    lines: dict[str, list[str]] = {
        role: [joint.join(texts[at::exchanges]) for at in range(exchanges)] for role, texts in sentences.items()
    }
    lines["user"][0] = joint.join([rng.choice(topic["open"]), lines["user"][0]])
    if row % PERSONAL_EVERY == 0:
        at = rng.randrange(exchanges)
        lines["user"][at] = joint.join([lines["user"][at], rng.choice(parts["personal"]["said"])])
    turns = []
    for asked, replied in zip(lines["user"], lines["companion"], strict=True):
        turns.append(Turn("user", _filled(asked, parts, rng, language)))
        turns.append(Turn("companion", _filled(replied, parts, rng, language)))
    metadata = {
        "emotion": topic["emotion"],
        "interaction": topic["interaction"],
        "complexity": COMPLEXITIES[exchanges - 2],
    }
    provenance = {"source": "generated", "row": row}
    return Dialogue(f"generated-{row:06}", language, tuple(turns), provenance, LICENCE, metadata)


def _filled(text: str, parts: Mapping[str, Any], rng: random.Random, language: Language) -> str:
    """Fill the slots of a text at random; a sentence of a language with spaces begins with a capital."""

    def value(match: re.Match[str]) -> str:
        slot = match[1]
        if slot in parts["slots"]:
            return str(rng.choice(parts["slots"][slot]))
        return _personal(slot, parts["personal"], rng)

    filled = _SLOT.sub(value, text)
    if not find_language(language).spaced:
        return filled
    return re.sub(r"(?:^|(?<=[.!?] ))[a-z]", lambda match: match[0].upper(), filled)


def _personal(slot: str, lists: Mapping[str, Any], rng: random.Random) -> str:
    """An invented name, telephone number or e-mail address."""
    given, place = rng.choice(lists["given"]), rng.randrange(len(lists["family"]))
    number = rng.randrange(10_000)
    family, pair = lists["family"][place], number % 100
    values = {"given": given, "family": family, "number": number, "pair": pair}
    values |= {"given_lower": given.lower(), "family_lower": family.lower()}
    if "area" in lists:
        values["area"] = lists["area"][number // 100 % len(lists["area"])]
    if "pinyin" in lists:
        values["pinyin"] = lists["pinyin"][place]
    return str(lists[slot].format(**values))
