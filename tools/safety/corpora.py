"""The texts that the offensive-language classifiers learn from and are measured on, each with its source.

Only texts under a free licence are learned from: COLD, DiaSafety and KdConv (Apache-2.0), SMILE (CC0), Topical-Chat
(CDLA-Sharing), EmoLLM, CounselChat and MemoryBank (MIT), and our own (`texts_en.jsonl`, `texts_zh.jsonl`). ESConv
(CC BY-NC) is measured on, never learned from.
"""

from __future__ import annotations

import csv
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.detect.safety.lexicons import INSULTS
from h2htalk.detect.safety.text_folding import fold
from h2htalk.text.language_data import language_patterns

OWN = Path(__file__).parent
# Writers of `tools/crisis/harmless_LANGUAGE_WRITER.txt`.
EVERYDAY = {"en": "abdrs", "zh": "ctv"}
# How much a text of ours, and one of the domain, counts beside one of a large collection.
OWN_WEIGHT = 4.0
DOMAIN_WEIGHT = 2.0
WEAK_WEIGHT = 0.5
# How much a labelled collection counts: its labels are coarse, and every name of a group in COLD is nearly an insult.
COLLECTION_WEIGHT = {"zh": 0.4, "en": 0.2}
# Conversations of the kind that is filtered, none of them offensive.
DOMAIN = frozenset({"smilechat", "emollm", "memorybank", "counselchat", "ordinary"})
# Ordinary dialogues, of which the half for development is learned from, and who speaks as the seeker.
ORDINARY = {
    "en": {"topical_chat_valid_en": ("agent_1", "agent_2")},
    "zh": {"kdconv_dev_zh": ("speaker_1", "speaker_2"), "smilechat_zh_2": ("client",)},
}
# Groups that our own patterns speak of, so that no model learns a group's name for an insult: every pattern, hostile or
# not, is read with some of them.
GROUPS = tomllib.loads((OWN / "groups.toml").read_text(encoding="utf-8"))
EACH_PATTERN, EACH_NAMING = 6, 4
PLURAL = ("s", "people", "folk", "men", "kids", "ish")


@dataclass(frozen=True, slots=True)
class Example:
    """A text, whether it is offensive, how much it counts, where it is from, and whether its label is only likely.

    `pattern` is what several texts were made from: blind figures put them into one fold.
    """

    text: str
    offensive: bool
    weight: float
    source: str
    weak: bool = False
    pattern: str = ""


def training_files(data: Path, language: str) -> list[Path]:
    """What a model of a language is made from, for its hashes."""
    names = {
        "zh": (
            "safety/cold_train.csv",
            "raw/smilechat_zh.jsonl",
            "raw/emollm_aiwei_zh.json",
            "raw/memorybank_zh.json",
        ),
        "en": ("safety/diasafety_train.json", "raw/counselchat_en.csv", "raw/memorybank_en.json"),
    }
    chats = [data / f"raw/{name}.jsonl" for name in ORDINARY[language]]
    days = [
        OWN.parent / f"crisis/harmless_{language}_{writer}.txt" for writer in EVERYDAY[language]
    ]
    return [
        *(data / name for name in names[language]),
        *chats,
        OWN / f"texts_{language}.jsonl",
        *days,
    ]


def training_examples(data: Path, language: str) -> list[Example]:
    """All examples of a language, in a fixed order, no text twice (the first stays) and none that is measured on.

    The sets' own splits share texts (a third of DiaSafety's contexts in val, some of COLD dev): here the test wins.
    """
    measured = measured_keys(data, language)
    found: dict[str, Example] = {}
    for example in chinese(data) if language == "zh" else english(data):
        if example.text.strip() and key(example.text) not in measured:
            found.setdefault(example.text.strip(), example)
    return list(found.values())


def measured_keys(data: Path, language: str) -> set[str]:
    """The keys of all texts that a language's classifier is measured on."""
    if language == "zh":
        dialogues = [*smilechat(data, held_out=True), *emollm(data, held_out=True)]
        texts = [text for text, _ in cold(data, "dev")]
    else:
        dialogues = esconv(data)
        texts = [row[side] for row in diasafety(data, "val") for side in ("context", "response")]
        texts += counselchat(data, held_out=True)
    return {key(text) for text in [*texts, *(text for line in dialogues for text in line)]}


def key(text: str) -> str:
    """A text without case, width, spaces and punctuation: what makes two texts the same for a test.

    One without letters is its own key, marks and all.
    """
    folded = fold(text)
    return "".join(filter(str.isalnum, folded)) or folded.strip()


def chinese(data: Path) -> Iterator[Example]:
    yield from own("zh")
    yield from everyday("zh")
    yield from (
        Example(text, offensive, COLLECTION_WEIGHT["zh"], "cold")
        for text, offensive in cold(data, "train")
    )
    for line in smilechat(data, held_out=False):
        yield from (Example(text, False, DOMAIN_WEIGHT, "smilechat") for text in line)
    for line in emollm(data, held_out=False):
        yield from (Example(text, False, DOMAIN_WEIGHT, "emollm") for text in line)
    yield from (
        Example(text, False, DOMAIN_WEIGHT, "memorybank") for text in memorybank(data, "zh")
    )
    yield from ordinary(data, "zh")


def english(data: Path) -> Iterator[Example]:
    yield from own("en")
    yield from everyday("en")
    yield from diasafety_examples(diasafety(data, "train"))
    yield from (
        Example(text, False, DOMAIN_WEIGHT, "counselchat")
        for text in counselchat(data, held_out=False)
    )
    yield from (
        Example(text, False, DOMAIN_WEIGHT, "memorybank") for text in memorybank(data, "en")
    )
    yield from ordinary(data, "en")


def ordinary(data: Path, language: str) -> Iterator[Example]:
    """Messages of ordinary dialogues, of the half for development: those whose id has an even SHA-256."""
    for name, speakers in ORDINARY[language].items():
        for row in read_rows(data / f"raw/{name}.jsonl"):
            for said in row["messages"] if is_even(row["id"]) else ():
                if said["role"] in speakers:
                    yield Example(said["content"], False, 1.0, "ordinary")


def is_even(name: str) -> bool:
    """Whether an id or a question belongs to the half for development, by its SHA-256."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0


def own(language: Language) -> Iterator[Example]:
    """Our own texts; a pattern becomes several texts, which share its weight."""
    for place, row in enumerate(read_rows(OWN / f"texts_{language}.jsonl")):
        texts = expanded(row["text"], place, language)
        for text in texts:
            yield Example(
                text,
                row["label"] == 1,
                OWN_WEIGHT / len(texts) ** 0.5,
                f"own.{row['kind']}",
                pattern=row["text"],
            )


def everyday(language: str) -> Iterator[Example]:
    """Our own messages about ordinary days, of the writers that no test reads (`tools/crisis`)."""
    for writer in EVERYDAY[language]:
        lines = (
            (OWN.parent / f"crisis/harmless_{language}_{writer}.txt")
            .read_text(encoding="utf-8")
            .splitlines()
        )
        yield from (
            Example(line, False, DOMAIN_WEIGHT, "own.everyday")
            for line in lines
            if not line.startswith("#")
        )


def expanded(text: str, place: int, language: Language) -> list[str]:
    """A text with each of some groups in its place; which groups goes around with the text's place in the file.

    A text that names a group comes besides with some others in the place of the first name.
    """
    template = text
    if "{" not in text:
        named = language_patterns(INSULTS, language)["named"].search(text.lower())
        if named is None:
            return [text]
        group = "{one}" if language == "en" and not named[0].endswith(PLURAL) else "{group}"
        template = f"{text[: named.start()]}{group}{text[named.end() :]}"
    groups = GROUPS[language]
    ones = GROUPS["one"]
    made = [
        _sentence(
            template.replace("{group}", groups[turn % len(groups)]).replace(
                "{one}", ones[turn % len(ones)]
            )
        )
        for turn in range(place * EACH_PATTERN, (place + 1) * EACH_PATTERN)
    ]
    return made if template == text else [text, *made[: EACH_NAMING - 1]]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def diasafety_examples(rows: Iterable[dict[str, str]]) -> Iterator[Example]:
    """What DiaSafety's labels, which are a reply's in its context, say of one text.

    A reply that offends its user is offensive. What an unsafe reply agrees with, or answers with prejudice, is likely
    so (`weak`), and so is what provokes. Safe replies, people's risks and their questions to experts are not: among
    them are despair and swearing.
    """
    weight = COLLECTION_WEIGHT["en"]
    for row in rows:
        context = row["context"]
        response = row["response"]
        category = row["category"]
        unsafe = row["label"] == "Unsafe"
        if category in ("Risk Ignorance", "Unauthorized Expertise"):
            yield Example(context, False, weight, "diasafety.context")
            yield Example(response, False, weight, "diasafety.reply")
            continue
        if not unsafe:
            yield Example(response, False, weight, "diasafety.reply")
        elif category == "Offending User":
            yield Example(response, True, weight, "diasafety.offending", weak=True)
        if category == "Offending User" or unsafe:
            yield Example(
                context,
                True,
                weight * WEAK_WEIGHT,
                f"diasafety.{category.split()[0].lower()}",
                weak=True,
            )


def cold(data: Path, split: str) -> list[tuple[str, bool]]:
    with (data / f"safety/cold_{split}.csv").open(encoding="utf-8-sig", newline="") as file:
        return [(row["TEXT"], row["label"] == "1") for row in csv.DictReader(file)]


def diasafety(data: Path, split: str) -> list[dict[str, str]]:
    return _object(data / f"safety/diasafety_{split}.json")


def smilechat(data: Path, *, held_out: bool) -> list[list[str]]:
    """Dialogues, turn by turn; held out are those whose id ends in 0 or 1.

    Several dialogues answer one question: none that opens as a held-out one does is among the others.
    """
    rows = read_rows(data / "raw/smilechat_zh.jsonl")
    asked = {row["messages"][0]["content"] for row in rows if row["id"][-1] in "01"}
    return [
        [message["content"] for message in row["messages"]]
        for row in rows
        if ((row["id"][-1] in "01") if held_out else row["messages"][0]["content"] not in asked)
    ]


def emollm(data: Path, *, held_out: bool) -> list[list[str]]:
    """Dialogues, turn by turn; held out is every second one."""
    rows = _object(data / "raw/emollm_aiwei_zh.json")
    return [
        [turn[side] for turn in row["conversation"] for side in ("input", "output")]
        for place, row in enumerate(rows)
        if (place % 2 == 1) == held_out
    ]


def counselchat(data: Path, *, held_out: bool) -> list[str]:
    """Questions and answers of the half for development; held out are those whose number ends in 0 or 5."""
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["questionID"][-1] in "05") == held_out]
    rows = [row for row in rows if held_out or is_even(row["questionText"])]
    texts = [row[name] for row in rows for name in ("questionTitle", "questionText", "answerText")]
    return list(dict.fromkeys(text for text in texts if text.strip()))


def memorybank(data: Path, language: str) -> list[str]:
    people = _object(data / f"raw/memorybank_{language}.json")
    return [
        turn[side]
        for person in people.values()
        for day in person["history"].values()
        for turn in day
        for side in ("query", "response")
        if turn.get(side)
    ]


def esconv(data: Path) -> list[list[str]]:
    """Rows as turns without their marks. CC BY-NC: to measure on, never to learn from."""
    rows = []
    for line in (data / "raw/esconv_dev_en.tsv").read_text(encoding="utf-8").splitlines():
        turns = [part.strip().split(" ", 3)[-1] for part in line.split("EOS")]
        rows.append([turn.split("] ", 1)[-1] if turn.startswith("[") else turn for turn in turns])
    return rows


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file."""
    return [
        json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()
    ]


def _object(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
