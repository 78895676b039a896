"""The texts that the crisis model learns from: our own, and harmless talk under free licences. Never ESConv."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.detect.safety.crisis import crisis_cues
from h2htalk.detect.safety.text_folding import fold_spelling

CRISIS = Path(__file__).parent
POLITICAL = CRISIS.parent / "political"
_CHOICE = re.compile(r"\{([^{}]*)\}")
# Of a line with choices, so many of its readings.
READINGS = 6
# Offending talk teaches that insults are no crisis; thresholds are not set on it.
OFFENSIVE = "cold offensive"
# Writers of ordinary days: what a model without one of them tags of theirs sets the threshold of a single message.
EVERYDAY: dict[Language, str] = {"en": "efrsuvw", "zh": "ghtuvw"}
# So many sentences of a companion's replies teach what is no politics.
REPLIES = 6000
# Topics of CounselChat where a crisis is likely, whatever the words.
_GRAVE_TOPICS = ("self-harm",)


@dataclass(frozen=True, slots=True)
class Text:
    """A message: whether it tells of a crisis, how much it counts, and where it is from."""

    text: str
    crisis: bool
    weight: float
    source: str


def own(folder: Path, language: Language, kind: str) -> list[str]:
    """Our own lines of every writer, their choices read out; the same each time."""
    return [text for texts in by_writer(folder, language, kind).values() for text in texts]


def by_writer(
    folder: Path, language: Language, kind: str, plain: bool = False
) -> dict[str, list[str]]:
    """Our own lines of `crisis_en.txt` (writer "") and `crisis_en_a.txt` (writer "a").

    In a line the choices are read out, "[...]" names a part, and "#" opens a comment; `plain`: they are text.
    """
    found = {}
    for path in sorted(folder.glob(f"{kind}_{language}*.txt")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
        writer = path.stem.removeprefix(f"{kind}_{language}").removeprefix("_")
        found[writer] = (
            lines
            if plain
            else [text for line in lines if line[0] not in "[#" for text in readings(line)]
        )
    return found


def readings(line: str) -> Iterator[str]:
    """A line with each choice `{a|b}` made: READINGS of them, drawn by the line itself."""
    parts = _CHOICE.split(line)
    choices = [[part] if n % 2 == 0 else part.split("|") for n, part in enumerate(parts)]
    every = ["".join(made) for made in itertools.islice(itertools.product(*choices), 4000)]
    yield from random.Random(line).sample(every, min(READINGS, len(every)))


def harmless(language: Language, data: Path) -> list[Text]:
    """Talk of the domain without a crisis: what a strong cue marks is left out (most of it is one)."""
    found = itertools.chain(
        _english(data) if language == "en" else _chinese(data), everyday(language)
    )
    seen: dict[str, Text] = {}
    for text in found:
        folded = fold_spelling(text.text, language)
        if folded and not any(not hit.weak for hit in crisis_cues(language).hits(folded)):
            seen.setdefault(folded, text)
    return list(seen.values())


def talk_of_others(language: Language, data: Path) -> Iterator[str]:
    """Sentences of treebanks, tweets, posts and offending talk: what is no dialogue and tells of nothing."""
    kept = (
        "english web treebank",
        "tweets",
        "chinese treebanks",
        "emollm",
        "cold",
        OFFENSIVE,
        "memorybank",
    )
    seen = dict.fromkeys(text.text for text in harmless(language, data) if text.source in kept)
    yield from [text for number, text in enumerate(seen) if number % 2 == 0]


def everyday(language: Language) -> Iterator[Text]:
    """Small concrete things of ordinary days, which people in a crisis speak of too: generated lines, and of the
    bundled split every other scenario whose risk is none (the others are for measuring), turns and references."""
    for line in (CRISIS / f"generated_{language}.txt").read_text(encoding="utf-8").splitlines():
        yield Text(line, False, 0.5, "own harmless generated")
        for sentence in _sentences(line):
            yield Text(sentence, False, 0.3, "own harmless generated")
    for scenario in everyday_scenarios(language)[::2]:
        said = [turn.content for turn in scenario.turns] + [scenario.reference]
        for text in said:
            yield Text(text, False, 2.0, "own harmless mini")
            for sentence in _sentences(text):
                yield Text(sentence, False, 1.0, "own harmless mini")


def everyday_scenarios(language: Language) -> list[Scenario]:
    """The bundled split's scenarios of a language whose risk is none, by id."""
    found = [
        s
        for s in load_split("mini@1").scenarios
        if s.language == language and s.tags.risk == "none"
    ]
    return sorted(found, key=lambda scenario: scenario.id)


def _english(data: Path) -> Iterator[Text]:
    for record in json.loads((data / "safety/diasafety_train.json").read_text(encoding="utf-8")):
        # Posts of people at risk: some are in a crisis that no cue marks, so they count for less.
        weight = 0.2 if record["category"] == "Risk Ignorance" else 0.5
        yield Text(record["context"], False, weight, "diasafety")
        yield Text(record["response"], False, 0.3, "diasafety replies")
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["topic"] not in _GRAVE_TOPICS and "suicid" not in "".join(row.values()).lower():
                for sentence in _sentences(row["questionText"]):
                    yield Text(sentence, False, 0.5, "counselchat")
    yield from _memory_bank(data / "raw/memorybank_en.json")
    for path in sorted((data / "ud/en_ewt").glob("*.gz")):
        yield from _treebank(
            gzip.decompress(path.read_bytes()).decode("utf-8"), "english web treebank"
        )
    for path in sorted((data / "ner/en").glob("BTC/*.conll")) + sorted(
        (data / "ner/en").glob("WNUT17/*.conll")
    ):
        yield from _tweets(path)


def _chinese(data: Path) -> Iterator[Text]:
    for line in (data / "raw/smilechat_zh.jsonl").read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        if dialogue["id"][-1] not in "01":  # held out, for measuring
            for message in dialogue["messages"]:
                if message["role"] == "client":
                    for sentence in _sentences(message["content"]):
                        yield Text(sentence, False, 0.5, "smilechat")
    for line in (data / "raw/smilechat_zh_2.jsonl").read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        if (
            int(hashlib.sha256(dialogue["id"].encode()).hexdigest(), 16) % 2 == 0
        ):  # the others are for measuring
            for message in dialogue["messages"]:
                if message["role"] == "client":
                    for text in dict.fromkeys(
                        (message["content"], *_sentences(message["content"]))
                    ):
                        yield Text(text, False, 0.5, "smilechat 2")
    for path in sorted((data / "ud/zh").rglob("*.conllu")):
        yield from _treebank(path.read_text(encoding="utf-8"), "chinese treebanks")
    for n, record in enumerate(
        json.loads((data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))
    ):
        for turn in record["conversation"] if n % 2 == 0 else []:
            yield Text(turn["input"], False, 0.5, "emollm")
    with (data / "safety/cold_train.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            if row["label"] == "0" and int(row[""] or 0) % 2 == 0:
                yield Text(row["TEXT"], False, 0.3, "cold")
            elif row["label"] == "1" and int(row[""] or 0) % 2 == 0:
                yield Text(row["TEXT"], False, 0.5, OFFENSIVE)
    yield from _memory_bank(data / "raw/memorybank_zh.json")


def replies(language: Language, data: Path) -> list[Text]:
    """Sentences of companions' replies, of every other dialogue or answer: long, kind and not about politics."""
    told = itertools.chain.from_iterable(map(_sentences, _replies(language, data)))
    found = sorted(set(told))
    random.Random(0).shuffle(found)
    return [Text(text, False, 0.3, "replies") for text in found[:REPLIES]]


def _replies(language: Language, data: Path) -> Iterator[str]:
    bank = json.loads((data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    for days in [list(user["history"].values())[::2] for user in bank.values()]:
        yield from (turn["response"] for day in days for turn in day)
    if language == "en":
        with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            yield from (row["answerText"] for row in list(csv.DictReader(file))[::2])
        return
    for record in json.loads((data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))[::2]:
        yield from (turn["output"] for turn in record["conversation"])
    for line in (data / "raw/smilechat_zh.jsonl").read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        if dialogue["id"][-1] not in "01":  # held out, for measuring
            yield from (m["content"] for m in dialogue["messages"] if m["role"] == "counselor")


def _treebank(text: str, source: str) -> Iterator[Text]:
    for line in text.splitlines():
        if line.startswith("# text = "):
            yield Text(line.removeprefix("# text = "), False, 0.5, source)


def _tweets(path: Path) -> Iterator[Text]:
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        words = [line.split("\t")[0] for line in block.splitlines() if "\t" in line]
        if len(words) > 2:
            yield Text(" ".join(words), False, 0.5, "tweets")


def _memory_bank(path: Path) -> Iterator[Text]:
    for user in json.loads(path.read_text(encoding="utf-8")).values():
        for day in user["history"].values():
            for turn in day:
                yield Text(turn["query"], False, 0.5, "memorybank")


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"(?<=[.!?。！？])\s*", text) if part.strip()]
