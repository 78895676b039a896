"""Print what two blind readings of the bundled splits say, and what trivial answers score on them.

    python tools/bench_bundled.py points      agreement of two ratings of replies, by aspect of the points
    python tools/bench_bundled.py reviews     marks of two readers over items drawn at random
    python tools/bench_bundled.py baselines   S of trivial answers by split, language and subtask or kind
    python tools/bench_bundled.py embedded    S of the embedded model into bundled/embedded.csv (20 minutes, 2 cores)

`bundled/points.jsonl` holds the replies (half of them written to fail) with both ratings, `bundled/reviews.jsonl` the
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

import krippendorff
import numpy as np

import h2htalk
from h2htalk.benchmark.summary import BASELINES

DATA = Path(__file__).parent / "bundled"
SPLITS = ("mini", "high_risk", "instructions", "arcs")


def records(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def points() -> None:
    """Krippendorff's alpha (nominal) of yes and no, by aspect, and the points on which the ratings differ."""
    by_aspect: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    replies: Counter[str] = Counter()
    differ = []
    for reply in records("points"):
        replies[f"{reply['split']} {reply['language']}"] += 1
        for point in reply["points"]:
            by_aspect[point["aspect"]].append((point["a"], point["b"]))
            if point["a"] != point["b"]:
                differ.append((point["kind"], point["aspect"], reply["id"], point["text"]))
    print("replies: " + ", ".join(f"{name} {count}" for name, count in sorted(replies.items())))
    print("| aspect | points | true % | agreement % | alpha |\n| --- | --- | --- | --- | --- |")
    for aspect, pairs in [*sorted(by_aspect.items()), ("all", [pair for own in by_aspect.values() for pair in own])]:
        values = np.array(pairs, dtype=float).T
        alpha = (
            krippendorff.alpha(values, level_of_measurement="nominal") if len(set(values.flat)) > 1 else float("nan")
        )
        same = 100 * (values[0] == values[1]).mean()
        print(f"| {aspect} | {len(pairs):,} | {100 * values.mean():.0f} | {same:.1f} | {alpha:.2f} |")
    for kind, aspect, name, text in sorted(differ):
        print(f"differ: {kind} {aspect}: {name}: {text}")


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
