"""What `h2htalk analyze` costs: the whole command on 4,650 scenarios of 80 words, a language at a time.

python tools/bench_analyze.py [--language en] [--count 4650] [--rounds 3] [-- OPTIONS OF ANALYZE]

The split is mini's sentences, recombined (tools/make_recombined_split.py). Each round is the real command line in a
process of its own; CPU counts its worker processes. What stands behind `--` goes to the command, e.g.
`-- --processes 1`. Prints Markdown: each round, then the median, then what the command itself said. Linux only.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from make_recombined_split import WORDS, write_split
from measure import Cost, measure

from h2htalk.data.languages import LANGUAGES
from h2htalk.data.subtasks import TOTAL_COUNT

HEADINGS = "language, round, scenarios, words each, distinct texts, wall s, CPU s, peak RSS MiB, other cores"


def run(work: Path, split: Path, name: str, options: list[str]) -> tuple[Cost, str]:
    """One run of the command: its cost and what it printed; raises RuntimeError if it fails or writes no page."""
    out, log = work / name, work / f"{name}.txt"
    command = [str(Path(sys.executable).with_name("h2htalk")), "analyze", str(split), "--out", str(out)]
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
    parser.add_argument("--language", choices=LANGUAGES, action="append", help="repeatable; both by default")
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
            shape = (made.count, f"{made.words:.1f}", f"{made.distinct:.0%}")
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
