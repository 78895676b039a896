"""Train the classifiers of the companion's turns (h2htalk/detect/safety/companion.py).

    H2HTALK_DATA=... python tools/train_companion.py

Learns from tools/companion/{lines,talks,days}_LANGUAGE_AUTHOR.jsonl (the briefs beside them say how they were
written), and, as what is harmless, from dialogues about dangers and their look-alikes (tools/crisis), the bundled cases
and the halves for development of ordinary dialogues (SHA-256 of the id is even). Thresholds and the printed figures
come from models that saw nothing by the same authors. scikit-learn is used here alone.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from crisis.left_out import FEATURES, Readings
from crisis.texts import CRISIS, by_writer, harmless
from numpy.typing import NDArray
from safety.corpora import is_even
from safety.shipping import write_classifier
from scipy.sparse import vstack
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.release.content import item_texts
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Scenario, Turn
from h2htalk.data.splits import load_split
from h2htalk.detect.hashed import JointClassifier
from h2htalk.detect.safety.companion import (
    CONTEXT,
    DATA,
    KINDS,
    PARTS,
    combined,
    companion_turns,
    judge,
)
from h2htalk.detect.safety.text_folding import fold_spelling

HOME = Path(__file__).parents[1] / "h2htalk/detect" / DATA
LINES = Path(__file__).parent / "companion"
GOLDEN = Path(__file__).parents[1] / "tests/curation/golden"
# The kind of a line -> what its user's turns are about; harmless lines take it from harmful ones to the same turns.
TOPICS = dict.fromkeys(("means", "encouragement", "agreement", "dismissal"), "self")
TOPICS |= {kind: kind for kind in ("violence", "minors", "explicit")}
ORDINARY, THREADS, CHAT, DAYS, CARE, OTHER = "ordinary", "threads", "chat", "days", "care", "other"
OTHERS = (ORDINARY, THREADS, CHAT, DAYS, CARE)  # topics of harmless pairs that are of no kind
# Lines of other classifiers that are contexts of a kind, and those that are of none.
SPOKEN = {"crisis": "self", "means": "self", "threat": "violence", "harmless": OTHER, "near": OTHER}
SPOKEN_EACH = 250
MESSAGES_EVERY = 4
# Categories of DiaSafety whose safe answers are harmless here too; those to people at risk are of both kinds.
SAFE = ("Toxicity Agreement", "Biased Opinion", "Unauthorized Expertise")
FOLDS = 5
BUNDLED = (
    10.0  # weight of a bundled reference: one that seemed harmful would raise the threshold for all
)
COST = {"context": 30.0, "answer": 10.0, "talk": 30.0}
# Of ordinary answers, of look-alikes by other authors, and of what companions say on days without danger (DAYS), and
# in danger (CARE), at most these shares pass each threshold of one kind; half of the look-alikes use a kind's words.
PASSING = {
    "faint": (0.001, 0.05, 0.03),
    "review": (0.0003, 0.01, 0.002),
    "remove": (0.00001, 0.0008, 0.0003),
}
LOWER = {
    "zh": 1.75
}  # how far below that the threshold of review of `self` lies, chosen on sets for development
LOOK_ALIKES = {"self": 1.0, "violence": 0.7, "minors": 0.5, "explicit": 2.0}
SMALL = 2  # weights of at most so many steps of 127 are left out: half of the bytes, and they find no more
# Where a classifier may remove by itself. In English support chat (ESConv dev, which nothing learns from) 4 % of the
# dialogues would be removed wrongly, so English findings are for people (DESIGN 6.10).
REMOVES = ("zh",)
NEVER = 1000.0
# By how much surer a sentence must be that is read alone, at least; chosen on development sets, whole and diluted.
ALONE = {"self": 3.0, "violence": 1.5, "minors": 1.5, "explicit": 2.0}
MARGIN = 0.1  # how far thresholds stay above a bundled reference, and from each other

Array = NDArray[np.float64]


class Pair(NamedTuple):
    """A companion's answer after the user's turns: who wrote it, whether it does harm, what the turns are about."""

    author: str
    harmful: bool
    topic: str
    context: str
    answer: str


def turns_of(messages: Iterable[Mapping[str, str]], user: str = "user") -> list[Turn]:
    return [
        Turn("user" if one["role"] == user else "companion", one["content"]) for one in messages
    ]


def turns_of_pairs(pairs: Iterable[tuple[str, str]]) -> list[Turn]:
    return [
        turn for said, answer in pairs for turn in (Turn("user", said), Turn("companion", answer))
    ]


def authored(
    kind: str, language: Language, folder: Path = LINES
) -> list[tuple[str, str, list[Turn]]]:
    """What authors wrote under a name: author, kind and turns."""
    return [
        (f"{folder.name} {path.stem}", row["kind"], turns_of(row["messages"]))
        for path in sorted(folder.glob(f"{kind}_{language}_*.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    ]


def written(language: Language) -> Iterator[Pair]:
    """The last turns of the authors' lines."""
    rows = [
        (author, kind, *list(companion_turns(turns))[-1])
        for author, kind, turns in authored("lines", language)
    ]
    topics = {
        (author, context): TOPICS[kind] for author, kind, _, context, _ in rows if kind in TOPICS
    }
    for author, kind, _, context, answer in rows:
        yield Pair(author, kind in TOPICS, topics.get((author, context), OTHER), context, answer)


def ordinary(language: Language, data: Path) -> Iterator[Pair]:
    """Harmless answers: bundled cases and scenarios, clean items of two development sets, ordinary dialogues."""
    for author, topic, turns in _ordinary(language, data):
        for _, context, answer in companion_turns(turns):
            if context or topic != ORDINARY:
                yield Pair(author, False, topic, context, answer)


def _ordinary(language: Language, data: Path) -> Iterator[tuple[str, str, Sequence[Turn]]]:
    for name, topic in (("high_risk", CARE), ("instructions", CHAT), ("arcs", CHAT)):
        yield from (
            (one.id, topic, item_texts(one))
            for one in load_split(name).cases
            if one.language == language
        )
    scenarios = list(load_split("mini").scenarios)
    for name in ("release_clean", "release2_clean"):
        lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        scenarios += [Scenario.from_dict(json.loads(line)["item"]) for line in lines]
    for one in scenarios:
        said = list(one.turns) or [turn for turn in item_texts(one) if turn.role == "user"]
        for reference in one.references if one.language == language else ():
            yield one.id, CHAT, [*said, Turn("companion", reference)]
    for author, kind, turns in authored("talks", language):
        yield author, CARE if kind == CARE else CHAT, turns
    talks = [one for name in ("talks", "more*") for one in authored(name, language, CRISIS)]
    for author, kind, turns in (*authored("days", language), *talks):
        yield author, DAYS if kind in (DAYS, "look_alike") else CARE, turns
    if language == "en":
        for number, row in enumerate(
            json.loads((data / "safety/diasafety_train.json").read_text(encoding="utf-8"))
        ):
            if row["label"] == "Safe" and row["category"] in SAFE:
                yield (
                    f"diasafety-{number}",
                    THREADS,
                    turns_of_pairs([(row["context"], row["response"])]),
                )
    yield from (
        (name, ORDINARY, turns) for name, turns in dialogues(language, data) if is_even(name)
    )


def hash_of(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest(), 16)


def dialogues(language: Language, data: Path) -> Iterator[tuple[str, list[Turn]]]:
    """Ordinary dialogues with free licences (data/SOURCES.md): id and turns."""
    if language == "en":
        with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                question = f"{row['questionTitle']}\n{row['questionText']}"
                yield (
                    f"counselchat-{row['questionID']}",
                    turns_of_pairs([(question, row["answerText"])]),
                )
    files = {
        "en": {"topical_chat_valid_en": "agent_1"},
        "zh": {"smilechat_zh": "client", "smilechat_zh_2": "client", "kdconv_dev_zh": "speaker_1"},
    }
    for name, user in files[language].items():
        for record in map(
            json.loads, (data / f"raw/{name}.jsonl").read_text(encoding="utf-8").splitlines()
        ):
            yield record["id"], turns_of(record["messages"], user)
    if language == "zh":
        for number, talk in enumerate(
            json.loads((data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))
        ):
            yield (
                f"emollm-{number}",
                turns_of_pairs((one["input"], one["output"]) for one in talk["conversation"]),
            )
    memory = json.loads((data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    for user, record in memory.items():
        for day, talk in record["history"].items():
            yield (
                f"memorybank-{user}-{day}",
                turns_of_pairs((one["query"], one["response"]) for one in talk),
            )


class Learning:
    """All pairs of a language, and the classifiers of each kind over any of them."""

    def __init__(self, language: Language, data: Path) -> None:
        self.pairs = [*written(language), *ordinary(language, data)]
        spoken = [
            (topic, text)
            for kind, topic in SPOKEN.items()
            for texts in by_writer(CRISIS, language, kind).values()
            for text in sorted(texts, key=hash_of)[:SPOKEN_EACH]
        ]
        # Single messages of the web, treebanks and support: contexts of no kind.
        plain = [
            one.text
            for one in harmless(language, data)
            if not one.source.startswith(("own", "diasafety"))
        ]
        spoken += [(OTHER, text) for text in plain[::MESSAGES_EVERY]]
        self.topic = np.array([one.topic for one in self.pairs])
        self.harmful = np.array([one.harmful for one in self.pairs])
        self.own = ~np.isin(self.topic, OTHERS)
        self.bundled = np.array(
            [not one.author.startswith((LINES.name, CRISIS.name)) for one in self.pairs]
        )
        self.bundled &= np.isin(self.topic, (CARE, CHAT))
        authors = sorted({one.author for one in self.pairs if one.topic not in OTHERS})
        numbers = {name: number for number, name in enumerate(authors)}
        self.fold = np.array(
            [numbers.get(one.author, hash_of(f"fold {one.author}")) % FOLDS for one in self.pairs]
        )
        given = (
            [fold_spelling(one.context, language)[-CONTEXT:] or " " for one in self.pairs],
            [fold_spelling(one.answer, language) or " " for one in self.pairs],
            [fold_spelling(text, language) for _, text in spoken],
        )
        self.contexts, self.answers, self.spoken = (Readings.of(texts, language) for texts in given)
        self.spoken_topic = np.array([topic for topic, _ in spoken])
        texts = sorted(f"{one.context}\0{one.answer}\0{one.harmful}" for one in self.pairs)
        texts += [text for _, text in spoken]
        self.sha256 = hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()

    def fit(self, kind: str, part: str, chosen: NDArray[np.bool_]) -> LogisticRegression:
        """One classifier, learned from the chosen pairs."""
        texts = self.answers
        labels = self.harmful & (self.topic == kind)
        if part == "context":
            texts = self.contexts
            labels = self.topic == kind
            chosen = chosen & (self.topic != CARE)
            weights = np.where(
                self.topic == ORDINARY, 4.0, np.where(self.topic == THREADS, 1.0, 2.0)
            )
        elif part == "answer":
            good = (self.own & ~self.harmful) | np.isin(self.topic, (CHAT, DAYS, CARE))
            chosen = chosen & ((self.topic == kind) | good)
            weights = np.where(self.topic == kind, 2.0, np.where(self.bundled, BUNDLED / 4, 0.5))
        else:
            chosen = chosen & (labels | ~self.harmful)
            weights = np.where(self.bundled, BUNDLED, 2.0)
            weights[np.isin(self.topic, (ORDINARY, THREADS, DAYS))] = 1.0
        rows = texts.rows[texts.whole[chosen]]
        labels = labels[chosen]
        weights = weights[chosen]
        if part == "context":
            rows = vstack([rows, self.spoken.rows[self.spoken.whole]])
            labels = np.concatenate([labels, self.spoken_topic == kind])
            weights = np.concatenate([weights, np.full(len(self.spoken_topic), 0.5)])
        model = LogisticRegression(C=COST[part], solver="liblinear", random_state=0, tol=1e-3)
        return model.fit(rows, labels, sample_weight=weights)

    def values(self, kind: str, learned: NDArray[np.bool_]) -> Array:
        """What `combined` makes of the scores of three classifiers that learned from some pairs, a row a pair."""
        parts = zip((self.contexts, self.answers, self.answers), PARTS, strict=True)
        scores = [
            column
            for texts, part in parts
            for column in texts.scores(self.fit(kind, part, learned))
        ]
        return np.array([combined(row) for row in zip(*scores, strict=True)])


def combine(values: Array, bad: NDArray[np.bool_], own: NDArray[np.bool_]) -> list[float]:
    """The coefficients of `combined`, the constant last; look-alikes count five times as much as ordinary answers."""
    mean = values.mean(0)
    spread = values.std(0)
    weights = np.where(own & ~bad, 5.0, 1.0)
    model = LogisticRegression(C=1.0, max_iter=2000).fit(
        (values - mean) / spread, bad, sample_weight=weights
    )
    scaled = model.coef_[0] / spread
    return [*(float(one) for one in scaled), float(model.intercept_[0] - scaled @ mean)]


def train(language: Language, data: Path) -> tuple[dict[str, Any], NDArray[np.int8]]:
    """The manifest and the weights of a language."""
    learning = Learning(language, data)
    manifest: dict[str, Any] = {"language": language, "features": asdict(FEATURES[language])}
    manifest |= {"scales": [], "biases": []}
    rows = []
    for kind in KINDS:
        bad = learning.harmful & (learning.topic == kind)
        used = bad | ~learning.harmful
        values = np.zeros((len(bad), len(combined([0.0] * 6))))
        for fold in range(FOLDS):
            tested = learning.fold == fold
            values[tested] = learning.values(kind, ~tested)[tested]
        totals = np.zeros(len(bad))
        for fold in range(FOLDS):
            tested = learning.fold == fold
            *slope, constant = combine(
                values[used & ~tested], bad[used & ~tested], learning.own[used & ~tested]
            )
            totals[tested] = values[tested] @ np.array(slope) + constant
        manifest[kind] = settings = {
            "combine": combine(values[used], bad[used], learning.own[used])
        }
        chosen = (
            learning.topic == ORDINARY,
            learning.own & ~learning.harmful,
            learning.topic == DAYS,
        )
        sets = [totals[one] for one in (*chosen, learning.topic == CARE)]
        for name, (of_plain, of_alike, of_days) in PASSING.items():
            shares = (of_plain, of_alike * LOOK_ALIKES[kind], of_days, of_days)
            most = (np.quantile(one, 1 - share) for one, share in zip(sets, shares, strict=True))
            less = LOWER.get(language, 0.0) * (kind == "self" and name == "review")
            settings[name] = round(float(max(most)) - less, 4)
        settings["another_authors"] = {
            n: round(float((totals[bad] >= settings[n]).mean()), 3) for n in PASSING
        }
        print(language, kind, settings["another_authors"], flush=True)
        for part in PARTS:
            model = learning.fit(kind, part, np.ones(len(bad), bool))
            manifest["scales"].append(float(np.quantile(np.abs(model.coef_[0]), 0.99999)) / 127)
            manifest["biases"].append(float(model.intercept_[0]))
            whole = np.clip(np.round(model.coef_[0] / manifest["scales"][-1]), -127, 127)
            rows.append(np.where(np.abs(whole) > SMALL, whole, 0).astype(np.int8))
    manifest["texts_sha256"] = learning.sha256
    raise_above_bundled(
        manifest, np.array(rows), [learning.pairs[at] for at in np.flatnonzero(learning.bundled)]
    )
    return manifest, np.array(rows)


def raise_above_bundled(
    manifest: dict[str, Any], rows: NDArray[np.int8], pairs: Sequence[Pair]
) -> None:
    """Raise thresholds, and `alone`, above what the bundled references get, all of which readers confirmed."""
    language = manifest["language"]
    model = JointClassifier(FEATURES[language], np.ascontiguousarray(rows.T), manifest)

    def highest(alone: float) -> Iterator[tuple[str, dict[str, Any], float]]:
        for kind in KINDS:
            manifest[kind]["alone"] = alone
        totals = [
            [total for _, total, _, _ in judge(model, one.context, one.answer, language)]
            for one in pairs
        ]
        most = np.max([row for row in totals if row], axis=0)
        yield from (
            (kind, manifest[kind], float(total)) for kind, total in zip(KINDS, most, strict=True)
        )

    for _, settings, total in highest(NEVER):
        settings["review"] = max(settings["review"], round(total + MARGIN, 4))
        settings["remove"] = max(settings["remove"], round(settings["review"] + MARGIN, 4))
    for kind, settings, total in highest(0.0):
        settings["alone"] = max(ALONE[kind], round(total - settings["review"] + MARGIN, 4))
        if language not in REMOVES:
            settings["remove"] = settings["review"] + NEVER


def main() -> None:
    for language in LANGUAGES:
        write_classifier(HOME, language, *train(language, Path(os.environ["H2HTALK_DATA"])))


if __name__ == "__main__":
    main()
