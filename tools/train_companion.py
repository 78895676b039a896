"""Train the classifiers of the companion's turns (h2htalk/curation/safety/companion.py).

    H2HTALK_DATA=... python tools/train_companion.py [--language en] [--check]

Learns from tools/companion/{lines,talks}_LANGUAGE_AUTHOR.jsonl (the briefs beside them say how they were written),
from what people in danger say (tools/crisis), and, as what is harmless, from the bundled cases and the halves for
development of ordinary dialogues (SHA-256 of the id is even). Thresholds and the printed figures come from models that
saw nothing by the same authors. scikit-learn is used here alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from crisis.texts import CRISIS, by_writer, harmless
from numpy.typing import NDArray
from safety.shipping import read_manifest, write_classifier
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.release.content import case_texts, scenario_texts
from h2htalk.curation.safety.companion import (
    CONTEXT,
    DATA,
    KINDS,
    PARTS,
    CompanionModel,
    combined,
    companion_turns,
)
from h2htalk.curation.safety.ngram_classifier import SMOOTH, Features
from h2htalk.curation.safety.text_folding import fold_spelling
from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split

HOME = Path(__file__).parents[1] / "h2htalk/curation/safety" / DATA
LINES = Path(__file__).parent / "companion"
GOLDEN = Path(__file__).parents[1] / "tests/curation/golden"
FEATURES = {
    "en": Features("splitmix", 17, characters=(4, 5), words=(1, 2, 3), gaps=True, window=400, sentences=True),
    "zh": Features("splitmix", 17, characters=(1, 2, 3, 4), words=(), gaps=True, window=400, sentences=True),
}
# The kind of a line -> what its user's turns are about; harmless lines take it from harmful ones to the same turns.
TOPICS = dict.fromkeys(("means", "encouragement", "agreement", "dismissal"), "self") | {
    kind: kind for kind in ("violence", "minors", "explicit")
}
ORDINARY, THREADS, CHAT, CARE, OTHER = "ordinary", "threads", "chat", "care", "other"
OTHERS = (ORDINARY, THREADS, CHAT, CARE)  # topics of pairs that no author wrote
# Lines of other classifiers that are contexts of a kind, and those that are of none.
SPOKEN = {"crisis": "self", "means": "self", "threat": "violence", "harmless": OTHER, "near": OTHER}
SPOKEN_EACH = 250
MESSAGES_EVERY = 4
# Categories of DiaSafety whose safe answers are harmless here too; those to people at risk are of both kinds.
SAFE = ("Toxicity Agreement", "Biased Opinion", "Unauthorized Expertise")
FOLDS = 5
COST = {"context": 30.0, "answer": 10.0, "talk": 30.0}
# Of ordinary answers, and of look-alikes by other authors, at most these shares pass each threshold of one kind. Half
# of the authors' look-alikes of sexual answers use their very words.
PASSING = {"faint": (0.001, 0.05), "review": (0.0002, 0.01), "remove": (0.00001, 0.0008)}
# Weights of at most so many steps of 127 are left out: they cost half of the bytes and find no more.
SMALL = 2
# Where a classifier may remove by itself. In English support chat (ESConv dev, which nothing learns from) 4 % of the
# dialogues would be removed wrongly, so English findings are for people (DESIGN 6.10).
REMOVES = ("zh",)
NEVER = 1000.0
# By how much surer a sentence must be that is read alone, at least; chosen on development sets, whole and diluted.
ALONE = {"self": 3.0, "violence": 1.5, "minors": 1.5, "explicit": 2.0}
# How far thresholds stay above a bundled reference, and from each other.
MARGIN = 0.1
LOOK_ALIKES = {"self": 1.0, "violence": 0.7, "minors": 0.5, "explicit": 2.0}

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """A companion's answer after the user's turns: who wrote it, whether it does harm, what the turns are about."""

    author: str
    harmful: bool
    topic: str
    context: str
    answer: str


def written(language: Language) -> Iterator[Pair]:
    """The authors' lines."""
    for path in sorted(LINES.glob(f"lines_{language}_*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        turns = [[Turn(one["role"], one["content"]) for one in row["messages"]] for row in rows]
        read = [list(companion_turns(one))[-1] for one in turns]
        topics = {
            context: TOPICS[row["kind"]]
            for row, (_, context, _) in zip(rows, read, strict=True)
            if row["kind"] in TOPICS
        }
        for row, (_, context, answer) in zip(rows, read, strict=True):
            yield Pair(path.stem, row["kind"] in TOPICS, topics.get(context, OTHER), context, answer)


def ordinary(language: Language, data: Path) -> Iterator[Pair]:
    """Harmless answers: bundled cases and scenarios, clean items of two development sets, ordinary dialogues."""
    for name, topic in (("high_risk", CARE), ("instructions", CHAT), ("arcs", CHAT)):
        for case in load_split(name).cases:
            if case.language == language:
                for _, context, answer in companion_turns(case_texts(case)):
                    yield Pair(case.id, False, topic, context, answer)
    scenarios = [scenario for scenario in load_split("mini").scenarios if scenario.language == language]
    for name in ("release_clean", "release2_clean"):
        lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        items = [Scenario.from_dict(json.loads(line)["item"]) for line in lines]
        scenarios += [one for one in items if one.language == language]
    for one in scenarios:
        turns = list(one.turns) or [turn for turn in scenario_texts(one) if turn.role == "user"]
        for reference in one.references:
            for _, context, answer in companion_turns([*turns, Turn("companion", reference)]):
                yield Pair(one.id, False, CHAT, context, answer)
    for path in sorted(LINES.glob(f"talks_{language}_*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            topic = CARE if row["kind"] == CARE else CHAT
            for _, context, answer in companion_turns([Turn(one["role"], one["content"]) for one in row["messages"]]):
                yield Pair(path.stem, False, topic, context, answer)
    if language == "en":
        for number, row in enumerate(json.loads((data / "safety/diasafety_train.json").read_text(encoding="utf-8"))):
            if row["label"] == "Safe" and row["category"] in SAFE:
                yield Pair(f"diasafety-{number}", False, THREADS, row["context"], row["response"])
    for name, turns in dialogues(language, data):
        if is_even(name):
            yield from (
                Pair(name, False, ORDINARY, context, answer) for _, context, answer in companion_turns(turns) if context
            )


def is_even(name: str) -> bool:
    """Whether a text or an id is of the half for development, by its SHA-256."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 2 == 0


def dialogues(language: Language, data: Path) -> Iterator[tuple[str, list[Turn]]]:
    """Ordinary dialogues with free licences (data/SOURCES.md): id and turns."""
    if language == "en":
        with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                question = f"{row['questionTitle']}\n{row['questionText']}"
                yield f"counselchat-{row['questionID']}", [Turn("user", question), Turn("companion", row["answerText"])]
    files = {
        "en": {"topical_chat_valid_en": "agent_1"},
        "zh": {"smilechat_zh": "client", "smilechat_zh_2": "client", "kdconv_dev_zh": "speaker_1"},
    }
    for name, user in files[language].items():
        for line in (data / f"raw/{name}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield (
                record["id"],
                [Turn("user" if one["role"] == user else "companion", one["content"]) for one in record["messages"]],
            )
    if language == "zh":
        talks = json.loads((data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))
        for number, talk in enumerate(talks):
            yield f"emollm-{number}", _turns((one["input"], one["output"]) for one in talk["conversation"])
    memory = json.loads((data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    for user, record in memory.items():
        for day, talk in record["history"].items():
            yield f"memorybank-{user}-{day}", _turns((one["query"], one["response"]) for one in talk)


def _turns(pairs: Iterator[tuple[str, str]]) -> list[Turn]:
    return [turn for said, answer in pairs for turn in (Turn("user", said), Turn("companion", answer))]


class Texts:
    """Folded texts as rows of features, the whole text first and then its sentences."""

    def __init__(self, texts: Sequence[str], language: Language) -> None:
        features = FEATURES[language]
        parts, self.first = [], [0]
        for text in texts:
            spans = features.readings(text or " ") or [(0, 1)]
            parts += [(text or " ")[start:end] for start, end in spans]
            self.first.append(len(parts))
        blocks = []
        for start in range(0, len(parts), 4096):
            block = parts[start : start + 4096]
            keys = features.keys(block)
            rows, buckets = keys >> features.bits, keys & ((1 << features.bits) - 1)
            sizes = np.bincount(rows, minlength=len(block))
            values = (1 / np.sqrt(sizes + SMOOTH))[rows]
            blocks.append(csr_matrix((values, (rows, buckets)), shape=(len(block), 1 << features.bits)))
        self.rows = vstack(blocks).tocsr()
        self.whole = np.array(self.first[:-1])

    def scores(self, model: LogisticRegression, chosen: NDArray[np.int64]) -> Array:
        """For each chosen text the score of the whole and the highest of any reading."""
        every = model.decision_function(self.rows)
        readings = (every[self.first[at] : self.first[at + 1]] for at in chosen)
        return np.array([(own[0], own.max()) for own in readings])


class Learning:
    """All pairs of a language, and the classifiers of each kind over any of them."""

    def __init__(self, language: Language, data: Path) -> None:
        self.pairs = [*written(language), *ordinary(language, data)]
        spoken = [
            (SPOKEN[kind], text)
            for kind in SPOKEN
            for texts in by_writer(CRISIS, language, kind).values()
            for text in sorted(texts, key=lambda one: hashlib.sha256(one.encode()).hexdigest())[:SPOKEN_EACH]
        ]
        # Single messages of the web, treebanks and support: contexts of no kind.
        plain = [one.text for one in harmless(language, data) if not one.source.startswith(("own", "diasafety"))]
        spoken += [(OTHER, text) for text in plain[::MESSAGES_EVERY]]
        self.topic = np.array([one.topic for one in self.pairs])
        self.harmful = np.array([one.harmful for one in self.pairs])
        self.own = ~np.isin(self.topic, OTHERS)
        authors = sorted({one.author for one in self.pairs if one.topic not in OTHERS})
        self.fold = np.array(
            [
                authors.index(one.author) % FOLDS if one.author in authors else hash_of(one.author) % FOLDS
                for one in self.pairs
            ]
        )
        folded = [fold_spelling(one.context, language)[-CONTEXT:] for one in self.pairs]
        self.contexts = Texts(folded, language)
        self.answers = Texts([fold_spelling(one.answer, language) for one in self.pairs], language)
        self.spoken = Texts([fold_spelling(text, language) for _, text in spoken], language)
        self.spoken_topic = np.array([topic for topic, _ in spoken])
        texts = sorted(f"{one.context}\0{one.answer}\0{one.harmful}" for one in self.pairs) + [
            text for _, text in spoken
        ]
        self.sha256 = hashlib.sha256("\n".join(texts).encode("utf-8", "surrogatepass")).hexdigest()

    def fit(self, kind: str, part: str, chosen: NDArray[np.bool_]) -> LogisticRegression:
        """One classifier, learned from the chosen pairs."""
        bad = self.harmful & (self.topic == kind)
        if part == "context":
            chosen = chosen & (self.topic != CARE)
            weights = np.where(self.topic == ORDINARY, 4.0, np.where(self.topic == THREADS, 1.0, 2.0))
            rows = vstack([self.contexts.rows[self.contexts.whole[chosen]], self.spoken.rows[self.spoken.whole]])
            labels = np.concatenate([self.topic[chosen] == kind, self.spoken_topic == kind])
            return self._model(
                part, rows, labels, np.concatenate([weights[chosen], np.full(len(self.spoken_topic), 0.5)])
            )
        if part == "answer":
            harmless = (self.own & ~self.harmful) | (self.topic == CHAT)
            harmless |= (self.topic == CARE) & (kind in ("self", "violence"))
            chosen = chosen & ((self.topic == kind) | harmless)
            weights = np.where(self.topic == kind, 2.0, 0.5)
        else:
            chosen = chosen & (bad | ~self.harmful)
            weights = np.where(np.isin(self.topic, (ORDINARY, THREADS)), 1.0, 2.0)
        return self._model(part, self.answers.rows[self.answers.whole[chosen]], bad[chosen], weights[chosen])

    @staticmethod
    def _model(part: str, rows: csr_matrix, labels: NDArray[np.bool_], weights: Array) -> LogisticRegression:
        model = LogisticRegression(C=COST[part], solver="liblinear", random_state=0, tol=1e-3)
        return model.fit(rows, labels, sample_weight=weights)

    def values(self, models: Sequence[LogisticRegression], chosen: NDArray[np.bool_]) -> Array:
        """What `combined` makes of the scores of three classifiers, a row a chosen pair."""
        at = np.flatnonzero(chosen)
        context, answer, talk = (
            texts.scores(model, at)
            for texts, model in zip((self.contexts, self.answers, self.answers), models, strict=True)
        )
        return np.array([combined([*c, *a, *t]) for c, a, t in zip(context, answer, talk, strict=True)])


def hash_of(name: str) -> int:
    return int(hashlib.sha256(f"fold {name}".encode()).hexdigest(), 16)


def combine(values: Array, bad: NDArray[np.bool_], own: NDArray[np.bool_]) -> list[float]:
    """The coefficients of `combined`, the constant last; look-alikes count five times as much as ordinary answers."""
    mean, spread = values.mean(0), values.std(0)
    weights = np.where(bad, 1.0, np.where(own, 5.0, 1.0))
    model = LogisticRegression(C=1.0, max_iter=2000).fit((values - mean) / spread, bad, sample_weight=weights)
    scaled = model.coef_[0] / spread
    return [*(float(one) for one in scaled), float(model.intercept_[0] - scaled @ mean)]


def train(language: Language, data: Path) -> tuple[dict[str, Any], NDArray[np.int8]]:
    """The manifest and the weights of a language."""
    learning = Learning(language, data)
    rows, scales, biases, kinds = [], [], [], {}
    passed = {name: np.zeros(len(learning.pairs), bool) for name in PASSING}
    for kind in KINDS:
        bad = learning.harmful & (learning.topic == kind)
        used = bad | ~learning.harmful
        values = np.zeros((len(bad), len(combined([0.0] * 6))))
        for fold in range(FOLDS):
            tested = learning.fold == fold
            values[tested] = learning.values([learning.fit(kind, part, ~tested) for part in PARTS], tested)
        totals = np.zeros(len(bad))
        for fold in range(FOLDS):
            seen, tested = used & (learning.fold != fold), learning.fold == fold
            *slope, constant = combine(values[seen], bad[seen], learning.own[seen])
            totals[tested] = values[tested] @ np.array(slope) + constant
        settings: dict[str, Any] = {"combine": combine(values[used], bad[used], learning.own[used])}
        plain, alike = totals[learning.topic == ORDINARY], totals[learning.own & ~learning.harmful]
        for name, (of_plain, of_alike) in PASSING.items():
            of_kind = 1 - of_alike * LOOK_ALIKES[kind]
            settings[name] = round(float(max(np.quantile(plain, 1 - of_plain), np.quantile(alike, of_kind))), 4)
            passed[name] |= totals >= settings[name]
        settings["another_authors"] = {n: round(float((totals[bad] >= settings[n]).mean()), 3) for n in PASSING}
        kinds[kind] = settings
        print(language, kind, settings["another_authors"], flush=True)
        for part in PARTS:
            model = learning.fit(kind, part, np.ones(len(bad), bool))
            scales.append(float(np.quantile(np.abs(model.coef_[0]), 0.99999)) / 127)
            biases.append(float(model.intercept_[0]))
            whole = np.clip(np.round(model.coef_[0] / scales[-1]), -127, 127)
            rows.append(np.where(np.abs(whole) > SMALL, whole, 0).astype(np.int8))
    groups = {
        "harmful": learning.harmful,
        "look_alikes": learning.own & ~learning.harmful,
        "ordinary": learning.topic == ORDINARY,
    }
    manifest = {
        "language": language,
        "features": asdict(FEATURES[language]),
        "scales": scales,
        "biases": biases,
        **kinds,
        "pairs": {name: int(chosen.sum()) for name, chosen in groups.items()},
        "another_authors": {
            name: {group: round(float(passed[name][chosen].mean()), 4) for group, chosen in groups.items()}
            for name in PASSING
        },
        "texts_sha256": learning.sha256,
    }
    print(language, json.dumps(manifest["another_authors"]), manifest["pairs"], flush=True)
    bundled = [one for one in learning.pairs if one.topic in (CARE, CHAT) and not one.author.startswith("talks")]
    raise_above_bundled(manifest, np.array(rows), bundled)
    return manifest, np.array(rows)


def raise_above_bundled(manifest: dict[str, Any], rows: NDArray[np.int8], pairs: Sequence[Pair]) -> None:
    """Raise thresholds, and `alone`, above what the bundled references get, all of which readers confirmed."""
    language, scales = manifest["language"], np.array(manifest["scales"])[:, None]
    model = CompanionModel(FEATURES[language], rows * scales, np.array(manifest["biases"]), manifest)
    for kind in KINDS:
        manifest[kind]["alone"] = NEVER
    for pair in pairs:
        for kind, total, _, _ in model.judge(pair.context, pair.answer, language):
            settings = manifest[kind]
            settings["review"] = max(settings["review"], round(total + MARGIN, 4))
            settings["remove"] = max(settings["remove"], round(settings["review"] + MARGIN, 4))
    least = dict(ALONE)
    for kind in KINDS:
        manifest[kind]["alone"] = 0.0
    for pair in pairs:
        for kind, total, _, _ in model.judge(pair.context, pair.answer, language):
            least[kind] = max(least[kind], round(total - manifest[kind]["review"] + MARGIN, 4))
    for kind in KINDS:
        manifest[kind]["alone"] = least[kind]
    for kind in () if language in REMOVES else KINDS:
        manifest[kind]["remove"] = manifest[kind]["review"] + NEVER


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--language", choices=LANGUAGES, help="only this one; both where none is named")
    parser.add_argument("--check", action="store_true", help="train, compare with what is shipped; write nothing")
    options = parser.parse_args(arguments)
    differs = False
    for language in [options.language] if options.language else LANGUAGES:
        manifest, weights = train(language, Path(os.environ["H2HTALK_DATA"]))
        if not options.check:
            HOME.mkdir(exist_ok=True)
            write_classifier(HOME, language, manifest, weights)
        elif read_manifest(HOME, language) != json.loads(json.dumps(manifest)):
            print(f"{language}: not what {HOME.name} holds")
            differs = True
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
