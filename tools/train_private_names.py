"""Train the classifiers that tell private names in chat from public ones and from other words.

    H2HTALK_DATA=... python tools/train_private_names.py --language en|zh [--check]

Private are the labels of development sets and of chats by several writers (tools/private), and the names of
MemoryBank's users; other candidates there, in the even halves of public dialogues, in the bundled Chinese items, and in
Chinese news and posts are none. `--check` writes nothing: it counts dialogues that leak or are changed wrongly, by
models that saw nothing of a dialogue nor of its writer.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import re
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from eval_safety import smilechat
from safety.corpora import read_rows
from safety.shipping import write_classifier
from sample_readings import chinese, in_half
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.release.content import item_notes, item_texts
from h2htalk.data.splits import load_split
from h2htalk.detect.hashed import SMOOTH, Features
from h2htalk.detect.personal.chinese import private_names as zh
from h2htalk.detect.personal.chinese.recognizer import read_dialogue
from h2htalk.detect.personal.chinese.words import words
from h2htalk.detect.personal.engine.analyzer import DialogueText, find_in_dialogue
from h2htalk.detect.personal.english import private_names as en
from h2htalk.detect.personal.english import recognizer
from h2htalk.detect.personal.spans import Span, normalize_text, plain
from h2htalk.detect.personal.structured.rules import find_structured
from h2htalk.detect.personal.values.dialogue_values import find_allowed

ROOT = Path(__file__).parents[1]
HOMES = {"en": "english/private_names", "zh": "chinese/words/private"}
SETS = (
    "dev_chat",
    "dev_chat2",
    "dev_names",
    "practice",
    "practice2",
    "practice3",
    "dev_chat_stay",
    "negatives3",
)
FEATURES = {
    "en": Features("fibonacci", en.BITS, (), (), False, 400, False),
    "zh": Features("fibonacci", 16, (1, 2, 3, 4), (), False, 400, False),
}
C, FOLDS = {"en": 30.0, "zh": 16.0}, 3
LARGEST = {"en": 0.9999, "zh": 0.99999}  # quantile of the weights that becomes the largest
# Log-odds below which a candidate is none: in English also of a name that the dialogue says elsewhere (`again`) or
# says to be one (`called`), of a part of a public person's (`public`), and of a small word of no list (`unlisted`).
LEAST = {
    "en": {
        "PERSON": -0.1,
        "ORGANIZATION": 0.0,
        "again": -1.1,
        "called": -3.0,
        "public": 6.0,
        "cast": 3.0,
        "unlisted": 3.3,
    },
    "zh": {
        "PERSON": -1.4,
        "ORGANIZATION": -2.3,
        "ADDRESS": -1.4,
        "PHONE_NUMBER": -0.2,
        "DATE_OF_BIRTH": -2.0,
    },
}
PUBLIC = ("topical", "counsel", "memory", "treebank", "unlabelled", "smile", "kdconv")
WEIGHTS = {
    "emollm": 0.7,
    "treebank": 0.5,
    "writer": 1.4,
    "renamed": 0.6,
}  # of Chinese candidates; 1 for others
BOUNDS = 0.7  # weight of a candidate that overlaps a label
OURS = (
    3.0  # weight of private names in English, and of other words in lines written for this project
)
AROUND = 3  # messages put on either side of a line
# Private people whom the Chinese corpora name, and their weight.
KNOWN = re.compile("瑶瑶|蓝蓝|小雨|思采|Karen|小星|小杨|mia|琪琪|小贤")
OF_KNOWN = 2.0
# Of lines that nobody labelled candidates of these shapes are none.
SURELY_NONE = ("full", "given", "foreign", "dotted", "surname", "rare latin", "ORGANIZATION")
_MARK = re.compile(r"\[\[(.*?)\]\]|\{\{(.*?)\}\}")
_SLOT = re.compile("[\ue000-\ue0ff]")
Place = tuple[int, int, str]


class Talk(NamedTuple):
    """Messages, and the places of what is private in each."""

    source: str
    id: str
    texts: Sequence[str]
    places: Sequence[Sequence[Place]]


Example = tuple[
    Sequence[int], bool, float, Talk
]  # the buckets of a candidate, whether it is private, its weight


def unmarked(line: str) -> tuple[str, list[Place]]:
    """A message in which a writer marked [[private]] and {{public}} names, without the marks."""
    text = ""
    places = list[Place]()
    at = 0
    for mark in _MARK.finditer(line):
        text += line[at : mark.start()]
        name = mark[1] or mark[2] or ""
        if mark[1]:
            places += [(len(text), len(text) + len(name), "PERSON")]
        text = text + name
        at = mark.end()
    return text + line[at:], places


def talks(data: Path, language: str) -> Iterator[Talk]:
    """What is learned from, the labelled lines first."""
    for name in (*SETS, *(["negatives_structured"] if language == "zh" else [])):
        path = ROOT / f"tests/detect/personal/sets/{name}_{language}.jsonl"
        for row in read_rows(path) if path.exists() else ():
            spans = [(span["start"], span["end"], span["type"]) for span in row.get("spans", ())]
            yield Talk("line", row["id"], [row["text"]], [spans])
    for path in sorted((ROOT / "tools/private").glob(f"{language}_*.jsonl")):
        for row in read_rows(path):
            texts, places = zip(
                *(unmarked(turn["content"]) for turn in row["messages"]), strict=True
            )
            yield Talk("writer", path.stem, texts, places)
    for user, days in json.loads((data / f"raw/memorybank_{language}.json").read_bytes()).items():
        own = re.compile(rf"\b{user.strip()}\b" if language == "en" else user)
        for date, turns in days["history"].items():
            texts = [turn[side] for turn in turns for side in ("query", "response")]
            yield Talk(
                "memory",
                user + date,
                texts,
                [[(*m.span(), "PERSON") for m in own.finditer(t)] for t in texts],
            )
    yield from bundled() if language == "zh" else ()
    for number, (source, texts) in enumerate(
        {"en": public_english, "zh": public_chinese}[language](data)
    ):
        yield Talk(source, f"{source}{number}", texts, [[] for _ in texts])


def public_english(data: Path) -> Iterator[tuple[str, list[str]]]:
    for row in read_rows(data / "raw/topical_chat_valid_en.jsonl"):
        if in_half(row["id"], "even"):
            yield "topical", [turn["content"] for turn in row["messages"]]
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            if row["questionText"] and in_half(row["questionText"], "even"):
                yield (
                    "counsel",
                    [f"{row['questionTitle']}\n{row['questionText']}", row["answerText"] or "-"],
                )


def public_chinese(data: Path) -> Iterator[tuple[str, list[str]]]:
    for row in read_rows(ROOT / "tools/safety/texts_zh.jsonl"):
        yield "unlabelled", [row["text"]]
    for path in sorted(
        [*(ROOT / "tools/crisis").glob("[!g]*_zh*.txt"), *(ROOT / "tools/gates").glob("*_zh_*.txt")]
    ):
        yield from (("unlabelled", [line]) for line in path.read_text("utf-8").splitlines())
    for one in [*chinese(data, "even"), *smilechat(data / "raw/smilechat_zh.jsonl")]:
        yield "smile", [turn.content for turn in one.messages]
    for row in read_rows(data / "raw/kdconv_dev_zh.jsonl"):
        if in_half(row["id"], "even"):
            yield "kdconv", [turn["content"] for turn in row["messages"]]
    for row in json.loads((data / "raw/emollm_aiwei_zh.json").read_text("utf-8")):
        turns = [text for turn in row["conversation"] for text in (turn["input"], turn["output"])]
        yield "emollm", [text.replace("艾薇", "") for text in turns]
    with (data / "safety/cold_train.csv").open(encoding="utf-8", newline="") as opened:
        yield from (("treebank", [row["TEXT"]]) for row in [*csv.DictReader(opened)][::4])
    for sentence in (
        (data / "ner/zh/GSDSIMP/zh_gsdsimp-ud-train.iob2").read_text("utf-8").split("\n\n")[::2]
    ):
        yield (
            "treebank",
            ["".join(line.split("\t")[1] for line in sentence.splitlines() if line[:1].isdigit())],
        )


def bundled() -> Iterator[Talk]:
    """What is said in the Chinese items of the package's splits: its names are invented, nothing else is private."""
    for split in map(load_split, ("arcs", "high_risk", "instructions", "mini")):
        names = {
            *split.invented,
            *(name for persona in split.personas.values() for name in persona.names.values()),
        }
        for one in (one for one in split.cases or split.scenarios if one.language == "zh"):
            texts = [
                *(turn.content for turn in item_texts(one)),
                *(text for _, text in item_notes(one)),
            ]
            places = [
                [(m.start(), m.end(), "") for n in names for m in re.finditer(re.escape(n), t)]
                for t in texts
            ]
            yield Talk("bundled", one.id, texts, places)


def english_examples(found: Sequence[Talk]) -> Iterator[Example]:
    """The candidates of each talk, and of a single line again with others around it."""
    lines = [
        text
        for one in found
        if one.source in ("line", "counsel")
        for text in one.texts
        if len(text) < 400
    ]
    for number, talk in enumerate(found):
        yield from candidates(talk)
        if len(talk.texts) == 1 and talk.source not in PUBLIC:
            chosen = random.Random(number).sample(lines, 2 * AROUND)
            beside = [()] * AROUND
            texts = [*chosen[:AROUND], *talk.texts, *chosen[AROUND:]]
            yield from candidates(
                talk._replace(texts=texts, places=[*beside, *talk.places, *beside]), only=AROUND
            )


def candidates(talk: Talk, only: int | None = None) -> Iterator[Example]:
    """The candidates of a talk (of one message only), of a private name the first."""
    parts = DialogueText(talk.texts, "en").parts
    messages = [
        recognizer.read_message(part.plain, [*part.structured, *part.allowed]) for part in parts
    ]
    nears = en.features_near([message.tokens for message in messages])
    for at, (message, near) in enumerate(zip(messages, nears, strict=True)):
        seen = set[Place]()
        for one in message.candidates if only in (None, at) else ():
            start = message.tokens.starts[one.first]
            end = message.tokens.ends[one.end - 1]
            over = [place for place in talk.places[at] if place[0] < end and start < place[1]]
            private = bool(over) and over[0][2] == (one.kind or "PERSON") and over[0] not in seen
            if private or not over:
                seen.update(over[:1])
                features = en.features_of(message.tokens, one) | near
                weight = OURS if private or talk.source not in PUBLIC else 1.0
                yield sorted({en.bucket(feature) for feature in features}), private, weight, talk


def renamed(found: Sequence[Talk]) -> Iterator[Talk]:
    """The talks with names again, each exchanged for another of as many characters or with its title, some titled."""
    draw = random.Random(7)
    names = defaultdict[str, list[str]](list)
    again = list[Talk]()
    titles = sorted(words("persons", "titles", "after_surname"))

    def exchanged(text: str, own: Sequence[Place], new: dict[str, str]) -> str:
        for start, end, _ in sorted(own, reverse=True):
            name = text[start:end]
            form = text[start + 1 : end]
            title = draw.choice(titles) if form not in titles and draw.random() < 0.1 else ""
            names[form if form in titles else str(end - start)].append(name)
            new.setdefault(
                name, draw.choice(names[form if form in titles else str(end - start)]) + title
            )
            text = f"{text[:start]}[[{new[name]}]]{text[end:]}"
        return text

    for _ in range(2):  # the names are gathered first
        again.clear()
        for talk in (talk for talk in found if talk.source in ("line", "writer")):
            if {place[2] for own in talk.places for place in own} == {"PERSON"}:
                new: dict[str, str] = {}
                marked = [
                    exchanged(text, own, new)
                    for text, own in zip(talk.texts, talk.places, strict=True)
                ]
                again.append(Talk("renamed", talk.id, *zip(*map(unmarked, marked), strict=True)))
    yield from again


def chinese_examples(found: Sequence[Talk]) -> Iterator[Example]:
    """The candidates of each talk; those of a line also behind a message, those of a dialogue also alone."""
    draw = random.Random(5)
    earlier = [text for talk in found if talk.source == "smile" for text in talk.texts]
    read = list[str]()
    marks = list[tuple[bool, float, Talk]]()
    for talk in [*found, *renamed(found)]:
        for mention, private, weight in labelled(talk):
            said = mention.description
            slot = _SLOT.search(said)
            place = slot.start() if slot else 0
            shape = zh.SHAPES[ord(said[place]) - 0xE000]
            if talk.source == "unlabelled" and shape not in SURELY_NONE:
                continue
            if shape == "word" and not private:
                weight *= 2.0
            several = [said]
            room = (30 if mention.type in ("PERSON", "ORGANIZATION") else 120) - place
            if talk.source in ("line", "renamed", "unlabelled") and room > 0:
                several.append(draw.choice(earlier)[-room:] + said)
            if talk.source in ("smile", "emollm") and mention.message:
                several.append(said[max(said.find("\n", 0, 30), 0) :])
            read += several
            marks += [(private, weight, talk)] * len(several)
    keys = FEATURES["zh"].keys(read)
    bits = FEATURES["zh"].bits
    cuts = np.searchsorted(keys >> bits, np.arange(1, len(read)))
    for own, mark in zip(np.split(keys & ((1 << bits) - 1), cuts), marks, strict=True):
        yield own.tolist(), *mark


def labelled(talk: Talk) -> Iterator[tuple[zh.Mention, bool, float]]:
    """The candidates of a Chinese talk, whether each is private, and its weight."""
    taken = list[list[Span]]()
    structured = list[list[Span]]()
    for text, places in zip(talk.texts, talk.places, strict=True):
        values = [
            Span(*place, 1.0) for place in places if place[2] not in ("PERSON", "ORGANIZATION")
        ]
        people = [Span(*place, 1.0) for place in places if place[2] == "PERSON"]
        allowed = [
            stays
            for stays in find_allowed(plain(text), "zh")
            if not any(map(stays.overlaps, people))
        ]
        structured.append(find_structured(normalize_text(text), "zh"))
        taken.append(
            [*(span for span in (*values, *structured[-1]) if span.type != "ADDRESS"), *allowed]
        )
    placed, names = read_dialogue(talk.texts, taken)
    together = [[*ours, *found] for ours, found in zip(placed, structured, strict=True)]
    for mention in (*names, *zh.value_mentions(talk.texts, together)):
        over = [
            place
            for place in talk.places[mention.message]
            if mention.start < place[1] and place[0] < mention.end
        ]
        if over and talk.source == "bundled" and over[0][0] <= mention.start:
            continue
        named = mention.type in ("PERSON", "ORGANIZATION")
        known = (
            talk.source in ("smile", "emollm", "kdconv") and KNOWN.search(mention.name) is not None
        )
        exact = (
            known or (mention.start, mention.end, mention.type) in over or bool(over and not named)
        )
        titled = (
            bool(over)
            and over[0][0] == mention.start
            and mention.name[over[0][1] - mention.start :]
        )
        exact |= titled in words("persons", "titles", "after_surname")
        weight = OF_KNOWN if known else WEIGHTS.get(talk.source, 1.0)
        yield mention, exact, weight if exact or not over else weight * BOUNDS


def train(found: Sequence[Example], language: str, folder: Path) -> None:
    buckets, labels, weights, _ = zip(*found, strict=True)
    sizes = list(map(len, buckets))
    values = np.repeat([1 / math.sqrt(size + SMOOTH) for size in sizes], sizes)
    columns = np.concatenate(buckets).astype(np.int32)
    shape = (len(found), 1 << FEATURES[language].bits)
    table = csr_matrix((values, columns, np.cumsum([0, *sizes])), shape=shape)
    model = LogisticRegression(C=C[language], solver="liblinear", random_state=0)
    model.fit(table, labels, sample_weight=weights)
    scale = float(np.quantile(np.abs(model.coef_[0]), LARGEST[language])) / 127
    manifest = {"language": language, "features": asdict(FEATURES[language]), "scale": scale}
    manifest |= {"bias": float(model.intercept_[0]), **LEAST[language]}
    manifest["learned_from"] = {"private": sum(labels), "others": len(labels) - sum(labels)}
    learned = np.clip(np.round(model.coef_[0] / scale), -127, 127).astype(np.int8)
    write_classifier(folder, language, manifest, learned)
    print(manifest["learned_from"], (folder / f"{language}.weights").stat().st_size, flush=True)


def check(found: Sequence[Talk], learned: Sequence[Example], language: str) -> None:
    """Print by source how many talks leak that hold private names, and how many are changed beside these."""
    counts = Counter[tuple[str, str]]()
    for fold in range(FOLDS):
        with tempfile.TemporaryDirectory() as folder:
            train([one for one in learned if fold_of(one[3]) != fold], language, Path(folder))
            for module in (en, recognizer) if language == "en" else (zh,):
                module.FOLDER = folder
            for talk in found:
                if fold_of(talk) == fold and talk.source not in ("treebank", "unlabelled"):
                    source = talk.id if talk.source == "writer" else talk.source
                    counts.update((source, what) for what in outcome(talk, language))
    for (source, what), count in sorted(counts.items()):
        print(f"{source:10} {what:16} {count}")


def outcome(talk: Talk, language: str) -> Iterator[str]:
    """What the anonymiser makes of a talk."""
    yield "talks"
    private = [{at for start, end, _ in own for at in range(start, end)} for own in talk.places]
    leaks = wrong = False
    found = find_in_dialogue(talk.texts, language).spans
    for text, spans, own in zip(talk.texts, found, private, strict=True):
        leaks |= not own.issubset(at for span in spans for at in range(span.start, span.end))
        others = [
            text[span.start : span.end]
            for span in spans
            if own.isdisjoint(range(span.start, span.end))
        ]
        wrong |= any(language == "en" or not KNOWN.search(name) for name in others)
    yield from (
        what
        for what, so in (("private", any(private)), ("leak", leaks), ("changed wrongly", wrong))
        if so
    )


def fold_of(talk: Talk) -> int:
    """Of a writer's chats all are in one."""
    return (ord(talk.id[-1]) if talk.source == "writer" else zlib.crc32(talk.id.encode())) % FOLDS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--language", choices=HOMES, required=True)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    found = list(talks(Path(os.environ["H2HTALK_DATA"]), options.language))
    learned = list({"en": english_examples, "zh": chinese_examples}[options.language](found))
    if options.check:
        check(found, learned, options.language)
    else:
        train(learned, options.language, ROOT / "h2htalk/detect/personal" / HOMES[options.language])


if __name__ == "__main__":
    main()
