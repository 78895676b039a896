"""Find content that is no usable conversation: leaked prompts, noise, repetition, another language than declared."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.detect.safety.evidence import Evidence
from h2htalk.detect.safety.text_folding import fold
from h2htalk.errors import MissingExtraError
from h2htalk.extras import SAFETY
from h2htalk.text.contracts.prompt_leakage import find_repeated_run
from h2htalk.text.language_data import pattern_table
from h2htalk.text.parsing.html_text import plain_text

LAYER = "rules"
_PATTERNS = Path(__file__).parent / "rules_data" / "patterns.toml"
LEAST_LETTERS = 2  # a dialogue with fewer letters of the seeker's is too short ("。。。", "1")
ENOUGH_SIGNS = 30  # signs without words from this many on are noise
# From this many bytes on the language of a text is identified: names in a short message look like another language.
LEAST_BYTES = 60
# The least percentage of the declared language in a text, and the percentage in known languages that is sure.
LEAST_PERCENT, SURE_PERCENT = 10, 50
NO_LANGUAGE = 300  # CLD2's score of a text in no language, measured: keyboard mashing 196 to 256, chat from 348 on
# CLD2's codes for dialect and teenagers' spelling of a language, besides its own.
_VARIANTS: Mapping[Language, tuple[str, ...]] = {"en": ("en", "sco"), "zh": ("zh", "zh-Hant")}
_UNREAD = re.compile(
    r"[^\w !-~]+"
)  # control characters are an error in CLD2; emoji hold no language
MOST_HTML = 0.2  # a larger share of a text in HTML tags is noise
REPEATS = 4  # a speaker who sends the same message this often, in at least half of all messages, is no person
LONG, REPETITIVE = (
    400,
    0.06,
)  # from this many bytes on a text is compressed, and below this ratio it is repetitive
# Characters of a message that are read, and of a speaker's messages whose language is identified.
READ, IDENTIFIED = 20_000, 1500


def find_unusable_content(dialogue: Dialogue) -> list[Evidence]:
    """All evidence of the rules in a dialogue; linear in its length."""
    found: list[Evidence] = []
    for at, turn in enumerate(dialogue.messages):
        found += [replace(one, turn=at) for one in find_prompt_leak(turn, dialogue)]
        if turn.role == "companion" and (code := _find_harm(turn.content[:READ])):
            found.append(Evidence(LAYER, code, 1.0, turn=at))
    form = next(_find_unusable_form(dialogue), None)
    return [*found, Evidence(LAYER, form, 1.0)] if form else found


def find_prompt_leak(turn: Turn, dialogue: Dialogue) -> Iterator[Evidence]:
    """Leaked prompts in a message of a dialogue; talk about being a model counts for the companion alone."""
    text = turn.content[:READ]
    folded = fold(text)
    straight = folded.replace("’", "'")
    for name, pattern in pattern_table(_PATTERNS, "leaks").items():
        if (name != "model" or turn.role == "companion") and (match := pattern.search(straight)):
            place = (0, 0) if len(folded) != len(text) else match.span()
            yield Evidence(LAYER, f"prompt_leak.{name}", 1.0, *place)
            return
    system = dialogue.metadata.get("system")
    if turn.role == "companion" and isinstance(system, str) and system.strip():
        # The companion may repeat what the seeker said.
        allowed = "\n".join(
            other.content[:READ] for other in dialogue.messages if other.role != turn.role
        )
        if find_repeated_run(text.splitlines(), dialogue.language, system, allowed) is not None:
            yield Evidence(LAYER, "prompt_leak.system", 1.0)


def _find_harm(text: str) -> str | None:
    """Whether a companion explains a method of self-harm, or encourages it."""
    patterns = pattern_table(_PATTERNS, "harm")
    folded = fold(text).replace("'", "").replace("’", "")
    kinds = (
        ("method", "crisis.method_instructions", 80),
        ("encouraged", "crisis.encouragement", 40),
    )
    for name, category, before in kinds:
        for match in patterns[name].finditer(folded):
            if not patterns["refused"].search(
                folded[max(0, match.start() - before) : match.start()]
            ):
                return category
    return None


def _find_unusable_form(dialogue: Dialogue) -> Iterator[str]:
    """What makes a dialogue unusable as a whole, the plainest first."""
    sides = [
        [turn.content[:READ] for turn in dialogue.messages if turn.role == role]
        for role in ("user", "companion")
    ]
    texts = sides[0] or sides[1]
    letters = sum(sign.isalpha() for text in texts for sign in text)
    if letters < LEAST_LETTERS:
        yield "too_short"
    for side in filter(None, sides):
        _, count = Counter(map(str.strip, side)).most_common(1)[0]
        if count >= REPEATS and 2 * count >= len(side):
            yield "irrelevant.repeated"
    for raw in (text.encode("utf-8", "surrogatepass") for text in texts):
        if len(raw) >= LONG and len(zlib.compress(raw)) / len(raw) < REPETITIVE:
            yield "irrelevant.repeated"
    signs = sum(not (sign.isalpha() or sign.isspace()) for text in texts for sign in text)
    if signs > 3 * letters and signs > ENOUGH_SIGNS:
        yield "irrelevant.noise"
    joined = ["\n".join(side) for side in sides]
    if any("<" in side and len(plain_text(side)) < (1 - MOST_HTML) * len(side) for side in joined):
        yield "irrelevant.noise"
    identified = [
        side[:IDENTIFIED] for side in joined if len(side.encode("utf-8", "replace")) >= LEAST_BYTES
    ]
    for text in identified or ["\n".join(joined)]:
        if category := _identify(text, dialogue.language):
            yield category


def _identify(text: str, language: Language) -> str | None:
    """`wrong_language` for a text in other languages, `irrelevant.noise` for one in none; None where that is unsure."""
    try:
        import pycld2
    except ImportError as error:
        raise MissingExtraError(SAFETY.feature, SAFETY.install) from error
    text = _UNREAD.sub(" ", text)
    if len(text.encode()) < LEAST_BYTES:
        return None
    reliable, _, languages = pycld2.detect(text)
    known = [(code, percent) for _, code, percent, _ in languages if code != "un"]
    if known:
        own = sum(
            percent for code, percent in known if code in _VARIANTS.get(language, (language,))
        )
        sure = reliable or sum(percent for _, percent in known) >= SURE_PERCENT
        return "wrong_language" if sure and own < LEAST_PERCENT else None
    _, _, languages = pycld2.detect(text, hintLanguage=language, bestEffort=True)
    return "irrelevant.noise" if languages[0][3] < NO_LANGUAGE else None
