"""Train the classifier that tells private people's names and data in Chinese dialogues from public ones.

    H2HTALK_DATA=... python tools/train_private_names.py [--without SET ...] [--folder DIR]

Private are the labels of development sets and of chats by several writers (tools/private), the other candidates there
are none, nor are those of KdConv and SMILE (even halves), of EmoLLM, COLD, a treebank, and of lines that others wrote.
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
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from eval_safety import smilechat
from safety.shipping import write_classifier
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
SETS = (
    *("practice", "practice2", "practice3", "dev_names"),
    *("dev_chat", "dev_chat_stay", "negatives3", "negatives_structured"),
)
FEATURES = Features("fibonacci", 16, (1, 2, 3, 4), (), False, 400, False)
C = 10.0
WEIGHTS = {"smile": 0.7, "treebank": 0.5, "writer": 2.0}  # 1 for others
BOUNDS = 0.7  # weight of a candidate that overlaps a label
# Private people whom the corpora name, and their weight.
PRIVATE, OF_PRIVATE = re.compile("瑶瑶|蓝蓝|小雨|思采|Karen|小星|小杨|mia|琪琪|小贤"), 2.0
# Of lines that nobody labelled candidates of these shapes are none.
SURELY_NONE = ("full", "given", "foreign", "dotted", "surname", "rare latin", "ORGANIZATION")
LEAST = {"PERSON": -1.6, "ORGANIZATION": -1.5, "ADDRESS": -1.0, "PHONE_NUMBER": -0.2, "DATE_OF_BIRTH": -2.0}
_MARK = re.compile(r"\[\[(.*?)\]\]|\{\{(.*?)\}\}")
_SLOT = re.compile("[\ue000-\ue0ff]")
Place = tuple[int, int, str]


class Talk(NamedTuple):
    """Messages, and the places of what is private in each."""

    source: str
    texts: list[str]
    private: list[list[Place]]


def unmarked(line: str) -> tuple[str, list[Place]]:
    """A message in which a writer marked [[private]] and {{public}} names, without the marks."""
    text, places, at = "", list[Place](), 0
    for mark in _MARK.finditer(line):
        text += line[at : mark.start()]
        name = mark[1] or mark[2] or ""
        places += [(len(text), len(text) + len(name), "PERSON")] if mark[1] else []
        text, at = text + name, mark.end()
    return text + line[at:], places


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def talks(data: Path, without: Sequence[str]) -> Iterator[Talk]:
    for name in (name for name in SETS if name not in without):
        for row in rows(ROOT / f"tests/curation/anonymize/sets/{name}_zh.jsonl"):
            spans = [(span["start"], span["end"], span["type"]) for span in row.get("spans", ())]
            yield Talk("line", [row["text"]], [spans])
    for path in sorted((ROOT / "tools/private").glob("zh_*.jsonl")):
        for row in rows(path) if path.stem not in without else ():
            texts, private = zip(*(unmarked(turn["content"]) for turn in row["messages"]), strict=True)
            yield Talk("writer", list(texts), list(private))
    others = [("unlabelled", [row["text"]]) for row in rows(ROOT / "tools/safety/texts_zh.jsonl")]
    for path in sorted([*(ROOT / "tools/crisis").glob("[!g]*_zh*.txt"), *(ROOT / "tools/gates").glob("*_zh_*.txt")]):
        others += [("unlabelled", [line]) for line in path.read_text("utf-8").splitlines()]
    dialogues = [*chinese(data, "even"), *smilechat(data / "raw/smilechat_zh.jsonl")]
    others += [("smile", [turn.content for turn in one.messages]) for one in dialogues]
    even = (row for row in rows(data / "raw/kdconv_dev_zh.jsonl") if in_half(row["id"], "even"))
    others += [("kdconv", [turn["content"] for turn in row["messages"]]) for row in even]
    for row in json.loads((data / "raw/emollm_aiwei_zh.json").read_text("utf-8")):
        said = [text.replace("艾薇", "") for turn in row["conversation"] for text in (turn["input"], turn["output"])]
        others.append(("smile", said))
    with (data / "safety/cold_train.csv").open(encoding="utf-8", newline="") as opened:
        others += [("treebank", [row["TEXT"]]) for row in [*csv.DictReader(opened)][::4]]
    for sentence in (data / "ner/zh/GSDSIMP/zh_gsdsimp-ud-train.iob2").read_text("utf-8").split("\n\n")[::2]:
        words = [line.split("\t")[1] for line in sentence.splitlines() if "\t" in line and line[0] != "#"]
        others.append(("treebank", ["".join(words)]))
    yield from (Talk(source, texts, [[] for _ in texts]) for source, texts in others)


def labelled(talk: Talk) -> Iterator[tuple[Mention, bool, float]]:
    """The candidates of a talk, whether each is private, and its weight."""
    taken, structured = list[list[Span]](), list[list[Span]]()
    for text, private in zip(talk.texts, talk.private, strict=True):
        values = [Span(*place, 1.0) for place in private if place[2] not in ("PERSON", "ORGANIZATION")]
        people = [Span(*place, 1.0) for place in private if place[2] == "PERSON"]
        allowed = [stays for stays in find_allowed(plain(text), "zh") if not any(map(stays.overlaps, people))]
        structured.append(find_structured(normalize_text(text), "zh"))
        taken.append([*(span for span in (*values, *structured[-1]) if span.type != "ADDRESS"), *allowed])
    placed, names = read_dialogue(talk.texts, taken)
    together = [[*ours, *found] for ours, found in zip(placed, structured, strict=True)]
    for mention in (*names, *value_mentions(talk.texts, together)):
        own = talk.private[mention.message]
        over = [place for place in own if mention.start < place[1] and place[0] < mention.end]
        named = mention.type in ("PERSON", "ORGANIZATION")
        if talk.source == "unlabelled" and SHAPES[ord(mention.description[slot(mention)]) - 0xE000] not in SURELY_NONE:
            continue
        known = talk.source in ("smile", "kdconv") and PRIVATE.search(mention.name) is not None
        exact = known or (mention.start, mention.end, mention.type) in over or bool(over and not named)
        weight = OF_PRIVATE if known else WEIGHTS.get(talk.source, 1.0)
        yield mention, exact, weight if exact or not over else weight * BOUNDS


def slot(mention: Mention) -> int:
    """Where the candidate stands in its description."""
    found = _SLOT.search(mention.description)
    return found.start() if found else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--without", nargs="*", default=[], help="sets that are not learned from")
    parser.add_argument("--folder", type=Path, default=HOME)
    options = parser.parse_args()
    data, draw = Path(os.environ["H2HTALK_DATA"]), random.Random(5)
    examples = list[tuple[str, bool, float]]()
    earlier = [turn.content for one in chinese(data, "even") for turn in one.messages]
    for talk in talks(data, options.without):
        for mention, private, weight in labelled(talk):
            read = mention.description
            examples.append((read, private, weight))
            room = (30 if mention.type in ("PERSON", "ORGANIZATION") else 120) - slot(mention)
            if talk.source in ("line", "unlabelled") and room > 0:  # also as it would be read in a dialogue
                examples.append((draw.choice(earlier)[-room:] + read, private, weight))
            if talk.source == "smile" and mention.message:  # and alone
                examples.append((read[max(read.find("\n", 0, 30), 0) :], private, weight))
    reads, labels, weights = zip(*examples, strict=True)
    keys = FEATURES.keys(reads)
    owners, buckets = keys >> FEATURES.bits, keys & ((1 << FEATURES.bits) - 1)
    table = csr_matrix((1 / np.sqrt(np.bincount(owners) + SMOOTH)[owners], (owners, buckets)), (len(reads), 1 << 16))
    model = LogisticRegression(C=C, solver="liblinear", random_state=0).fit(table, labels, sample_weight=weights)
    scale = float(np.quantile(np.abs(model.coef_[0]), 0.99999)) / 127
    manifest = {
        "language": "zh",
        "features": asdict(FEATURES),
        "scale": scale,
        "bias": float(model.intercept_[0]),
        **LEAST,
        "learned_from": {"private": sum(labels), "others": len(labels) - sum(labels)},
        "texts_sha256": hashlib.sha256("\n".join(reads).encode("utf-8", "surrogatepass")).hexdigest(),
    }
    write_classifier(
        options.folder, "zh", manifest, np.clip(np.round(model.coef_[0] / scale), -127, 127).astype(np.int8)
    )
    print(manifest["learned_from"], (options.folder / "zh.weights").stat().st_size)


if __name__ == "__main__":
    main()
