"""Write the card of each bundled split from its items and from what was measured: `python tools/make_cards.py`.

Figures come from `tools/bench_bundled.py` and `bundled/embedded.csv` (`bench_bundled.py embedded`).
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import bench_bundled
import check_bundled

from h2htalk.analysis.split_description import describe_split
from h2htalk.data.splits import BUNDLED_FOLDER, load_split

TEXTS = json.loads((Path(__file__).parent / "bundled/cards.json").read_text(encoding="utf-8"))


def printed(function: Callable[[], None]) -> list[str]:
    """What a function prints, line by line."""
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        function()
    return shown.getvalue().splitlines()


def card(name: str, baselines: list[str], reviews: list[str]) -> Iterator[str]:
    """The lines of a card."""
    split, own = load_split(name), TEXTS[name]
    counts = Counter(case.study for case in split.cases)
    counts |= {
        "turns": sum(1 for case in split.cases if case.study == "high_risk" for _ in case.turns()),
        "pairs": sum("pair" in case.tags for case in split.cases),
        "long": sum("long" in case.tags for case in split.cases),
    }
    yield from (f"# {own['title']}", "", own["what"].format_map(counts), "")
    yield from (f"Version {split.version}, fingerprint `{split.fingerprint}`, CC BY 4.0. {TEXTS['attribution']}", "")
    yield from (split.canary, "", "## Counts", "", "```")
    yield from describe_split(split).split("\n\n", 1)[1].rstrip().splitlines()
    yield from ("```", "", "## How it was written", "", TEXTS["written"], "")
    yield from ("## Review", "", TEXTS["review"], "", "```", *reviews, "```", "", TEXTS["people"].format(name=name), "")
    if name != "mini":
        yield from ("## Agreement on the points", "", *agreement(name), "", *[TEXTS["sap"], ""] * (name == "high_risk"))
    rows = [line for line in baselines[2:] if line.startswith(f"| {name} ")]
    yield from ("## What trivial answers score", "", TEXTS["baselines"], "", *baselines[:2], *rows, "")
    highest = max(float(cell) for line in rows for cell in line.split("|")[4:-1])
    yield from (f"The best baseline of a cell reaches {highest:.1f}.", "", *embedded(name))
    yield from (
        "## Use and limits",
        "",
        own["use"],
        "",
        TEXTS["limits"],
        "",
        "## Corrections",
        "",
        TEXTS["corrections"],
        "",
    )


def agreement(name: str) -> Iterator[str]:
    """Agreement of two ratings by aspect, and what trivial answers and the references reach of the points."""
    groups = bench_bundled.by_aspect(name)
    listed = []
    for aspect, pairs in groups.items():
        value, low, high = bench_bundled.gwet(pairs)
        listed.append(f"{aspect} {value:.2f} ({low:.2f} to {high:.2f}, n {len(pairs)})")
    replies = len({reply for pairs in groups.values() for reply, *_ in pairs})
    if replies:
        yield f"{replies} replies, each point answered twice. Gwet's AC1 by aspect: {', '.join(listed)}."
        yield from ("", TEXTS["agreement"])
    else:
        yield "The points of this version have not been answered by two raters yet."
    yield from ("", "Points that trivial answers meet, and the references:", "")
    splits = {own: load_split(own) for own in bench_bundled.SPLITS}
    yield from (
        f"* {part}"
        for rule in check_bundled.trivial(splits)
        if rule.name.startswith(name)
        for part in rule.figure.split("; ")
    )


def embedded(name: str) -> Iterator[str]:
    """The figures of the embedded model, if they were measured on this version."""
    with (bench_bundled.DATA / "embedded.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["fingerprint"] == load_split(name).fingerprint]
    if rows:
        listed = ", ".join(f"{row['language']} {row['part']} {row['lexical']}" for row in rows)
        yield from (f"SmolLM2-135M (`embedded`, replies of at most 64 tokens), lexical mean: {listed}.", "")


def main() -> None:
    baselines, reviews = printed(bench_bundled.baselines), printed(bench_bundled.reviews)
    for name in bench_bundled.SPLITS:
        text = "\n".join(card(name, baselines, reviews))
        (BUNDLED_FOLDER / name / "CARD.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
