"""What is no conversation to learn from: adverts, noise, another language than said, and prompts that show through."""

from __future__ import annotations

import re
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.text_folding import fold, is_chinese
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.text.contracts.prompt_leakage import find_repeated_run

LAYER = "rules"
# A dialogue with fewer letters of the seeker's than this says nothing ("。。。", "1").
LEAST_LETTERS = 2
# Letters from which on a text's language can be told, and the share that must be of the language named.
ENOUGH_LETTERS = 30
LEAST_SHARE = {"zh": 0.05, "en": 0.5}
# One message so often, by one speaker, and at least half of what he says: nobody talks like that.
REPEATS = 3
# Characters from which on a text is compressed to find repetition, and the ratio below which it is one.
LONG = 400
REPETITIVE = 0.06
# What is read of one message: enough to tell, little enough for messages of megabytes.
READ = 20_000


def look(dialogue: Dialogue) -> list[Evidence]:
    """Everything that the rules see in a dialogue; linear in its length."""
    found = [
        evidence.of_turn(at)
        for at, turn in enumerate(dialogue.messages)
        for evidence in (*_leaks(turn, dialogue.metadata, dialogue), *_harm_by_companion(turn))
    ]
    return [*found, *_of_whole(dialogue)]


def _leaks(turn: Turn, metadata: Mapping[str, Any], dialogue: Dialogue) -> Iterator[Evidence]:
    """Prompts that show: model talk by the companion alone, the rest by anybody."""
    text = turn.content[:READ]
    folded = fold(text)
    straight = folded.replace("’", "'")
    for category, pattern in _patterns().leaks.items():
        if category == "prompt_leak.model" and turn.role == "user":
            continue
        match = pattern.search(straight)
        if match:
            whole = (0, 0) if len(folded) != len(text) else match.span()
            yield Evidence(LAYER, category, 1.0, *whole)
            return
    system = metadata.get("system")
    if turn.role == "companion" and isinstance(system, str) and system.strip():
        run = find_repeated_run(text.splitlines(), dialogue.language, system, _said_before(dialogue, turn))
        if run is not None:
            yield Evidence(LAYER, "prompt_leak.system", 1.0)


def _said_before(dialogue: Dialogue, turn: Turn) -> str:
    """What the seeker said: the companion may repeat that."""
    return "\n".join(other.content[:READ] for other in dialogue.messages if other.role != turn.role)


def _harm_by_companion(turn: Turn) -> Iterator[Evidence]:
    """A companion that tells how, or that one should."""
    if turn.role != "companion":
        return
    folded = fold(turn.content[:READ]).replace("'", "").replace("’", "")
    for match in _patterns().method.finditer(folded):
        if not _patterns().refused.search(folded[max(0, match.start() - 80) : match.start()]):
            yield Evidence(LAYER, "crisis.method_instructions", 1.0)
            return
    for match in _patterns().encouraged.finditer(folded):
        if not _patterns().refused.search(folded[max(0, match.start() - 40) : match.start()]):
            yield Evidence(LAYER, "crisis.encouragement", 1.0)
            return


def _of_whole(dialogue: Dialogue) -> Iterator[Evidence]:
    spoken = [turn.content[:READ] for turn in dialogue.messages if turn.role == "user"]
    told = spoken or [turn.content[:READ] for turn in dialogue.messages]
    letters = [letter for text in told for letter in text if letter.isalpha()]
    if len(letters) < LEAST_LETTERS:
        yield Evidence(LAYER, "too_short", 1.0)
        return
    if len(letters) >= ENOUGH_LETTERS:
        chinese = sum(map(is_chinese, letters)) / len(letters)
        latin = sum("a" <= letter.lower() <= "z" for letter in letters) / len(letters)
        share = chinese if dialogue.language == "zh" else latin
        if share < LEAST_SHARE[dialogue.language]:
            yield Evidence(LAYER, "wrong_language", round(1 - share, 4))
    for role in ("user", "companion"):
        said = [turn.content.strip() for turn in dialogue.messages if turn.role == role]
        if said:
            _, count = Counter(said).most_common(1)[0]
            if count >= REPEATS and 2 * count >= len(said):
                yield Evidence(LAYER, "irrelevant.repeated", 1.0)
                return
    for text in told:
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) >= LONG and len(zlib.compress(raw)) / len(raw) < REPETITIVE:
            yield Evidence(LAYER, "irrelevant.repeated", 1.0)
            return
    signs = sum(not (letter.isalpha() or letter.isspace()) for text in told for letter in text)
    if signs > 3 * len(letters) and signs > ENOUGH_LETTERS:
        yield Evidence(LAYER, "irrelevant.noise", 1.0)


class _Patterns(NamedTuple):
    """What `rules_data/patterns.toml` says, compiled."""

    leaks: Mapping[str, re.Pattern[str]]
    method: re.Pattern[str]
    encouraged: re.Pattern[str]
    refused: re.Pattern[str]


@cache
def _patterns() -> _Patterns:
    raw = tomllib.loads((Path(__file__).parent / "rules_data/patterns.toml").read_text(encoding="utf-8"))
    leaks = {f"prompt_leak.{name}": re.compile(pattern) for name, pattern in raw["leaks"].items()}
    return _Patterns(leaks, *(re.compile(raw[name]) for name in ("method", "encouraged", "refused")))
