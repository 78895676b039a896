"""The figures of the shipped pipelines on the treebanks' test files, beside their minimums.

Chinese words and trees are scored on one and the same raw text: eight sentences of the test file together, with the
spaces that the treebank says stand between its words (few: in Latin names).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pipelines import corpora
from pipelines.scoring import ParseScores, Tally, documents, raw_text, score_parser, score_trees
from pipelines.treebanks import Sentence, read_conllu
from spacy.language import Language

from h2htalk.text.parsing.parsing import _loaded, load_parser

# A Chinese text of the check: this many sentences of the test file together.
SENTENCES = 8
CHINESE_TEST = "ud/zh/GSDSimp/zh_gsdsimp-ud-test.conllu"
ROUNDS = 3
# What the shipped weights score, as last recorded.
RECORDED = Path(__file__).parent / "figures.json"
TOLERANCE = 0.002


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, how many things of the gold standard it rests on, and the least that is asked for.

    `n` is 0 and `minimum` None where there is none.
    """

    what: str
    value: float
    n: int = 0
    minimum: float | None = None

    @property
    def reached(self) -> bool:
        return self.minimum is None or self.value >= self.minimum

    @classmethod
    def f1(cls, what: str, tally: Tally, minimum: float | None = None) -> Figure:
        return cls(f"{what} F1", tally.f1, tally.gold, minimum)


def check(data: Path, *, record: bool = False) -> bool:
    """Print every figure beside its minimum; whether all are reached and those of accuracy are the recorded ones.

    `record` writes the figures of accuracy down instead of comparing them.
    """
    exact = accuracy(data)
    if record:
        values = {figure.what: {"value": round(figure.value, 4), "n": figure.n} for figure in exact}
        RECORDED.write_text(json.dumps(values, indent=1) + "\n")
    changed = differing(exact, recorded())
    figures = [*exact, *costs(data)]
    show(figures, changed)
    return all(figure.reached for figure in figures) and not changed


def check_teacher(data: Path, path: Path) -> None:
    """Print how the teacher stored at `path` reads gold words: EWT dev and test.

    Only sentences with a tree become silver; the scores are of all of them.
    """
    import torch
    from pipelines import teacher as teaching

    teacher = teaching.Teacher(teaching.Labels.of(corpora.english_trees(data, "train")))
    teacher.load_state_dict(torch.load(path, weights_only=True))
    figures: list[Figure] = []
    for part in ("dev", "test"):
        what = f"en teacher, EWT {part}, gold words"
        gold = corpora.english_trees(data, part)
        given = [([w.form for w in s.words], [w.space_after for w in s.words]) for s in gold]
        read = list(teaching.read(teacher, given))
        trees = sum(map(teaching.is_tree, read))
        figures += tree_figures(what, score_trees(gold, read))
        figures.append(Figure(f"{what}: sentences with a tree", trees / len(gold), len(gold)))
    show(figures)


def show(figures: Sequence[Figure], changed: Sequence[str] = ()) -> None:
    """A line each: what, its value, the n it rests on, the minimum."""
    for figure in figures:
        value = f"{figure.value:,.0f}" if figure.value > 100 else f"{figure.value:.3f}"
        n = f"n {figure.n:>6,}" if figure.n else ""
        minimum = "" if figure.minimum is None else f"  minimum {figure.minimum:g}"
        mark = "" if figure.reached else "  BELOW"
        note = "  NOT AS RECORDED" if figure.what in changed else ""
        print(f"{figure.what:58} {value:>8}  {n:8}{minimum}{mark}{note}".rstrip())


def recorded() -> dict[str, dict[str, float]]:
    """The `value` and the `n` of each figure, by its name."""
    found: dict[str, dict[str, float]] = json.loads(RECORDED.read_text())
    return found


def differing(figures: Sequence[Figure], stored: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Those that are not as stored. Processors may differ in a sum's last bits, not in the third digit of an F1."""

    def as_stored(figure: Figure) -> bool:
        was = stored.get(figure.what)
        return (
            was is not None
            and was["n"] == figure.n
            and abs(was["value"] - figure.value) <= TOLERANCE
        )

    return [figure.what for figure in figures if not as_stored(figure)]


def costs(data: Path) -> list[Figure]:
    """CPU seconds on one core: of loading (spaCy itself is imported already), and of a word."""
    sets = {
        "en": list(documents(corpora.english_trees(data, "test"), by_paragraph=True)),
        "zh": chinese_texts(data),
    }
    figures: list[Figure] = []
    for language, texts in sets.items():
        _loaded.cache_clear()
        start = time.process_time()
        nlp = load_parser(language)
        loading = time.process_time() - start
        words = _speed(nlp, [raw_text(sentences) for sentences in texts])
        figures.append(Figure(f"{language} parser: words a CPU second", words, minimum=8000))
        figures.append(
            Figure(f"{language} parser: loads a second (1 / CPU seconds)", 1 / loading, minimum=1)
        )
    return figures


def chinese_texts(data: Path) -> list[list[Sentence]]:
    """GSDSimp's test file, eight sentences a text, with its own spaces. Scores ask for no subtypes of relations."""
    sentences = list(read_conllu(data / CHINESE_TEST))
    return [sentences[start : start + SENTENCES] for start in range(0, len(sentences), SENTENCES)]


def accuracy(data: Path) -> list[Figure]:
    test = corpora.english_trees(data, "test")
    scores = score_parser(load_parser("en"), documents(test, by_paragraph=True))
    joined = score_parser(load_parser("en"), documents(test, by_paragraph=False))
    chinese = score_parser(load_parser("zh"), chinese_texts(data))
    return [
        *parse_figures("en parser, EWT test, raw text", scores, las=0.81),
        Figure.f1("en parser, EWT test, paragraphs run together: LAS", joined.las),
        *parse_figures(
            "zh parser, GSDSimp test, raw text", chinese, las=0.47, words=0.945
        ),  # words: the segmenter's
    ]


def parse_figures(
    what: str, scores: ParseScores, *, las: float, words: float | None = None
) -> list[Figure]:
    """Of raw text, where words and sentences have to be found first."""
    first = [
        Figure.f1(f"{what}: words", scores.words, words),
        Figure.f1(f"{what}: sentences", scores.sentences),
    ]
    return [*first, *tree_figures(what, scores, las=las)]


def tree_figures(what: str, scores: ParseScores, *, las: float | None = None) -> list[Figure]:
    return [
        Figure.f1(f"{what}: UPOS", scores.upos),
        Figure.f1(f"{what}: UAS", scores.uas),
        Figure.f1(f"{what}: LAS", scores.las, las),
        Figure.f1(f"{what}: objects", scores.objects),
    ]


def _speed(nlp: Language, texts: list[str]) -> float:
    """Words a CPU second, median of three rounds over the texts."""
    speeds: list[float] = []
    for _ in range(ROUNDS):
        start = time.process_time()
        words = sum(len(doc) for doc in nlp.pipe(texts))
        speeds.append(words / (time.process_time() - start))
    return median(speeds)
