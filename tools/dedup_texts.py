"""Dialogues to measure dedup on: unrelated ones, copies with edits, and what looks alike but is not."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path

from make_synthetic_split import WORDS, Writer

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn

LENGTHS = (20, 40, 80, 160, 400, 1000, 2000)
KINDS = ("characters", "words", "mixed")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HAN = "的一是了我不人在他有这个上们来到时大地为子中你说生国年着就那和要她出也得里后自以会家可下而过天去能"


def edited(text: str, share: float, kind: str, language: Language, rng: random.Random) -> str:
    """A text with a share (0 to 1) of its characters or words substituted, deleted or followed by a new one.

    `mixed`: half the share in words, half in characters, and case and punctuation changed besides.
    """
    if kind == "mixed":
        text = edited(text, share / 2, "words", language, rng)
        text = edited(text, share / 2, "characters", language, rng)
        return _other_marks(text, share, rng)
    units = list(text) if kind == "characters" else _words(text, language)
    places = [place for place, unit in enumerate(units) if unit.strip() and unit != "\n"]
    for place in rng.sample(places, round(share * len(places))):
        new = _new_unit(kind, language, rng)
        units[place] = rng.choice((new, "", units[place] + new))
    return "".join(units) if "".join(units).strip() else text


def _other_marks(text: str, share: float, rng: random.Random) -> str:
    swaps = {".": "!", ",": ";", "。": "！", "，": ",", "?": "??", "？": "?"}
    return "".join(
        swaps.get(c, c.swapcase() if c.isascii() else c) if rng.random() < 2 * share else c
        for c in text
    )


def _words(text: str, language: Language) -> list[str]:
    """Words with the space after them; in Chinese pairs of characters stand for words."""
    return re.findall(
        r"\S+\s*" if language == "en" else r"[\u4e00-\u9fff]{1,2}|[^\u4e00-\u9fff]", text
    )


def _new_unit(kind: str, language: Language, rng: random.Random) -> str:
    if language == "zh":
        return "".join(rng.choices(_HAN, k=1 if kind == "characters" else 2))
    if kind == "characters":
        return rng.choice(_LETTERS)
    return "".join(rng.choices(_LETTERS, k=rng.randint(2, 8))) + " "


def copy_of(dialogue: Dialogue, share: float, kind: str, rng: random.Random) -> Dialogue:
    """A near duplicate: every message edited; its id begins with `copy-`."""
    turns = tuple(
        Turn(one.role, edited(one.content, share, kind, dialogue.language, rng))
        for one in dialogue.messages
    )
    return Dialogue(f"copy-{dialogue.id}", dialogue.language, turns)


# --- Unrelated texts --------------------------------------------------------------------------------------------


def read_pool(data: Path | None, language: Language, rng: random.Random) -> Iterator[str]:
    """Sentences without an end, none twice: those of public dialogues, or generated ones."""
    sentences = list(dict.fromkeys(_public(data, language))) if data is not None else []
    rng.shuffle(sentences)
    yield from sentences
    while True:
        yield f"{short_text(language, rng, plain=True)}. "


def _public(data: Path, language: Language) -> Iterator[str]:
    if language == "en":
        with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            texts = [
                row[key] or ""
                for row in csv.DictReader(file)
                for key in ("questionText", "answerText")
            ]
    else:
        lines = (data / "raw/smilechat_zh.jsonl").read_text(encoding="utf-8").splitlines()
        texts = [turn["content"] for line in lines for turn in json.loads(line)["messages"]]
    for text in texts:
        yield from (
            s.strip() + " "
            for s in re.findall(r"[^.!?。！？\n]{4,}[.!?。！？]?", text)
            if s.strip()
        )


def sentence(language: Language, rng: random.Random) -> str:
    """A generated sentence; patterns and slots come back, so unrelated ones share runs of characters."""
    writer = Writer(language, rng)
    return f"{writer.sentence()}{writer.words['gap']}"


@cache
def _vocabulary(language: Language) -> tuple[list[str], list[float]]:
    """20,000 invented words, or 2,500 characters, and weights that fall as in natural language (Zipf)."""
    rng = random.Random(language)
    if language == "zh":
        words = [chr(code) for code in rng.sample(range(0x4E00, 0x9FA5), 2500)]
    else:
        syllables = [
            a + b + c for a in "bdfglmnprstw" for b in "aeiou" for c in ("", "n", "r", "st")
        ]
        words = ["".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3)))) for _ in range(20_000)]
    return words, list(accumulate(1 / (rank + 3) for rank in range(len(words))))


def short_text(language: Language, rng: random.Random, *, plain: bool = False) -> str:
    """Eight to thirty words of a large vocabulary; unless `plain`, in one of three texts a sentence that comes back."""
    words, weights = _vocabulary(language)
    size = rng.randint(8, 30)
    text = ("" if language == "zh" else " ").join(rng.choices(words, cum_weights=weights, k=size))
    return f"{text}. {sentence(language, rng)}" if not plain and rng.random() < 1 / 3 else text


def piece(pool: Iterator[str], length: int) -> str:
    """A text of `length` characters from the next sentences."""
    text = ""
    while len(text) < length:
        text += next(pool)
    return text[:length].strip()


def unrelated(pool: Iterator[str], count: int, language: Language, name: str) -> list[Dialogue]:
    """Dialogues of one to three exchanges; the sides have LENGTHS characters in turn, each text is used once."""
    found = []
    for number in range(count):
        length = LENGTHS[number % len(LENGTHS)]
        exchanges = 1 + number % 3 if number % 7 > 1 else 1
        turns = []
        for _ in range(exchanges):
            turns.append(Turn("user", piece(pool, max(length // exchanges, 12)) or "?"))
            turns.append(Turn("companion", piece(pool, max(length // exchanges, 12)) or "?"))
        found.append(Dialogue(f"{name}-{language}-{length:04}-{number:05}", language, tuple(turns)))
    return found


# --- Alike, but not one -----------------------------------------------------------------------------------------


def lookalikes(
    pool: Iterator[str], count: int, language: Language, rng: random.Random
) -> list[Dialogue]:
    """Shared greetings, canned replies, a form letter with other content, a shared opening: `count` of each."""
    first = piece(pool, 160)
    second = piece(pool, 160)
    found = []
    for kind, frames in WORDS[language]["look_alikes"].items():
        for number in range(count):
            known = {
                "first": first,
                "second": second,
                "name": rng.choice(WORDS[language]["names"].split()),
            }
            texts = (_filled(frame, known, pool) or "?" for frame in frames)
            turns = tuple(
                Turn(("user", "companion")[place % 2], text) for place, text in enumerate(texts)
            )
            found.append(Dialogue(f"{kind}-{language}-{number:04}", language, turns))
    return found


def _filled(frame: str, known: dict[str, str], pool: Iterator[str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda slot: known.get(slot[1]) or piece(pool, int(slot[1])), frame)
