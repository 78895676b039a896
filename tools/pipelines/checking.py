"""The figures of the shipped pipelines on the treebanks' and name sets' test files, beside their floors."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pipelines import corpora
from pipelines.scoring import blocks, documents, raw_text, score_names, score_parser
from pipelines.segmentation import word_f1
from spacy.language import Language

from h2htalk.text.parsing import _load, load_names, load_parser
from h2htalk.text.segmenter import bundled_segmenter

# A Chinese text of the check: this many sentences of the test file together.
SENTENCES = 8
ROUNDS = 3
# What the shipped weights score, as last recorded.
RECORDED = Path(__file__).parent / "figures.json"
TOLERANCE = 0.002


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value and the least that is asked for; None where nothing is."""

    what: str
    value: float
    floor: float | None = None

    @property
    def reached(self) -> bool:
        return self.floor is None or self.value >= self.floor


def check(data: Path, *, record: bool = False) -> bool:
    """Print every figure beside its floor; whether all are reached and those of accuracy are the recorded ones.

    `record` writes the figures of accuracy down instead of comparing them.
    """
    exact = accuracy(data)
    if record:
        RECORDED.write_text(json.dumps({f.what: round(f.value, 4) for f in exact}, indent=1) + "\n")
    changed = differing(exact)
    figures = [*exact, *costs(data)]
    for figure in figures:
        floor = "" if figure.floor is None else f"  floor {figure.floor:g}"
        mark = "" if figure.reached else "  BELOW"
        note = "  NOT AS RECORDED" if figure.what in changed else ""
        value = f"{figure.value:,.0f}" if figure.value > 100 else f"{figure.value:.3f}"
        print(f"{figure.what:58} {value:>8}{floor}{mark}{note}")
    return all(figure.reached for figure in figures) and not changed


def differing(figures: Sequence[Figure]) -> list[str]:
    """Those that are not as recorded. Processors may differ in a sum's last bits, not in the third digit of an F1."""
    recorded = json.loads(RECORDED.read_text())
    return [f.what for f in figures if abs(recorded.get(f.what, -1) - f.value) > TOLERANCE]


def accuracy(data: Path) -> list[Figure]:
    return [*_english(data), *_chinese(data)]


def costs(data: Path) -> list[Figure]:
    """CPU seconds on one core: of loading (spaCy itself is imported already), and of a word."""
    sets = {
        "en": list(documents(corpora.english_trees(data, "test"), by_paragraph=True)),
        "zh": list(blocks(corpora.chinese_test(data), SENTENCES)),
    }
    figures: list[Figure] = []
    for language, texts in sets.items():
        _load.cache_clear()
        start = time.process_time()
        nlp = load_parser(language)
        loading = time.process_time() - start
        words = _speed(nlp, [raw_text(sentences) for sentences in texts])
        figures.append(Figure(f"{language} parser: words a CPU second", words, 8000))
        figures.append(Figure(f"{language} parser: loads a second (1 / CPU seconds)", 1 / loading, 1))
    return figures


def _english(data: Path) -> list[Figure]:
    test = corpora.english_trees(data, "test")
    scores = score_parser(load_parser("en"), documents(test, by_paragraph=True))
    run_together = score_parser(load_parser("en"), documents(test, by_paragraph=False))
    named = score_names(load_names("en"), corpora.english_names_test(data))
    tweets = score_names(load_names("en"), corpora.tweets_names(data, "test"))
    return [
        Figure("en parser, EWT test, raw text: words F1", scores.words.f1),
        Figure("en parser, EWT test, raw text: sentences F1", scores.sentences.f1),
        Figure("en parser, EWT test, raw text: UPOS F1", scores.upos.f1),
        Figure("en parser, EWT test, raw text: UAS F1", scores.uas.f1),
        Figure("en parser, EWT test, raw text: LAS F1", scores.las.f1, 0.81),
        Figure("en parser, EWT test, raw text: objects F1", scores.objects.f1),
        Figure("en parser, EWT test, paragraphs run together: LAS F1", run_together.las.f1),
        *(
            Figure(f"en names, UNER EWT test: {label} F1", tally.f1, 0.58 if label == "PERSON" else None)
            for label, tally in named.items()
        ),
        Figure("en names, WNUT17 test: PERSON F1", tweets["PERSON"].f1),
    ]


def _chinese(data: Path) -> list[Figure]:
    test = corpora.chinese_test(data)
    texts = list(blocks(test, SENTENCES))
    scores = score_parser(load_parser("zh"), texts)
    gold = [[word.form for word in sentence.words] for sentence in test]
    cut = [bundled_segmenter().cut("".join(words)) for words in gold]
    named = score_names(load_names("zh"), corpora.chinese_names(data, "test"))
    return [
        Figure("zh segmenter, GSDSimp test: words F1", word_f1(gold, cut), 0.945),
        Figure("zh parser, GSDSimp test, raw text: UPOS F1", scores.upos.f1),
        Figure("zh parser, GSDSimp test, raw text: UAS F1", scores.uas.f1),
        Figure("zh parser, GSDSimp test, raw text: LAS F1", scores.las.f1, 0.47),
        Figure("zh parser, GSDSimp test, raw text: objects F1", scores.objects.f1),
        *(
            Figure(f"zh names, UNER GSDSIMP test: {label} F1", tally.f1, 0.66 if label == "PERSON" else None)
            for label, tally in named.items()
        ),
    ]


def _speed(nlp: Language, texts: list[str]) -> float:
    """Words a CPU second, median of three rounds over the texts."""
    speeds: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        words = sum(len(doc) for doc in nlp.pipe(texts))
        speeds.append(words / (time.process_time() - start))
    return median(speeds)
