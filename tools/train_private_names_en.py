"""Train the classifier that tells private names in English chat from public ones and from other words.

    H2HTALK_DATA=... python tools/train_private_names.py [--blind SOURCE]

Names of private people and organisations are those of the chats that were written for this (tools/names/), of
development sets, of mail and reviews in the Web Treebank, and of MemoryBank's users. Everything else in them, in the
even halves of Topical-Chat and CounselChat, in news and in tweets is none; in tweets people's names are left out, as
nobody said whose they are. Thresholds come from models that saw nothing of an item. `--blind`: measure a model that saw
nothing of a source, and write nothing.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sample_readings import in_half
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.anonymize.engine.analyzer import DialogueText
from h2htalk.curation.anonymize.english.persons import RARE, is_word, words
from h2htalk.curation.anonymize.english.private_names import BITS, FOLDER, bucket, features_near, features_of
from h2htalk.curation.anonymize.english.recognizer import Candidate, read_message
from h2htalk.curation.safety.ngram_classifier import SMOOTH

ROOT = Path(__file__).parents[1]
SETS = (
    "dev_chat_en",
    "dev_chat2_en",
    "dev_names_en",
    "practice_en",
    "practice2_en",
    "dev_chat_stay_en",
    "negatives3_en",
)
_MESSAGES = 3
TALK = ("dev_chat_en", "dev_chat2_en", "dev_names_en", "counsel")  # what may stand around a line
PUBLIC = ("topical", "counsel", "memory", "tweets", "treebank PUBLIC", "treebank unsure", "treebank PERSON")
PRIVATE_GENRES = ("email", "reviews")
C, FOLDS = 30.0, 3
WEIGHT, OF_LINES = 3.0, 3.0  # of a private name, and of other words in lines written for this project
# At most this share of a source's items without private data has a name, or an organisation.
MARKED = {"name": {"topical": 0.06}, "ORGANIZATION": {"treebank PUBLIC": 0.01}}
AGAIN = 1.5  # so much less evidence does a name need that the dialogue says elsewhere, and more one of a public person
# Where people who answer on CounselChat sign, or are spoken to: the row, and the place in the answer.
SIGNED = {
    76: (1605, 1610), 132: (2619, 2632), 357: (1658, 1667), 519: (3, 10), 603: (1587, 1600), 604: (1353, 1358),
    626: (1323, 1335), 632: (1830, 1843), 643: (3491, 3505), 742: (2619, 2632), 783: (1317, 1324),
}  # fmt: skip
# Surnames and rarer given names that are no words.
RARER = sorted(
    w for w in words().surnames | words().given.keys() if words().given.get(w, RARE) == RARE and not is_word(w)
)
_NAMED = re.compile(r"\[\[(.+?)\]\]|\{\{(.+?)\}\}")


class Item(NamedTuple):
    """A dialogue: its texts and the private values in each (start, end, type)."""

    source: str
    id: str
    texts: list[str]
    spans: list[list[tuple[int, int, str]]]


class Example(NamedTuple):
    """A candidate: the buckets of its features, whether it is private, its item, and its kind."""

    buckets: list[int]
    private: bool
    item: Item
    kind: str


def read_rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def items(data: Path) -> Iterator[Item]:
    for name in SETS:
        for row in read_rows(ROOT / f"tests/curation/anonymize/sets/{name}.jsonl"):
            spans = [(one["start"], one["end"], one["type"]) for one in row.get("spans", [])]
            yield Item(name, row["id"], [row["text"]], [spans])
    for path in sorted((Path(__file__).parent / "names").glob("*_en_*.jsonl")):
        for number, row in enumerate(read_rows(path)):
            marked = [_marked(message["content"]) for message in row["messages"]]
            yield Item(path.stem, f"{path.stem}{number}", [text for text, _ in marked], [spans for _, spans in marked])
    for user, days in json.loads((data / "raw/memorybank_en.json").read_text(encoding="utf-8")).items():
        for date, turns in days["history"].items():
            texts = [turn[side] for turn in turns for side in ("query", "response")]
            own = re.compile(rf"\b{re.escape(user.strip())}\b")
            yield Item("memory", user + date, texts, [[(*m.span(), "PERSON") for m in own.finditer(t)] for t in texts])
    for row in read_rows(data / "raw/topical_chat_valid_en.jsonl"):
        if in_half(row["id"], "even"):
            yield Item("topical", row["id"], texts := [m["content"] for m in row["messages"]], [[]] * len(texts))
    with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as opened:
        for number, row in enumerate(csv.DictReader(opened)):
            if row["questionText"] and in_half(row["questionText"], "even"):
                texts = [f"{row['questionTitle']}\n{row['questionText']}", row["answerText"] or "-"]
                yield Item(
                    "counsel", row["questionID"], texts, [[], [(*SIGNED[number], "PERSON")] if number in SIGNED else []]
                )
    for part in "abefgh":
        tweets = (data / f"ner/en/BTC/{part}.conll").read_text(encoding="utf-8").split("\n\n")
        for number, tweet in enumerate(tweets[::2]):
            text, spans = _joined(
                [(line.split()[0], line.split()[-1]) for line in tweet.splitlines() if " " in line or "\t" in line]
            )
            yield Item("tweets", f"{part}{number}", [text], [spans])
    yield from _treebanks(data / "ner/en")


def _treebanks(folder: Path) -> Iterator[Item]:
    """Documents of the Web Treebank, and sentences of news: of whom mail and reviews speak is private."""
    for path in sorted(folder.glob("UNER_*/*.iob2")):
        for document in re.split(r"(?m)^# newdoc id = ", path.read_text(encoding="utf-8")):
            genre = document.partition("-")[0]
            kind = "PERSON" if genre in PRIVATE_GENRES else "" if genre == "answers" else "PUBLIC"
            rows = [
                [line.split("\t")[1:3] for line in one.splitlines() if line[:1].isdigit()]
                for one in document.split("\n\n")
            ]
            joined = [_joined([(word, tag) for word, tag in row], kind) for row in rows if row]
            for at in range(0, len(joined), 20):
                some = joined[at : at + 20]
                yield Item(
                    f"treebank {kind or 'unsure'}", document[:40] + str(at), [t for t, _ in some], [g for _, g in some]
                )


def _joined(words: Sequence[tuple[str, str]], kind: str = "") -> tuple[str, list[tuple[int, int, str]]]:
    """Words with a space between them, and where people's names (runs of PER) stand."""
    text, spans = "", list[tuple[int, int, str]]()
    for word, tag in words:
        start = len(text) + bool(text)
        text += f" {word}" if text else word
        if tag.endswith("PER") and kind != "PUBLIC":
            inner = tag[0] == "I" and spans and spans[-1][1] == start - 1
            spans[-1:] = [(spans[-1][0], len(text), kind)] if inner else [*spans[-1:], (start, len(text), kind)]
    return text, spans


def _marked(content: str) -> tuple[str, list[tuple[int, int, str]]]:
    """A text without the marks of names, and the places of the private ones."""
    text, spans, at = "", [], 0
    for match in _NAMED.finditer(content):
        text += content[at : match.start()]
        spans += [(len(text), len(text) + len(match[1]), "PERSON")] if match[1] else []
        text += match[1] or match[2]
        at = match.end()
    return text + content[at:], spans


def examples(item: Item, others: Sequence[str]) -> Iterator[Example]:
    """The candidates of an item; again with other names, and where one text is all also with other lines around it."""
    yield from _examples(item)
    if item.source not in PUBLIC and any(map(any, item.spans)):
        yield from _examples(_renamed(item))
    if len(item.texts) == 1 and item.source not in PUBLIC:
        chosen = random.Random(item.id).sample(list(others), 2 * _MESSAGES)
        texts = [*chosen[:_MESSAGES], *item.texts, *chosen[_MESSAGES:]]
        yield from _examples(item._replace(texts=texts, spans=[[]] * _MESSAGES + item.spans), only=_MESSAGES)


def _renamed(item: Item) -> Item:
    """The item with other names, rarer ones, in the place of those of one word; other spans keep their texts."""
    drawn, chosen = random.Random(item.id), dict[str, str]()
    texts, places = [], []
    for text, spans in zip(item.texts, item.spans, strict=True):
        made, moved, at = "", list[tuple[int, int, str]](), 0
        for start, end, kind in sorted(spans):
            name = text[start:end]
            if kind == "PERSON" and name.isalpha():
                other = chosen.setdefault(name.lower(), drawn.choice(RARER))
                name = other.title() if name.istitle() else other
            made += text[at:start] + name
            moved.append((len(made) - len(name), len(made), kind))
            at = end
        texts.append(made + text[at:])
        places.append(moved)
    return item._replace(texts=texts, spans=places)


def _examples(item: Item, only: int | None = None) -> Iterator[Example]:
    parts = DialogueText(item.texts, "en").parts
    messages = [read_message(part.plain, [*part.structured, *part.allowed]) for part in parts]
    nears = features_near([message.tokens for message in messages])
    for at, (message, near, spans) in enumerate(zip(messages, nears, item.spans, strict=False)):
        if only not in (None, at):
            continue
        firsts: dict[tuple[int, int, str], Candidate] = {}
        others = []
        for one in message.candidates:
            start = message.tokens.starts[one.first]
            within = [span for span in spans if span[0] < message.tokens.ends[one.end - 1] and start < span[1]]
            if within and within[0][2] == (one.kind or "PERSON"):
                firsts.setdefault(within[0], one)
            elif not within:
                others.append(one)
        for private, found in ((True, firsts.values()), (False, others)):
            for one in found:
                features = features_of(message.tokens, one.first, one.end, one.kind) | near
                yield Example(sorted({bucket(feature) for feature in features}), private, item, one.kind)


def matrix(found: Sequence[Example]) -> sparse.csr_matrix:
    sizes = [len(one.buckets) for one in found]
    values = np.repeat([1 / math.sqrt(size + SMOOTH) for size in sizes], sizes)
    columns = np.concatenate([one.buckets for one in found])
    return sparse.csr_matrix((values, columns, np.cumsum([0, *sizes])), shape=(len(found), 1 << BITS))


def fit(rows: sparse.csr_matrix, private: NDArray[np.bool_], weights: NDArray[np.float64]) -> LogisticRegression:
    return LogisticRegression(C=C, solver="liblinear", random_state=0).fit(rows, private, sample_weight=weights)


def threshold(found: Sequence[Example], scores: NDArray[np.float64], kind: str, source: str, share: float) -> float:
    """The log-odds that at most this share of a source's items exceeds."""
    highest: dict[str, float] = {}
    for one, score in zip(found, scores, strict=True):
        if one.item.source == source:
            highest[one.item.id] = max(highest.get(one.item.id, -99.0), score if one.kind == kind else -99.0)
    return round(float(np.quantile(list(highest.values()), 1 - share)), 3)


def report(found: Sequence[Example], scores: NDArray[np.float64], least: dict[str, float]) -> None:
    for source in dict.fromkeys(one.item.source for one in found):
        for kind in ("", "ORGANIZATION"):
            above = [
                (one.private, score >= least[kind or "name"])
                for one, score in zip(found, scores, strict=True)
                if one.item.source == source and one.kind == kind
            ]
            private = [mark for is_private, mark in above if is_private]
            marks = [mark for is_private, mark in above if not is_private]
            print(
                f"{source:18} {kind or 'PERSON':13} found {sum(private)}/{len(private)} false {sum(marks)}/{len(marks)}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--blind", default="")
    options = parser.parse_args()
    gathered = list(items(Path(os.environ["H2HTALK_DATA"])))
    talk = [text for item in gathered if item.source in TALK for text in item.texts if len(text) < 400]
    found = [one for item in gathered for one in examples(item, talk)]
    rows, private = matrix(found), np.array([one.private for one in found])
    if options.blind:
        folds = np.array([int(one.item.source != options.blind) for one in found])
    else:
        folds = np.array([zlib.crc32(one.item.id.encode()) % FOLDS for one in found])
    folds = np.where(
        [one.item.source == "topical" for one in found],
        [zlib.crc32(one.item.id.encode()) % (2 if options.blind else FOLDS) for one in found],
        folds,
    )
    others = [1.0 if one.item.source in PUBLIC else OF_LINES for one in found]
    weights = np.where(private, WEIGHT, others)
    scores = np.zeros(len(found))
    for fold in range(1 if options.blind else FOLDS):
        other = folds != fold
        scores[~other] = fit(rows[other], private[other], weights[other]).decision_function(rows[~other])
    tested = [n for n in range(len(found)) if not options.blind or folds[n] == 0]
    found, scores = [found[n] for n in tested], scores[tested]
    least = {
        name: max(threshold(found, scores, kind, source, share) for source, share in MARKED[name].items())
        for name, kind in (("name", ""), ("ORGANIZATION", "ORGANIZATION"))
    }
    least |= {"again": least["name"] - AGAIN, "public": least["name"] + AGAIN}
    report(found, scores, least)
    print(least)
    if options.blind:
        return
    model = fit(rows, private, weights)
    scale = float(np.quantile(np.abs(model.coef_), 0.9999)) / 127
    learned = np.clip(np.round(model.coef_[0] / scale), -127, 127).astype(np.int8)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "en.weights").write_bytes(zlib.compress(learned.tobytes(), 9))
    manifest = {"scale": scale, "bias": float(model.intercept_[0]), "least": least}
    (FOLDER / "en.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    print((FOLDER / "en.weights").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
