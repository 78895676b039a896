"""Find prompt leakage in an answer: instruction text of the prompt, or sentences about the task.

With the prompt given, an answer leaks when it repeats a run of it. Marker phrases of the kinds found in
the original benchmark's references (refusals over the character setting, "改写后：", length limits in
parentheses, template tokens) are leaks with or without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

from h2htalk.data.languages import Language, find_language
from h2htalk.text.counting import language_units
from h2htalk.text.language_data import read_data

_SENTENCE = re.compile(r"[\n。！？!?]+|\.\s")
# A telephone number: the prompt asks to name the help line that it gives.
_PHONE = re.compile(
    r"(?<![\d:])(?:\d{3,}|\d{2,}(?:[ -]\d{2,})+|\d(?:-\d){2,})(?![\d:])(?!\s*(?:words|characters|个?汉?字))"
)

# Words that the prompt suggests: `ask kindly: "Are you safe right now?"`.
_QUOTATION = re.compile(r"\"[^\"\n]{1,120}\"|“[^“”\n]{1,120}”|「[^「」\n]{1,60}」")

_BREAK = "|"


def find_repeated_run(
    segments: Sequence[str], language: Language, prompt: str, allowed: str
) -> str | None:
    """Find the first run of the prompt that a segment repeats and that is not in `allowed`, or None.

    Args:
        segments: the answer, in pieces; a run does not cross two of them.
        prompt: the text that was sent as instructions.
        allowed: what may be repeated: the scenario's material, the persona's description.
    """
    length = find_language(language).repeated_run
    # A whole run always holds a half one that starts at a multiple: few to look up.
    half = length // 2
    source = _normalized(prompt, language)
    excuse: str | None = None
    for segment in segments:
        pieces = _pieces(segment, language)
        halves = (pieces[start : start + half] for start in range(0, len(pieces) - half + 1, half))
        if not any(_join(run, language) in source for run in halves):
            continue
        for start in range(len(pieces) - length + 1):
            run = _join(pieces[start : start + length], language)
            if run not in source:
                continue
            if excuse is None:
                excuse = _join(_pieces(allowed, language), language)
            if run not in excuse:
                return run.strip()
    return None


def find_marker(text: str, allowed: str) -> str | None:
    """Find the first phrase about the task that is not in `allowed`."""
    lowered = text.lower()
    for needles, pattern in _markers():
        if any(needle in lowered for needle in needles):
            match = pattern.search(text)
            if match is not None and match[0] not in allowed:
                return match[0].strip()
    return None


def _pieces(text: str, language: Language) -> list[str]:
    return language_units(text.lower().replace("’", "'"), language)


def _join(pieces: Iterable[str], language: Language) -> str:
    joint = find_language(language).joint
    return f"{joint}{joint.join(pieces)}{joint}"


# A run has a few prompts a language and subtask, or one a scenario where the prompt holds its material; then nearly
# all their lines are equal.
@lru_cache(maxsize=256)
def _normalized(prompt: str, language: Language) -> str:
    """Join the units of a prompt into one string."""
    lines = [_normalized_line(line, language) for line in prompt.splitlines()]
    return _join(filter(None, lines), language)


@lru_cache(maxsize=2048)
def _normalized_line(line: str, language: Language) -> str:
    """Join the units of a line; what may be repeated (quotations, sentences with a telephone number) is a break."""
    joint = find_language(language).joint
    units = []
    for sentence in _SENTENCE.split(_QUOTATION.sub(f"\n{_BREAK}\n", line)):
        if sentence == _BREAK or _PHONE.search(sentence):
            units.append(_BREAK)
        else:
            units += _pieces(sentence, language)
    return joint.join(units)


@cache
def _markers() -> tuple[tuple[list[str], re.Pattern[str]], ...]:
    """The phrases about the task: needles and pattern of each."""
    table = read_data(Path(__file__).with_name("prompt_markers.toml"))
    markers = []
    for row in table["markers"]:
        pattern = row["pattern"].replace("{ROLE}", table["ROLE"]).replace("{WORK}", table["WORK"])
        markers.append((row["needles"], re.compile(pattern, re.IGNORECASE | re.MULTILINE)))
    return tuple(markers)
