"""Precision and recall of verb-noun pairs on sentences with known pairs.

python tools/eval_pairs.py [--language en|zh] [--set FILE] [--spacy-model NAME] [--show]

A set is JSONL of `{"id", "text", "pairs": [["verb", "noun"], ...]}`; in a verb or noun `|` separates readings that
are both right. Default: the frozen sets of both languages. Exit 1 when precision or recall is below the floor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.analysis.verb_nouns.pairs import VerbNounPair, iter_pairs
from h2htalk.cli.options import say

FLOORS = {"en": 0.87, "zh": 0.75}
FROZEN = {"en": ("en",), "zh": ("zh", "zh_2")}  # tests/analysis/golden/README.md says how blind each is
GOLDEN = Path(__file__).resolve().parent.parent / "tests/analysis/golden"
GoldPair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and the pairs that a careful reader finds in it."""

    id: str
    text: str
    pairs: tuple[GoldPair, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one sentence: pairs found rightly, pairs that were not there, pairs not found."""

    sentence: Sentence
    right: tuple[VerbNounPair, ...]
    wrong: tuple[VerbNounPair, ...]
    missed: tuple[GoldPair, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Micro-averages over a set, each in [0, 1]; 1 where there was nothing to find and nothing was found."""

    right: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else float(not self.gold)

    @property
    def recall(self) -> float:
        return self.right / self.gold if self.gold else float(not self.found)

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def read_set(path: Path) -> list[Sentence]:
    """The sentences of a JSONL set."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [Sentence(row["id"], row["text"], tuple((v, n) for v, n in row["pairs"])) for row in rows]


def match(sentence: Sentence, found: Iterable[VerbNounPair]) -> Outcome:
    """Match found pairs to gold pairs, each gold pair once; letter case does not matter."""
    left = list(sentence.pairs)
    right, wrong = [], []
    for pair in found:
        gold = next((gold for gold in left if _agrees(gold, pair)), None)
        if gold is None:
            wrong.append(pair)
        else:
            left.remove(gold)
            right.append(pair)
    return Outcome(sentence, tuple(right), tuple(wrong), tuple(left))


def _agrees(gold: GoldPair, pair: VerbNounPair) -> bool:
    verbs, nouns = (part.casefold().split("|") for part in gold)
    return pair.verb.casefold() in verbs and pair.noun.casefold() in nouns


def score(outcomes: Sequence[Outcome]) -> Score:
    """Micro precision and recall: every pair weighs the same."""
    right = sum(len(o.right) for o in outcomes)
    found = right + sum(len(o.wrong) for o in outcomes)
    return Score(right, found, right + sum(len(o.missed) for o in outcomes))


def outcomes(sentences: Sequence[Sentence], language: str, model: str | None = None) -> Iterator[Outcome]:
    """Each sentence's outcome; every sentence is parsed as a text of its own."""
    for sentence in sentences:
        yield match(sentence, [*iter_pairs([sentence.text], language, model=model)])


def show(outcome: Outcome) -> None:
    if outcome.wrong or outcome.missed:
        say(f"{outcome.sentence.id}  {outcome.sentence.text}")
        for pair in outcome.wrong:
            say(f"    wrong   {pair.verb} {pair.noun}")
        for verb, noun in outcome.missed:
            say(f"    missed  {verb} {noun}")


def evaluate(language: str, path: Path, model: str | None, with_misses: bool) -> bool:
    """Print one set's figures; whether both reach the floor."""
    results = list(outcomes(read_set(path), language, model))
    if with_misses:
        for outcome in results:
            show(outcome)
    total = score(results)
    floor = FLOORS[language]
    reached = min(total.precision, total.recall) >= floor
    say(
        f"{path.stem}: {len(results)} sentences, {total.gold} pairs, {total.found} found, {total.right} right; "
        f"P {total.precision:.3f}, R {total.recall:.3f}, F {total.f1:.3f}; "
        f"floor {floor:.2f} {'reached' if reached else 'NOT REACHED'}"
    )
    return reached


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=sorted(FLOORS), help="default: both, or en with --set")
    parser.add_argument("--set", type=Path, dest="path", help="a set of your own; default: the frozen sets")
    parser.add_argument("--spacy-model", help="an installed spaCy pipeline instead of the one shipped")
    parser.add_argument("--show", action="store_true", help="print the sentences with wrong or missed pairs")
    options = parser.parse_args(arguments)
    if options.path:
        sets = [(options.language or "en", options.path)]
    else:
        chosen = [options.language] if options.language else sorted(FLOORS)
        sets = [(of, GOLDEN / f"verb_noun_pairs_{name}.jsonl") for of in chosen for name in FROZEN[of]]
    reached = [evaluate(language, path, options.spacy_model, options.show) for language, path in sets]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
