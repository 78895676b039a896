"""What `h2htalk analyze` costs: the whole command on 4,650 scenarios of 80 words, a language at a time.

python tools/bench_analyze.py [--language en] [--count 4650] [--rounds 3] [-- OPTIONS OF ANALYZE]

The split is mini's sentences, recombined, and one in three a pattern with filled slots, so that vocabulary grows with
the split; a text has no meaning as a whole. Each round is the real command line in a
process of its own; CPU counts its worker processes. What stands behind `--` goes to the command, e.g.
`-- --processes 1`. Prints Markdown: each round, then the median, then what the command itself said. Linux only.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from make_synthetic_split import Writer, scenario_counts
from measure import Cost, measure

from h2htalk.analysis.measures.scenario_texts import instruction_text
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import ScheduleEntry, Turn
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import TOTAL_COUNT
from h2htalk.text.tokens import tokenize

WORDS, PATTERNS = 80, 1 / 3
_SENTENCE_END = {
    "en": re.compile(r"(?<=[.!?])\s+|\n+"),
    "zh": re.compile(r"(?<=[。！？!?])\s*|\n+"),
}
HEADINGS = "language, round, scenarios, words each, distinct texts, wall s, CPU s, peak RSS MiB, other cores"


def write_split(
    out: Path, language: str, count: int, words: int, seed: int
) -> tuple[int, float, float]:
    """Write scenarios of so many words on average; return their number, mean words and the share of distinct texts."""
    own = [one for one in load_split("mini@1").scenarios if one.language == language]
    parts = (text for one in own for text in (instruction_text(one), one.reference))
    pool = [
        part.strip()
        for text in parts
        for part in _SENTENCE_END[language].split(text)
        if part.strip()
    ]
    draw = random.Random(f"{seed}:{language}")
    made = []
    joint = " " if language == "en" else ""
    patterns = Writer(language, draw)

    def write(wanted: float) -> str:
        found: list[str] = []
        while not found or sum(len(tokenize(one, language)) for one in found) < wanted - 5:
            found.append(patterns.sentence() if draw.random() < PATTERNS else draw.choice(pool))
        return joint.join(found)

    def like(part: object, wanted: float) -> object:
        if isinstance(part, Turn):
            return replace(part, content=write(wanted))
        return (
            replace(part, activity=patterns.activity())
            if isinstance(part, ScheduleEntry)
            else write(wanted)
        )

    for name, amount in scenario_counts(count).items():
        for number in range(amount):
            base = draw.choice([one for one in own if one.subtask == name])
            inputs = {}
            each = (
                draw.uniform(0.6, 1.4) * words * 0.3 / sum(map(len, base.inputs.values()))
                if base.turns
                else words / 16
            )
            for key, value in base.inputs.items():
                inputs[key] = (
                    write(words / 16)
                    if isinstance(value, str)
                    else tuple(like(one, each) for one in value)
                )
            made.append(
                replace(
                    base, id=f"{name}-{number:04}", inputs=inputs, references=(write(0.16 * words),)
                )
            )
    write_jsonl(out / "scenarios.jsonl", (one.to_dict() for one in made))
    write_text(
        out / "split.toml",
        f'name = "recombined-{language}"\nversion = "{seed}"\nlicence = "CC-BY-4.0"\n',
    )
    texts = [text for one in made for text in (instruction_text(one), one.reference)]
    return (
        count,
        sum(len(tokenize(one, language)) for one in texts) / count,
        len(set(texts)) / len(texts),
    )


def run(work: Path, split: Path, name: str, options: list[str]) -> tuple[Cost, str]:
    """One run of the command: its cost and what it printed; raises RuntimeError if it fails or writes no page."""
    out = work / name
    log = work / f"{name}.txt"
    command = [
        str(Path(sys.executable).with_name("h2htalk")),
        "analyze",
        str(split),
        "--out",
        str(out),
    ]
    cost = measure([*command, *options], log, {})
    if not (out / "index.html").is_file():
        raise RuntimeError(f"{name}: no index.html in {out}")
    return cost, log.read_text(encoding="utf-8", errors="replace")


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def figures(costs: list[Cost]) -> Iterator[str]:
    """Each figure's own median."""
    for name, digits in (("wall", 1), ("cpu", 1), ("rss", 0), ("others", 1)):
        yield f"{statistics.median(getattr(cost, name) for cost in costs):.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure `h2htalk analyze` as a whole command.")
    parser.add_argument(
        "--language", choices=LANGUAGES, action="append", help="repeatable; both by default"
    )
    parser.add_argument("--count", type=int, default=TOTAL_COUNT)
    parser.add_argument("--words", type=int, default=WORDS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("rest", nargs="*", metavar="-- OPTIONS", help="passed to analyze")
    options = parser.parse_args()
    said: list[str] = []
    print(row(*HEADINGS.split(", ")))
    print(row(*["---"] * (HEADINGS.count(",") + 1)), flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-analyze-") as folder:
        work = Path(folder)
        for language in options.language or LANGUAGES:
            split = work / f"split-{language}"
            made = write_split(split, language, options.count, options.words, options.seed)
            costs: list[Cost] = []
            shape = (made[0], f"{made[1]:.1f}", f"{made[2]:.0%}")
            for number in range(1, options.rounds + 1):
                cost, printed = run(work, split, f"{language}-{number}", options.rest)
                costs.append(cost)
                print(row(language, number, *shape, *figures([cost])), flush=True)
            if costs:
                print(row(language, "median", *shape, *figures(costs)), flush=True)
                said.append(printed)
    for printed in said:
        print(f"\n```\n{printed.rstrip()}\n```")


if __name__ == "__main__":
    main()
