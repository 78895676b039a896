"""Train the classifier that tells private people's names and data in Chinese dialogues from public ones.

    H2HTALK_DATA=... python tools/train_private_names.py [--without SET ...] [--folder DIR]

Private ones are the labels of the development sets and of chats by several writers (tools/private); all other
candidates of those, and all candidates of the even halves of KdConv and SMILE and of a treebank, are none.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safety.shipping import write_classifier
from eval_safety import smilechat
from sample_readings import chinese, in_half
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.anonymize.chinese.private_names import SHAPES, Mention, value_mentions
from h2htalk.curation.anonymize.chinese.recognizer import read_dialogue
from h2htalk.curation.anonymize.spans import Span, normalize_text, plain
from h2htalk.curation.anonymize.structured.rules import find_structured
from h2htalk.curation.anonymize.values.dialogue_values import find_allowed
from h2htalk.curation.safety.ngram_classifier import SMOOTH, Features

ROOT = Path(__file__).parents[1]
HOME = ROOT / "h2htalk/curation/anonymize/chinese/words/private"
SETS = ("practice", "practice2", "practice3", "dev_names", "dev_chat", "dev_chat_stay", "negatives3",
        "negatives_structured")  # fmt: skip
FEATURES = Features("fibonacci", 16, (1, 2, 3, 4), (), False, 400, False)
C = 10.0
WEIGHTS = {"kdconv": 1.0, "smile": 0.7, "treebank": 0.5, "writer": 2.0}  # 1 for lines
# What these corpora say of private people.
PRIVATE = {"smile": re.compile("瑶瑶|蓝蓝|小雨|思采|Karen|小星|小杨|mia|琪琪"), "kdconv": re.compile("小贤")}
# Of lines that nobody labelled candidates of these shapes are none.
SURELY_NONE = ("full", "given", "foreign", "dotted", "surname", "rare latin")
LEAST = {"PERSON": -1.8, "ADDRESS": -0.7, "PHONE_NUMBER": -0.7, "DATE_OF_BIRTH": -2.5}
_MARK = re.compile(r"\[\[(.*?)\]\]|\{\{(.*?)\}\}")
_SLOT = re.compile("[\ue000-\ue0ff]")


@dataclass(frozen=True)
class Talk:
    """Messages with the places of what is private in each."""

    source: str
    texts: list[str]
    private: list[list[tuple[int, int, str]]]


def marked(lines: Sequence[str]) -> Talk:
    """A chat in which a writer marked [[private]] and {{public}} names."""
    texts, private = [], []
    for line in lines:
        text, places, at = "", list[tuple[int, int, str]](), 0
        for mark in _MARK.finditer(line):
            text += line[at : mark.start()]
            name = mark[1] or mark[2] or ""
            places += [(len(text), len(text) + len(name), "PERSON")] if mark[1] else []
            text, at = text + name, mark.end()
        texts.append(text + line[at:])
        private.append(places)
    return Talk("writer", texts, private)


def treebank(path: Path) -> Iterator[str]:
    """Every second sentence."""
    sentences = path.read_text("utf-8").split("\n\n")
    for sentence in sentences[::2]:
        rows = [line.split("\t") for line in sentence.splitlines() if line and not line.startswith("#")]
        yield "".join(row[1] for row in rows)


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def talks(data: Path, without: Sequence[str]) -> Iterator[Talk]:
    for name in SETS:
        for row in rows(ROOT / f"tests/curation/anonymize/sets/{name}_zh.jsonl") if name not in without else ():
            spans = [(span["start"], span["end"], span["type"]) for span in row.get("spans", ())]
            yield Talk("line", [row["text"]], [spans])
    for path in sorted((ROOT / "tools/private").glob("zh_*.jsonl")):
        if path.stem not in without:
            yield from (marked([turn["content"] for turn in row["messages"]]) for row in rows(path))
    for path in sorted((ROOT / "tools").glob("*/*_zh*.txt")):
        if path.parent.name in ("crisis", "gates") and path.name != "generated_zh.txt":
            for line in path.read_text("utf-8").splitlines():
                yield Talk("unlabelled", [line], [[]])
    dialogues = [
        ("smile", [turn.content for turn in one.messages])
        for one in (*chinese(data, "even"), *smilechat(data / "raw/smilechat_zh.jsonl"))
    ]
    dialogues += [
        ("kdconv", [turn["content"] for turn in row["messages"]])
        for row in rows(data / "raw/kdconv_dev_zh.jsonl")
        if in_half(row["id"], "even")
    ]
    with (data / "safety/cold_train.csv").open(encoding="utf-8", newline="") as opened:
        comments = [row["TEXT"] for row in csv.DictReader(opened)][::4]
    for row in json.loads((data / "raw/emollm_aiwei_zh.json").read_text("utf-8")):
        told = [text.replace("艾薇", "") for turn in row["conversation"] for text in (turn["input"], turn["output"])]
        dialogues.append(("smile", told))
    sentences = treebank(data / "ner/zh/GSDSIMP/zh_gsdsimp-ud-train.iob2")
    for source, texts in [*dialogues, *(("treebank", [text]) for text in (*sentences, *comments))]:
        yield Talk(source, texts, [[] for _ in texts])


def labelled(talk: Talk) -> Iterator[tuple[Mention, float]]:
    """The candidates of a talk; 1 for private ones, 0.7 for those whose bounds are wrong, else 0."""
    taken = []
    structured = []
    for text, private in zip(talk.texts, talk.private, strict=True):
        values = [Span(start, end, kind, 1.0) for start, end, kind in private if kind != "PERSON"]
        people = [(start, end) for start, end, kind in private if kind == "PERSON"]
        allowed = [
            span
            for span in find_allowed(plain(text), "zh")
            if not any(span.start < end and start < span.end for start, end in people)
        ]
        found = find_structured(normalize_text(text), "zh")
        structured.append(found)
        taken.append([*values, *allowed, *found])
    placed, names = read_dialogue(talk.texts, [[s for s in own if s.type != "ADDRESS"] for own in taken])
    together = [[*ours, *found] for ours, found in zip(placed, structured, strict=True)]
    for mention in (*names, *value_mentions(talk.texts, together)):
        over = [
            (start, end)
            for start, end, kind in talk.private[mention.message]
            if mention.start < end and start < mention.end
        ]
        person = mention.type == "PERSON"
        exact = any(start == mention.start and end == mention.end for start, end in over)
        hit = [
            kind for start, end, kind in talk.private[mention.message] if mention.start < end and start < mention.end
        ]
        if person and any(kind != "PERSON" for kind in hit):
            continue
        if (
            talk.source == "unlabelled"
            and SHAPES[ord(_SLOT.search(mention.description)[0]) - 0xE000] not in SURELY_NONE
        ):
            continue
        exact = exact or PRIVATE.get(talk.source, _SLOT).search(mention.name) is not None
        yield mention, 1.0 if exact or (over and not person) else 0.7 if over else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", nargs="*", default=[], help="sets that are not learned from")
    parser.add_argument("--folder", type=Path, default=HOME)
    options = parser.parse_args()
    data = Path(os.environ["H2HTALK_DATA"])
    draw = random.Random(5)
    descriptions, labels, weights = list[str](), list[bool](), list[float]()
    earlier: list[str] = [turn.content for one in chinese(data, "even") for turn in one.messages]
    for talk in talks(data, options.without):
        for mention, label in labelled(talk):
            weight = 2.0 if label == 1 and talk.source == "smile" else WEIGHTS.get(talk.source, 1.0) * (label or 1.0)
            texts = [mention.description]
            room = (30 if mention.type == "PERSON" else 120) - _SLOT.search(mention.description).start()
            if talk.source in ("line", "unlabelled") and room > 0:  # also as it would be read in a dialogue
                texts.append(draw.choice(earlier)[-room:] + mention.description)
            if talk.source == "smile" and mention.message:  # and alone
                texts.append(
                    mention.description[mention.description.index("\n") :]
                    if "\n" in mention.description[:30]
                    else mention.description
                )
            descriptions += texts
            labels += [label == 1.0] * len(texts)
            weights += [weight] * len(texts)
    keys = FEATURES.keys(descriptions)
    owners, buckets = keys >> FEATURES.bits, keys & ((1 << FEATURES.bits) - 1)
    values = 1 / np.sqrt(np.bincount(owners) + SMOOTH)[owners]
    table = csr_matrix((values, (owners, buckets)), shape=(len(descriptions), 1 << FEATURES.bits))
    model = LogisticRegression(C=C, solver="liblinear", random_state=0).fit(table, labels, sample_weight=weights)
    scale = float(np.quantile(np.abs(model.coef_[0]), 0.99999)) / 127
    manifest = {
        "language": "zh",
        "features": asdict(FEATURES),
        "scale": scale,
        "bias": float(model.intercept_[0]),
        **LEAST,
        "learned_from": {"private": sum(labels), "others": len(labels) - sum(labels)},
        "texts_sha256": hashlib.sha256("\n".join(descriptions).encode("utf-8", "surrogatepass")).hexdigest(),
    }
    options.folder.mkdir(exist_ok=True)
    write_classifier(
        options.folder, "zh", manifest, np.clip(np.round(model.coef_[0] / scale), -127, 127).astype(np.int8)
    )
    print(manifest["learned_from"], (options.folder / "zh.weights").stat().st_size)


if __name__ == "__main__":
    main()
