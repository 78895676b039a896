"""Dialogues generated from parts, where no real ones are at hand: for examples, tests and measurements.

Not a language model's: sentences of eight topics in two languages, with drawn days, places and people. Every third
dialogue holds invented personal data: names put together from lists, telephone numbers of ranges that nobody has
(US 555-01xx) or that begin 199-0000, addresses at example.com.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.scenario import COMPLEXITIES

VERSION = 1
LICENCE = "CC0-1.0"
PERSONAL_EVERY = 3
_AREAS = (206, 212, 303, 312, 404, 415, 512, 617, 702, 808)
_SLOT = re.compile(r"\{([a-z]+)\}")


def generated(n: int, seed: int, language: Language | None = None) -> Iterator[Dialogue]:
    """`n` dialogues, `generated-000001` and on: each a function of the seed, its language and its number alone.

    Args:
        n: how many, 0 or more.
        seed: any whole number.
        language: of all of them; None takes English and Chinese in turn.
    """
    for row in range(1, n + 1):
        yield _dialogue(row, seed, language or LANGUAGES[(row - 1) % len(LANGUAGES)])


@cache
def _parts(language: Language) -> Mapping[str, Any]:
    path = files("h2htalk.curation.gather") / f"mock_dialogues_{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _dialogue(row: int, seed: int, language: Language) -> Dialogue:
    parts = _parts(language)
    draw = random.Random(f"{seed} {language} {row}")
    topic = draw.choice(parts["topic"])
    exchanges = draw.randint(2, 4)
    said: dict[str, list[str]] = {
        role: draw.sample(topic[role], exchanges) + draw.sample(parts["shared"][role], 2 * exchanges)
        for role in ("user", "companion")
    }
    glue = find_language(language).joint
    lines: dict[str, list[str]] = {
        role: [glue.join(texts[at::exchanges]) for at in range(exchanges)] for role, texts in said.items()
    }
    lines["user"][0] = glue.join([draw.choice(topic["open"]), lines["user"][0]])
    if row % PERSONAL_EVERY == 0:
        at = draw.randrange(exchanges)
        lines["user"][at] = glue.join([lines["user"][at], draw.choice(parts["personal"]["said"])])
    turns = []
    for heard, answered in zip(lines["user"], lines["companion"], strict=True):
        turns.append(Turn("user", _filled(heard, parts, draw, language)))
        turns.append(Turn("companion", _filled(answered, parts, draw, language)))
    return Dialogue(
        f"generated-{row:06}",
        language,
        tuple(turns),
        {"source": "generated", "row": row},
        LICENCE,
        {
            "emotion": topic["emotion"],
            "interaction": topic["interaction"],
            "complexity": COMPLEXITIES[exchanges - 2],
        },
    )


def _filled(text: str, parts: Mapping[str, Any], draw: random.Random, language: Language) -> str:
    """The text with its slots drawn; an English sentence begins with a capital."""

    def value(match: re.Match[str]) -> str:
        slot = match[1]
        if slot in parts["slots"]:
            return str(draw.choice(parts["slots"][slot]))
        return _personal(slot, parts["personal"], draw, language)

    filled = _SLOT.sub(value, text)
    if not find_language(language).spaced:
        return filled
    return re.sub(r"(?:^|(?<=[.!?] ))[a-z]", lambda match: match[0].upper(), filled)


def _personal(slot: str, lists: Mapping[str, Any], draw: random.Random, language: Language) -> str:
    """An invented name, telephone number or e-mail address."""
    given, family = draw.choice(lists["given"]), draw.randrange(len(lists["family"]))
    number = draw.randrange(10000)
    if language == "zh":
        return {
            "name": f"{lists['family'][family]}{given}",
            "phone": f"1990000{number:04}",
            "email": f"{lists['pinyin'][family]}{number:04}@example.com",
        }[slot]
    area = _AREAS[number // 100 % len(_AREAS)]
    return {
        "name": f"{given} {lists['family'][family]}",
        "phone": f"({area}) 555-01{number % 100:02}",
        "email": f"{given.lower()}.{lists['family'][family].lower()}@example.com",
    }[slot]
