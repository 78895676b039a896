"""Print what two blind readings of the bundled splits say, and what trivial answers score on them.

    python tools/bench_bundled.py points      agreement of two ratings of replies, by aspect of the points
    python tools/bench_bundled.py reviews     marks of two readers over items drawn at random
    python tools/bench_bundled.py baselines   S of trivial answers by split, language and subtask or kind
    python tools/bench_bundled.py embedded    S of the embedded model into bundled/embedded.csv (20 minutes, 2 cores)

`bundled/points.jsonl` holds replies with both ratings, `bundled/reviews.jsonl` the
marks; `rating.md` and `review.md` are what the readers were told. All of them were language models that saw neither
authors, goals nor each other: agreement says that a point can be read in one way, not that people would read it so.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import h2htalk
from h2htalk.benchmark.summary import BASELINES

DATA = Path(__file__).parent / "bundled"
SPLITS = ("mini", "high_risk", "instructions", "arcs")


def records(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


Pairs = list[tuple[str, bool, bool]]  # a reply, and what each of two raters says of one of its points
LEAST_ANSWERS = 20  # aspects with fewer are pooled


def by_aspect(split: str = "") -> dict[str, Pairs]:
    """The answers of two raters by aspect, of one split or all; those with few answers are one group."""
    found: dict[str, Pairs] = defaultdict(list)
    for reply in records("points"):
        for point in reply["points"] if split in ("", reply["split"]) else ():
            found[point["aspect"]].append((f"{reply['split']} {reply['id']}", point["a"], point["b"]))
    few = [name for name, own in found.items() if len(own) < LEAST_ANSWERS]
    pooled = [pair for name in few for pair in found.pop(name)]
    return dict(sorted(found.items())) | ({f"pooled: {', '.join(sorted(few))}": pooled} if pooled else {})


def gwet(pairs: Pairs) -> tuple[float, float, float]:
    """Gwet's AC1 of two raters' yes and no (Gwet 2008), with the 95 % interval of 2,000 draws of replies."""
    replies: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for reply, a, b in pairs:
        replies[reply].append((a, b))
    # By reply: answers, agreements, and yes of both raters.
    sums = np.array([[len(own), sum(a == b for a, b in own), sum(map(sum, own))] for own in replies.values()], float)

    def ac1(weights: np.ndarray) -> np.ndarray:
        n, same, yes = (weights @ sums).T
        chance = 2 * (yes / 2 / n) * (1 - yes / 2 / n)
        return (same / n - chance) / (1 - chance)

    draws = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 2000)
    low, high = np.quantile(ac1(draws), (0.025, 0.975))
    return float(ac1(np.ones((1, len(sums))))[0]), float(low), float(high)


def points() -> None:
    """Agreement and Gwet's AC1 by aspect, and the points on which the ratings differ."""
    replies = Counter(f"{reply['split']} {reply['language']}" for reply in records("points"))
    print("replies: " + ", ".join(f"{name} {count}" for name, count in sorted(replies.items())))
    print("| aspect | answers | true % | agreement % | AC1 (95 %) |\n| --- | --- | --- | --- | --- |")
    groups = by_aspect()
    every = {"all": [pair for own in groups.values() for pair in own]} if groups else {}
    for aspect, pairs in (groups | every).items():
        same, true = (100 * sum(own) / len(pairs) for own in ([a == b for _, a, b in pairs], [a for _, a, _ in pairs]))
        value, low, high = gwet(pairs)
        print(f"| {aspect} | {len(pairs):,} | {true:.0f} | {same:.1f} | {value:.2f} ({low:.2f} to {high:.2f}) |")
    for reply in records("points"):
        for point in reply["points"]:
            if point["a"] != point["b"]:
                print(f"differ: {point['kind']} {point['aspect']}: {reply['id']}: {point['text']}")


def reviews() -> None:
    """Marks by draw and reader, and the share of items that both would publish."""
    marks: dict[int, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for one in records("reviews"):
        marks[one["draw"]][one["id"]][one["reader"]] = one["mark"]
    for draw, items in sorted(marks.items()):
        readers = sorted({reader for own in items.values() for reader in own})
        both = sum(set(own.values()) == {"publish"} for own in items.values())
        for reader in readers:
            counts = Counter(own[reader] for own in items.values() if reader in own)
            print(f"draw {draw}, {reader}: " + ", ".join(f"{mark} {n}" for mark, n in sorted(counts.items())))
        print(f"draw {draw}: {both} of {len(items)} items are marked publish by every reader")


def baselines() -> None:
    """100 times the lexical mean of each baseline, by split, language, and subtask or kind."""
    names = list(BASELINES)
    print("| split | language | subtask or kind | " + " | ".join(names) + " |")
    print("| --- " * (3 + len(names)) + "|")
    for name in SPLITS:
        means: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for baseline in names:
            for group, mean in lexical_means(name, f"baseline:{baseline}").items():
                means[group][baseline] = mean
        for (language, group), row in sorted(means.items()):
            print(f"| {name} | {language} | {group} | " + " | ".join(f"{row[b]:.1f}" for b in names) + " |")


def lexical_means(name: str, model: str, **settings: Any) -> dict[tuple[str, str], float]:
    """100 times a model's lexical mean on a split by (language, subtask or kind)."""
    split = h2htalk.load_split(name)
    groups = {one.id: (one.language, str(one.metadata.get("study") or one.subtask)) for one in split.scenarios}
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "run"))
        spec = h2htalk.EvaluateSpec(model=model, split=name, out=out, embedder="none", baselines=False, **settings)
        h2htalk.evaluate(spec)
        for item in h2htalk.load_run(out).items().to_pylist():
            values[groups[item["id"]]].append(100 * item["lexical"])
    return {group: sum(own) / len(own) for group, own in values.items()}


def embedded() -> None:
    """Measure SmolLM2-135M on the splits whose present version is not in `embedded.csv` yet."""
    path = DATA / "embedded.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    for name in SPLITS:
        fingerprint = h2htalk.load_split(name).fingerprint
        if fingerprint not in {row[0] for row in rows}:
            means = lexical_means(name, "embedded", max_tokens=64)
            rows += [[fingerprint, *group, f"{mean:.1f}"] for group, mean in sorted(means.items())]
            with path.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    {"points": points, "reviews": reviews, "baselines": baselines, "embedded": embedded}[
        sys.argv[1] if sys.argv[1:] else "points"
    ]()
