"""Precision and recall of verb-noun pairs on sentences with known pairs.

python tools/eval_pairs.py [--language en|zh] [--set FILE] [--spacy-model NAME] [--show]

A set is JSONL of `{"id", "text", "pairs": [["verb", "noun"], ...]}`; in a verb or noun `|` separates readings that
are both right. Default: the frozen sets of both languages. Exit 1 when precision or recall is below the floor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from h2htalk.analysis.verb_nouns.pairs import VerbNounPair, iter_pairs
from h2htalk.cli.output import say

FLOORS = {"en": 0.87, "zh": 0.75}
FROZEN = {
    "en": ("en",),
    "zh": ("zh", "zh_2"),
}  # tests/analysis/golden/README.md says how blind each is
GOLDEN = Path(__file__).resolve().parent.parent / "tests/analysis/golden"


def match(
    gold: Sequence[Sequence[str]], found: Sequence[VerbNounPair]
) -> tuple[list[str], list[str]]:
    """Match found pairs to gold pairs, each once, whatever the case; return those that were wrong and those missed."""
    left = list(gold)
    wrong = []
    for pair in found:
        same = next((one for one in left if _agrees(one, pair)), None)
        if same is None:
            wrong.append(f"{pair.verb} {pair.noun}")
        else:
            left.remove(same)
    return wrong, [" ".join(one) for one in left]


def _agrees(gold: Sequence[str], pair: VerbNounPair) -> bool:
    verbs, nouns = (part.casefold().split("|") for part in gold)
    return pair.verb.casefold() in verbs and pair.noun.casefold() in nouns


def evaluate(language: str, path: Path, model: str | None, with_misses: bool) -> bool:
    """Print one set's figures; whether both reach the floor. Every sentence is parsed as a text of its own."""
    rows = [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    total = right = given = 0
    for row in rows:
        found = [*iter_pairs([row["text"]], language, model=model)]
        wrong, missed = match(row["pairs"], found)
        total = total + len(row["pairs"])
        given = given + len(found)
        right = right + len(found) - len(wrong)
        if with_misses and (wrong or missed):
            say(f"{row['id']}  {row['text']}")
            say(
                "\n".join(
                    [
                        *(f"    wrong   {pair}" for pair in wrong),
                        *(f"    missed  {pair}" for pair in missed),
                    ]
                )
            )
    # 1 where there was nothing to find and nothing was found.
    precision = right / given if given else float(not total)
    recall = right / total if total else float(not given)
    both = precision + recall
    reached = min(precision, recall) >= FLOORS[language]
    say(
        f"{path.stem}: {len(rows)} sentences, {total} pairs, {given} found, {right} right; "
        f"P {precision:.3f}, R {recall:.3f}, F {2 * precision * recall / both if both else 0:.3f}; "
        f"floor {FLOORS[language]:.2f} {'reached' if reached else 'NOT REACHED'}"
    )
    return reached


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--language", choices=sorted(FLOORS), help="default: both, or en with --set"
    )
    parser.add_argument(
        "--set", type=Path, dest="path", help="a set of your own; default: the frozen sets"
    )
    parser.add_argument(
        "--spacy-model", help="an installed spaCy pipeline instead of the one shipped"
    )
    parser.add_argument(
        "--show", action="store_true", help="print the sentences with wrong or missed pairs"
    )
    options = parser.parse_args(arguments)
    if options.path:
        sets = [(options.language or "en", options.path)]
    else:
        chosen = [options.language] if options.language else sorted(FLOORS)
        sets = [
            (of, GOLDEN / f"verb_noun_pairs_{name}.jsonl") for of in chosen for name in FROZEN[of]
        ]
    reached = [
        evaluate(language, path, options.spacy_model, options.show) for language, path in sets
    ]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
