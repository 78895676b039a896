"""Train the classifier of crises, means, minors, grooming and threats that the package ships, and set its thresholds.

    H2HTALK_DATA=... python tools/train_dangers.py [--language en] [--check]

It learns from sentences of real posts and chat, marked by readers (tools/crisis/real_*.jsonl: marks alone, the texts
lie in H2HTALK_DATA), from dialogues and lines of several authors, and from ordinary chat as what is none of it: the
even halves of Topical-Chat, KdConv and SMILE, never ESConv. Of a marked sentence the run of clauses that says most is
learned (two rounds). Thresholds come from models that saw nothing of the same dialogue or author. scikit-learn is used
here alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from crisis.left_out import FEATURES, matrix
from crisis.texts import CRISIS, by_writer, talk_of_others
from numpy.typing import NDArray
from safety.shipping import write_manifest
from sample_readings import english, in_half
from sklearn.linear_model import LogisticRegression

from h2htalk.curation.release.content import item_texts
from h2htalk.data.case import Case
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.detect.safety import crisis
from h2htalk.detect.safety.crisis import (
    ANSWER,
    CUES,
    DANGERS,
    NOW,
    ROWS,
    SORTS,
    Hit,
    crisis_cues,
    mark,
)
from h2htalk.detect.safety.text_folding import fold_spelling

HOME = Path(crisis.__file__).parents[1] / crisis.DATA
WINDOW = {"en": 120, "zh": 24}
C, FOLDS, NEVER, KEPT = 20.0, 5, -1, 0.12
REAL = {
    "en": "counsel",
    "zh": "smilechat",
}  # support: whole messages of CounselChat, which measure alone; dialogues
# Marks of `label_sentences.md` -> sort of crisis.
SORT_OF = {
    "wish": "ideation",
    "plan": "plan",
    "harm": "self_harm",
    "past": "past",
    "other": "third_party",
}
OF_CRISIS = {*SORT_OF, "means", "crisis"}
# What is no counterexample of a kind, as some of it is of the kind.
UNSURE = {
    "crisis": {"minor", "grooming"},
    "means": OF_CRISIS,
    "minor": {*OF_CRISIS, "grooming", "threat"},
    "grooming": set[str](),
    "threat": set[str](),
    NOW: OF_CRISIS,
}
# What a text counts: lines invented for one kind say less of real talk than real talk.
WEIGHTS = {
    "real": 2.0,
    "talks": 1.5,
    "plain": 0.7,
    "own": 0.3,
    "ordinary": 1.0,
    "others": 0.3,
    NOW: 1.5,
}
# The most dialogues over a threshold: ordinary ones, support without a mark of the kind, and look-alikes by authors
# that the model did not see: of the development set, and `near` a kind on purpose. `lost`: the dialogues of a danger by
# other authors that a threshold may lose where fewer of the others reach it.
MOST = {
    "crisis": {"ordinary": 0.002, "bundled": 0.005, "support": 0.006, "look_alike": 0.02},
    "means": {"ordinary": 0.002, "bundled": 0.006, "look_alike": 0.02, "lost": 0.08},
    "minor": {
        "ordinary": 0.002,
        "bundled": 0.005,
        "support": 0.009,
        "look_alike": 0.06,
        "near": 0.04,
    },
    "grooming": {
        "ordinary": 0.003,
        "bundled": 0.005,
        "support": 0.001,
        "look_alike": 0.02,
        "lost": 0.08,
    },
    "threat": {"ordinary": 0.003, "bundled": 0.009, "look_alike": 0.02, "lost": 0.08},
}
# The same of what the seeker's words say alone, where there is no answer or it speaks of other things.
ALONE = {"ordinary": 0.002, "bundled": 0.006, "support": 0.002, "near": 0.03}
CUED = {
    "ordinary": 0.003,
    "bundled": 0.005,
    "support": 0.007,
    "look_alike": 0.02,
    "near": 0.02,
}  # with a strong cue
WORTH = 3.5  # what that lowers a threshold by at most
LEAST = {
    "crisis": -2.0,
    "means": -2.0,
    "grooming": -2.0,
    "threat": -2.0,
}  # how far below it a score lies says nothing
UNHEARD = -4.0  # the least that an answer counts
READ = {"ordinary": 0.03, "support": 0.25}  # dialogues that the encoder reads for a kind
POSSIBLE = {"ordinary": 0.006, "support": 0.02}
HINT = {"ordinary": 0.03, "support": 0.15}  # it changes next to nothing
# Dialogues over the threshold of what happens now; over that of a note twice as many.
MOST_NOW = {
    "ordinary": 0.002,
    "bundled": 0.01,
    "support": 0.0005,
    "near": 0.004,
    "look_alike": 0.005,
}
PEERS = "more_peers"  # long conversations of support by authors
_SENTENCE_END = re.compile(r"(?<=[.!?。！？\n])\s*")


@dataclass(frozen=True)
class Said:
    """A turn of a seeker's: its text, marks with their weights, what it counts, and the answer."""

    text: str
    marks: Mapping[str, float]
    source: str
    answer: str | None = None


@dataclass(frozen=True)
class Talk:
    """Turns that belong together: of one dialogue, or one line."""

    group: str  # texts of one group are in one fold
    source: str  # a key of WEIGHTS, or what measures: `smile`, `topical`
    said: Sequence[Said]
    kind: str = ""  # of a dialogue by an author


def sentences(text: str) -> list[str]:
    """The sentences of a text, as readers saw them."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip(" .。！？!?\n")]


def real_texts(language: Language, data: Path) -> Iterator[tuple[str, str]]:
    """Real messages with their ids: posts of people at risk (DiaSafety), CounselChat, SMILE."""
    if language == "en":
        for number, row in enumerate(
            json.loads((data / "safety/diasafety_train.json").read_text(encoding="utf-8"))
        ):
            yield f"dia:{number}", row["context"]
        with (data / "raw/counselchat_en.csv").open(encoding="utf-8", newline="") as file:
            questions = {
                row["questionText"]: row["questionTitle"]
                for row in reversed(list(csv.DictReader(file)))
            }
        for question, title in questions.items():
            yield f"cc:{hashlib.sha256(question.encode()).hexdigest()[:12]}", f"{title}\n{question}"
    for name in ("smilechat_zh_2", "smilechat_zh") if language == "zh" else ():
        for dialogue in read_rows(data / f"raw/{name}.jsonl"):
            for at, message in enumerate(dialogue["messages"]):
                yield f"{dialogue['id']}:{at}", message["content"]


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def marks_of(written: str) -> dict[str, float]:
    """`wish,minor?` -> {"wish": 1, "minor": .4}."""
    return {
        part.strip("?"): 0.4 if part.endswith("?") else 1.0 for part in written.split(",") if part
    }


def marked_talks(language: Language, data: Path) -> Iterator[Talk]:
    """What readers marked in real posts and messages, sentence by sentence; what authors of plain words marked."""
    texts = dict(real_texts(language, data))
    for row in read_rows(CRISIS / f"real_{language}.jsonl"):
        group = row["id"].rpartition(":")[0] if language == "zh" else row["id"]
        for number, sentence in enumerate(sentences(texts[row["id"]])):
            yield Talk(
                group, "real", [Said(sentence, marks_of(row["marks"].get(str(number), "")), "real")]
            )
    for path in sorted(CRISIS.glob(f"plain_{language}_*.jsonl")):
        for row in read_rows(path):
            for number, sentence in enumerate(row["sentences"]):
                marks = marks_of(row["marks"].get(str(number), ""))
                yield Talk(path.stem, "plain", [Said(sentence, marks, "plain")])


def author_talks(path: Path, learned: bool = True) -> Iterator[Talk]:
    """The dialogues of an author; of a danger the other turns teach nothing, and of the development set none."""
    for row in read_rows(path):
        said = []
        kind = row.get("kind", "look_alike")
        for at, turn in enumerate(row["messages"]):
            if turn["role"] == "user":
                marks = {kind: 1.0} if at in row.get("at", ()) else {}
                source = "talks" if learned and (marks or kind == "look_alike") else ""
                after = (
                    row["messages"][at + 1]["content"] if at + 1 < len(row["messages"]) else None
                )
                said.append(Said(turn["content"], marks, source, after))
        yield Talk(path.stem, "talks" if learned else "dev", said, kind)


def written_talks(language: Language) -> Iterator[Talk]:
    """Dialogues of the authors, and their lines of kinds, of crises, of look-alikes and of ordinary days."""
    root = Path(__file__).parents[1]
    sets = root / "tests/curation/safety/sets"
    invented = root / f"examples/raw_{language}.jsonl"
    development, near = (
        sets / f"{name}_{language}.jsonl" for name in ("dev_kinds", "dev_crisis_lookalikes")
    )
    talks, more = (sorted(CRISIS.glob(f"{name}_{language}_*.jsonl")) for name in ("talks", "more*"))
    for path in (*talks, near, *more, invented):
        yield from author_talks(path)
    yield from author_talks(development, learned=False)
    for kind in ("crisis", *(k for k in DANGERS if k != "crisis"), "near", "harmless"):
        for writer, texts in by_writer(CRISIS, language, kind).items():
            for text in texts:
                marks = {} if kind in ("near", "harmless") else {kind: 1.0}
                yield Talk(f"own {kind} {writer}", "own", [Said(text, marks, "own")])


def talks_of_now(language: Language) -> Iterator[Talk]:
    """Messages of what happens now, and their look-alikes, which teach nothing of other kinds."""
    for path in sorted(CRISIS.glob(f"now_{language}_*.jsonl")):
        for row in read_rows(path):
            yield Talk(
                path.stem,
                NOW,
                [Said(row["text"], {NOW: 1.0} if row["kind"] == NOW else {}, NOW)],
                row["kind"],
            )


def ordinary_talks(language: Language, data: Path) -> Iterator[Talk]:
    """Ordinary dialogues and support, of sets that also measure the even halves. Of messages that readers marked the
    answers alone are learned from here."""
    if language == "en":  # whole, as they are read; sentences of theirs are learned from
        marked = {
            row["id"]: marks_of(",".join(row["marks"].values()))
            for row in read_rows(CRISIS / "real_en.jsonl")
        }
        answers = {
            one.messages[0].content: one.messages[1].content for one in english(data, "even")
        }
        for name, text in real_texts(language, data):
            if name.startswith("cc:") and name in marked:
                yield Talk(name, "counsel", [Said(text, marked[name], "counsel", answers[text])])
    seen = set[str]()  # items share beginnings; in some of `arcs` somebody is in a crisis
    for item in (item for name in ("mini", "instructions") for item in load_split(name).scenarios):
        if item.language == language and (isinstance(item, Case) or item.tags.risk == "none"):
            new = [
                turn.content
                for turn in item_texts(item)
                if turn.role == "user" and turn.content not in seen
            ]
            seen.update(new)
            if new:
                yield Talk(item.id, "bundled", [Said(text, {}, "ordinary") for text in new])
    files = {
        "en": ["topical_chat_valid_en"],
        "zh": ["kdconv_dev_zh", "smilechat_zh_2", "smilechat_zh"],
    }[language]
    read = {
        row["id"]: row["marks"].values() for row in read_rows(CRISIS / f"real_{language}.jsonl")
    }
    for name in files:
        for dialogue in read_rows(data / f"raw/{name}.jsonl"):
            if name != "smilechat_zh" and not in_half(dialogue["id"], "even"):
                continue
            said = []
            messages = dialogue["messages"]
            for at, message in enumerate(messages):
                if message["role"] != "counselor":
                    known = read.get(f"{dialogue['id']}:{at}")
                    marks = {} if known is None else marks_of(",".join(known))
                    follows = at + 1 < len(messages) and message["role"] in (
                        "client",
                        "agent_1",
                        "speaker_1",
                    )
                    after = messages[at + 1]["content"] if follows else None
                    said.append(
                        Said(
                            message["content"],
                            marks,
                            "ordinary" if known is None else "whole",
                            after,
                        )
                    )
            yield Talk(dialogue["id"], name.partition("_")[0], said)


@dataclass(eq=False)
class Corpus:
    """All turns as runs, and all answers, with their features."""

    language: Language
    talks: Sequence[Talk]
    turns: list[Said] = field(default_factory=list)
    fold: list[int] = field(default_factory=list)
    strong: list[set[str]] = field(
        default_factory=list
    )  # the categories of strong cues of each turn

    def __post_init__(self) -> None:
        """Read every turn once."""
        runs: list[str] = []
        owners: list[int] = []
        answers: list[str] = []
        answered: list[int] = []
        features = features_for(self.language)
        self.place: list[list[int]] = []
        for talk in self.talks:
            number = zlib.crc32(talk.group.encode()) % FOLDS
            if talk.source in ("talks", "dev", NOW):
                number = (ord(talk.group[-1]) - ord("a")) % FOLDS if talk.source != "dev" else NEVER
            self.place.append([])
            for one in talk.said:
                self.place[-1].append(len(self.turns))
                folded = fold_spelling(one.text, self.language)
                hits: list[Hit] = []
                for start, end in features.readings(folded):
                    marked, found = mark(folded[start:end], self.language)
                    runs.append(marked)
                    owners.append(len(self.turns))
                    hits += found
                self.strong.append({hit.category for hit in hits if not hit.weak})
                if one.answer:
                    answers.append(fold_spelling(one.answer, self.language)[:ANSWER])
                    answered.append(len(self.turns))
                self.turns.append(one)
                self.fold.append(number)
        self.owners, self.answered = np.array(owners), np.array(answered)
        self.runs, self.answers = matrix(runs, self.language), matrix(answers, self.language)
        self.folds = np.array(self.fold)
        self.written = runs
        self.chosen: dict[str, NDArray[np.bool_]] = {}
        self.digest = hashlib.sha256(
            "\n".join(sorted(runs)).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def weights(self, kind: str) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Whether each turn is of a kind, and what it counts (0: it is not learned from)."""
        strengths = np.array([of_kind(turn.marks, kind) for turn in self.turns])
        wanted = strengths > 0
        counts = np.array(
            [WEIGHTS.get(t.source, 0.0) * (t.source != NOW or kind == NOW) for t in self.turns]
        )
        own = np.array([turn.source == "own" for turn in self.turns])
        counts = np.where(
            own & wanted & (kind != "crisis"), 1.0, counts
        )  # of the other kinds hardly any is real
        mention = np.array(
            [
                1.5 if "mention" in t.marks else 0.5 if t.source == "real" else 1.0
                for t in self.turns
            ]
        )
        trusted = (
            "real" if kind != NOW else ""
        )  # marks by readers tell the kinds apart, but not when
        unsure = np.array(
            [not UNSURE[kind].isdisjoint(t.marks) and t.source != trusted for t in self.turns]
        )
        return wanted, np.where(wanted, strengths, mention * ~unsure) * counts

    def learn(self, kind: str, left_out: int = -1) -> LogisticRegression:
        """The model of the seeker's words of a kind, without a fold."""
        wanted, counts = self.weights(kind)
        if (
            kind not in self.chosen
        ):  # which runs of a turn of the kind speak of it: a cue says so first, then a model
            self.chosen[kind] = self.said_first(wanted)
            scores = self.fit(kind, wanted, counts).decision_function(self.runs)
            self.chosen[kind] = ~wanted[self.owners] | (scores >= self.most(scores)[self.owners])
        return self.fit(kind, wanted, np.where(self.folds == left_out, 0.0, counts))

    def fit(
        self, kind: str, wanted: NDArray[np.bool_], counts: NDArray[np.float64]
    ) -> LogisticRegression:
        used = self.chosen[kind] & (counts[self.owners] > 0)
        model = LogisticRegression(C=C, solver="liblinear", random_state=0)
        return model.fit(
            self.runs[used], wanted[self.owners[used]], sample_weight=counts[self.owners[used]]
        )

    def said_first(self, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Before anything is learned: of a turn of the kind the runs with a cue or a word for death, else all."""
        signs = {*crisis_cues(self.language).signs.values(), *_grave(self.language)}
        cued = np.array([not signs.isdisjoint(text) for text in self.written])
        has = np.zeros(len(self.turns), bool)
        np.logical_or.at(has, self.owners, cued)
        return ~wanted[self.owners] | cued | ~has[self.owners]

    def most(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of each turn the highest score of a run."""
        best = np.full(len(self.turns), UNHEARD)
        np.maximum.at(best, self.owners, scores)
        return best

    def learn_answers(self, kind: str, left_out: int = -1) -> LogisticRegression:
        """The model of what a companion answers to a kind."""
        turns = [self.turns[at] for at in self.answered]
        wanted = np.array([of_kind(turn.marks, kind) > 0 for turn in turns])
        counts = np.array(
            [
                1.0 if turn.source in ("talks", "ordinary", "whole", "counsel") else 0.0
                for turn in turns
            ]
        )
        counts *= np.where(wanted, 3.0, 1.0) * (self.folds[self.answered] != left_out)
        model = LogisticRegression(C=C / 2, solver="liblinear", random_state=0)
        return model.fit(
            self.answers[counts > 0], wanted[counts > 0], sample_weight=counts[counts > 0]
        )


def of_kind(marks: Mapping[str, float], kind: str) -> float:
    """How sure a turn is of a kind; 0: it is not."""
    names = OF_CRISIS if kind == "crisis" else {kind}
    return max((share for name, share in marks.items() if name in names), default=0.0)


def _grave(language: Language) -> set[str]:
    return {
        sign
        for *_, sign in crisis_cues(language).classes.find(
            {"en": "suicide", "zh": "自杀"}[language]
        )
    }


def features_for(language: Language) -> Any:
    return FEATURES[language].__class__(
        **{
            **asdict(FEATURES[language]),
            "window": WINDOW[language],
            "clauses": True,
            "sentences": False,
        }
    )


def left_out_scores(
    corpus: Corpus, kind: str, folds: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each run of some folds its score, and of each turn that of its answer, by models that did not see its fold."""
    runs = np.zeros(len(corpus.owners))
    heard = np.full(len(corpus.turns), UNHEARD)
    for fold in folds:
        inside = corpus.folds[corpus.owners] == fold
        runs[inside] = packed(corpus.learn(kind, fold)).scores(corpus.runs[inside])
        answers = (corpus.folds[corpus.answered] == fold) & (kind in DANGERS)
        if answers.any():
            heard[corpus.answered[answers]] = packed(corpus.learn_answers(kind, fold)).scores(
                corpus.answers[answers]
            )
    return runs, np.maximum(heard, UNHEARD)


class Packed(NamedTuple):
    """A model as it ships: its heaviest weights in bytes, what one of a byte is, and its bias."""

    row: NDArray[np.int8]
    scale: float
    bias: float

    def scores(self, rows: Any) -> NDArray[np.float64]:
        return np.asarray(rows @ (self.row * self.scale) + self.bias)


def packed(model: LogisticRegression) -> Packed:
    weights = model.coef_[0].copy()
    sizes = np.abs(weights)
    weights[sizes < np.quantile(sizes[sizes > 0], 1 - KEPT)] = 0.0
    scale = float(np.quantile(sizes[sizes > 0], 0.9999)) / 127
    row = np.clip(np.round(weights / scale), -127, 127).astype(np.int8)
    return Packed(row, scale, float(model.intercept_[0]))


def weigh(
    corpus: Corpus,
    kind: str,
    limits: Mapping[str, float],
    further: Sequence[NDArray[np.float64]] = (),
    words: Mapping[str, Any] | None = None,
    folds: Sequence[int] = range(NEVER, FOLDS),
) -> dict[str, Any]:
    """The coefficients of a kind (`crisis.weigh`), its thresholds, and what they find, in some folds; `further`: what
    the encoder says of each turn, where it reads any that is doubtful by the `words`."""
    runs, heard = left_out_scores(corpus, kind, folds)
    most = corpus.most(runs)
    wanted, counts = corpus.weights(kind)
    counts = np.where([turn.source == "whole" for turn in corpus.turns], 1.0, counts)
    learned = np.isin(corpus.folds, folds)
    found: dict[str, Any] = {}
    if words is None:  # of turns without an answer no weight of an answer is learned
        x = np.column_stack([most, heard])
        learned &= np.isin(np.arange(len(heard)), corpus.answered)
    else:  # the score of a window is also that of what stands beside a danger
        found["least"] = LEAST.get(kind, -99.0)
        heard = np.maximum(heard, words["unheard"])
        doubt = (
            np.column_stack([most, heard]) @ np.array(words["combine"][:-1]) + words["combine"][-1]
        )
        most, *further = (np.maximum(one, found["least"]) for one in (most, *further))
        x = np.column_stack([most, heard, *further])
        learned &= ~np.isnan(x).any(axis=1)
        known = [
            own or UNSURE[kind].isdisjoint(turn.marks)
            for own, turn in zip(wanted, corpus.turns, strict=True)
        ]
        counts = np.where([turn.source in ("", "counsel") for turn in corpus.turns], known, counts)
    learned &= counts > 0
    model = LogisticRegression(C=1.0).fit(
        x[learned], wanted[learned], sample_weight=counts[learned]
    )
    weights = [
        *np.maximum(model.coef_[0], 0.0).round(4).tolist(),
        round(float(model.intercept_[0]), 4),
    ]
    cued = np.array([not CUES[kind].isdisjoint(strong) for strong in corpus.strong])

    def best(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([values[turns].max() for turns in corpus.place])

    def strength(talk: Talk) -> float:
        return max(of_kind(one.marks, kind) for one in talk.said)

    def peers(talk: Talk) -> bool:
        return talk.kind == "look_alike" and talk.group.startswith(PEERS)

    marked = {
        talk.group
        for talk in corpus.talks
        if talk.source == REAL[corpus.language] and strength(talk)
    }
    of = {
        name: [
            n
            for n, talk in enumerate(corpus.talks)
            if corpus.folds[corpus.place[n][0]] in folds and chosen(talk)
        ]
        for name, chosen in (
            ("ordinary", lambda t: t.source in ("topical", "kdconv")),
            ("bundled", lambda t: t.source == "bundled"),
            (
                "support",
                lambda t: peers(t) or (t.source == REAL[corpus.language] and t.group not in marked),
            ),
            ("look_alike", lambda t: t.source == "dev" and t.kind == "look_alike"),
            ("near", lambda t: t.source == "talks" and t.kind == "look_alike" and not peers(t)),
            ("development", lambda t: t.source == "dev" and t.kind == kind),
            ("another author", lambda t: t.source == "talks" and t.kind == kind),
            ("real", lambda t: t.source == REAL[corpus.language] and strength(t) == 1.0),
        )
    }

    def limit(scores: NDArray[np.float64], bounds: Mapping[str, float]) -> float:
        found = {name: above(scores[of[name]], most) for name, most in bounds.items() if name in of}
        if others := bounds.get("lost"):
            found["lost"] = above(scores[of["development"] + of["another author"]], 1 - others)
        return round(max(found.values()), 4)

    totals = x @ np.array(weights[:-1]) + weights[-1]
    high = limit(best(totals), limits)
    if words is None:
        enough = (high - weights[-1] - weights[0] * limit(best(most), ALONE)) / max(
            weights[1], 1e-9
        )
        found["unheard"] = round(max(UNHEARD, enough), 4)
        totals = (
            np.column_stack([most, np.maximum(heard, found["unheard"])]) @ np.array(weights[:-1])
            + weights[-1]
        )
    best_cued = best(np.where(cued, totals, -99.0))
    found |= {"combine": weights, "high": high}
    # The encoder reads more than a cue says; and none decides by itself.
    found["cued"] = (
        high if words else round(min(high, max(limit(best_cued, CUED), high - WORTH)), 4)
    )
    if words:
        found["read"] = round(
            min(above(best(doubt)[of[name]], most) for name, most in READ.items()), 4
        )
    elif kind == "crisis":
        found |= {"possible": limit(best(totals), POSSIBLE), "hint": limit(best(totals), HINT)}
    marks = (best(totals) >= high) | (best_cued >= found["cued"])
    return found | {
        "found": {
            name: f"{int(marks[numbers].sum())} of {len(numbers)}" for name, numbers in of.items()
        }
    }


def weigh_now(corpus: Corpus) -> dict[str, Any]:
    """The thresholds of what happens now, of the seeker's words alone, and what they find by authors left out."""
    most = corpus.most(left_out_scores(corpus, NOW, range(NEVER, FOLDS))[0])
    names = {
        "topical": "ordinary",
        "kdconv": "ordinary",
        REAL[corpus.language]: "support",
        "bundled": "bundled",
    }
    of = dict[str, list[float]]()
    for talk, turns in zip(corpus.talks, corpus.place, strict=True):
        if talk.source == NOW:
            alike = "look_alike"
        elif talk.kind == "look_alike":
            alike = "near"
        else:
            alike = ""
        name = NOW if talk.kind == NOW else alike or names.get(talk.source, "")
        if not any(OF_CRISIS & turn.marks.keys() for turn in talk.said):
            of.setdefault(name, []).append(most[turns].max())

    def limit(times: float) -> float:
        return round(
            max(above(np.array(of[name]), share * times) for name, share in MOST_NOW.items()), 4
        )

    high = limit(1)
    possible = limit(2)
    found = (
        f"{sum(score >= least for score in of[NOW])} of {len(of[NOW])}"
        for least in (high, possible)
    )
    return {
        "high": high,
        "possible": possible,
        "found": dict(zip(("high", "possible"), found, strict=True)),
    }


def above(scores: NDArray[np.float64], most: float) -> float:
    """The least score that at most this share of them exceeds."""
    return float(np.quantile(scores, 1 - most, method="higher")) + 1e-4 if len(scores) else -99.0


def learn_sorts(corpus: Corpus) -> list[LogisticRegression]:
    """What sort of crisis a turn tells of, from marked turns alone."""
    names = [{SORT_OF[m] for m in turn.marks if m in SORT_OF} for turn in corpus.turns]
    wanted, _ = corpus.weights("crisis")
    known = np.array([bool(one) for one in names])
    best = corpus.learn("crisis").decision_function(corpus.runs)
    chosen = (wanted & known)[corpus.owners] & (best >= corpus.most(best)[corpus.owners])
    models = []
    for sort in SORTS:
        of_sort = np.array([sort in one for one in names])[corpus.owners[chosen]]
        models.append(
            LogisticRegression(C=C, solver="liblinear", random_state=0).fit(
                corpus.runs[chosen], of_sort
            )
        )
    return models


def all_talks(language: Language, data: Path) -> list[Talk]:
    """What is learned from and what measures."""
    talks = [
        *marked_talks(language, data),
        *written_talks(language),
        *ordinary_talks(language, data),
    ]
    talks += [
        Talk(text, "others", [Said(text, {}, "others")]) for text in talk_of_others(language, data)
    ]
    personas = (persona.descriptions[language] for persona in bundled_personas().values())
    return [*talks, *(Talk(text, "bundled", [Said(text, {}, "ordinary")]) for text in personas)]


def train(language: Language, data: Path) -> tuple[dict[str, Any], NDArray[np.int8]]:
    """The manifest and the weights (rows times buckets) of a language."""
    corpus = Corpus(language, [*all_talks(language, data), *talks_of_now(language)])
    dangers, now = {}, weigh_now(corpus)
    for kind in DANGERS:
        dangers[kind] = weigh(corpus, kind, MOST[kind])
        print(language, kind, json.dumps(dangers[kind]), flush=True)
    models = [corpus.learn(kind) for kind in DANGERS] + learn_sorts(corpus) + [corpus.learn(NOW)]
    models += [corpus.learn_answers(kind) for kind in DANGERS]
    rows, scales, biases = zip(*map(packed, models), strict=True)
    manifest = {
        "language": language,
        "features": asdict(features_for(language)),
        "rows": list(ROWS),
        "scales": scales,
        "biases": biases,
        "dangers": dangers,
        NOW: now,
        "learned_from": {
            source: sum(t.source == source for t in corpus.turns) for source in WEIGHTS
        },
        "texts_sha256": corpus.digest,
    }
    return manifest, np.array(rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--language", choices=LANGUAGES, help="only this one; both where none is named"
    )
    parser.add_argument(
        "--check", action="store_true", help="train, compare with what is shipped; write nothing"
    )
    options = parser.parse_args()
    differs = False
    for language in [options.language] if options.language else LANGUAGES:
        manifest, weights = train(language, Path(os.environ["H2HTALK_DATA"]))
        path = HOME / f"{language}.weights"
        if not options.check:
            path.write_bytes(zlib.compress(weights.tobytes(), 9))
            write_manifest(HOME, language, manifest)
        elif zlib.decompress(path.read_bytes()) != weights.tobytes():
            print(f"{language}: not what {HOME.name} holds")
            differs = True
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
