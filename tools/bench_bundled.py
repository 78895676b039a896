"""Print what two blind readings of the bundled splits say, and what trivial answers score on them.

    python tools/bench_bundled.py points      agreement of two ratings of replies, by aspect of the points
    python tools/bench_bundled.py reviews     marks of two readers over items drawn at random, planted ones apart
    python tools/bench_bundled.py needs       whether readers of the text alone name a need, by version and degree
    python tools/bench_bundled.py rulers      replies by hand whose answer is known, without a judge and with two
    python tools/bench_bundled.py baselines   S of trivial answers by split, language and subtask or kind
    python tools/bench_bundled.py embedded    S of the embedded model into bundled/embedded.csv (20 minutes, 2 cores)

`bundled/` has what they read: `points.jsonl`, `reviews.jsonl`, `needs.jsonl` and `hand_sets.jsonl`; the `.md` files are
what the readers were told: language models that saw neither authors, goals nor each other.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

import h2htalk
from h2htalk.benchmark.baselines import BASELINES
from h2htalk.benchmark.judge.rubric import Judgement
from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.points.point_answers import answer_points
from h2htalk.data.case import points_at
from h2htalk.text.point_checks import decided

DATA = Path(__file__).parent / "bundled"
SPLITS = ("mini", "high_risk", "instructions", "arcs")


def records(name: str) -> Iterator[dict[str, Any]]:
    for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


Pairs = list[
    tuple[str, bool, bool]
]  # a reply, and what each of two raters says of one of its points
LEAST_ANSWERS = 20  # aspects with fewer are pooled


def by_aspect(split: str = "") -> dict[str, Pairs]:
    """The answers of two raters by aspect, of one split or all; those with few answers are one group."""
    found: dict[str, Pairs] = defaultdict(list)
    for reply in records("points"):
        for point in reply["points"] if split in ("", reply["split"]) else ():
            found[point["aspect"]].append(
                (f"{reply['split']} {reply['id']}", point["a"], point["b"])
            )
    few = [name for name, own in found.items() if len(own) < LEAST_ANSWERS]
    pooled = [pair for name in few for pair in found.pop(name)]
    return dict(sorted(found.items())) | (
        {f"pooled: {', '.join(sorted(few))}": pooled} if pooled else {}
    )


def gwet(pairs: Pairs) -> tuple[float, float, float]:
    """Gwet's AC1 of two raters' yes and no (Gwet 2008), with the 95 % interval of 2,000 draws of replies."""
    replies: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for reply, a, b in pairs:
        replies[reply].append((a, b))
    # By reply: answers, agreements, and yes of both raters.
    sums = np.array(
        [[len(own), sum(a == b for a, b in own), sum(map(sum, own))] for own in replies.values()],
        float,
    )

    def ac1(weights: np.ndarray) -> np.ndarray:
        n, same, yes = (weights @ sums).T
        chance = 2 * (yes / 2 / n) * (1 - yes / 2 / n)
        return (same / n - chance) / (1 - chance)

    draws = np.random.default_rng(0).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 2000)
    low, high = np.quantile(ac1(draws), (0.025, 0.975))
    return float(ac1(np.ones((1, len(sums))))[0]), float(low), float(high)


def points() -> None:
    """Agreement and Gwet's AC1 by aspect."""
    replies = Counter(f"{reply['split']} {reply['language']}" for reply in records("points"))
    print("replies: " + ", ".join(f"{name} {count}" for name, count in sorted(replies.items())))
    print(
        "| aspect | answers | true % | agreement % | AC1 (95 %) |\n| --- | --- | --- | --- | --- |"
    )
    groups = by_aspect()
    for aspect, pairs in (groups | {"all": [*chain.from_iterable(groups.values())]}).items():
        same, true = (
            100 * sum(own) / len(pairs)
            for own in ([a == b for _, a, b in pairs], [a for _, a, _ in pairs])
        )
        value, low, high = gwet(pairs)
        print(
            f"| {aspect} | {len(pairs):,} | {true:.0f} | {same:.1f} | {value:.2f} ({low:.2f} to {high:.2f}) |"
        )


def reviews() -> None:
    """Marks by draw and reader, and the share of items that both would publish; planted items have known defects."""
    marks: dict[int, dict[str, dict[str, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for one in records("reviews"):
        marks[one["draw"]][one["id"]][one["reader"]] = one
    for draw, items in sorted(marks.items()):
        groups = defaultdict(list)
        for reader in sorted({reader for own in items.values() for reader in own}):
            own = [given[reader] for given in items.values() if reader in given]
            counts = Counter(one["mark"] for one in own if not one.get("planted"))
            passed = [one["mark"] == "publish" for one in own if one.get("planted")]
            planted = f"; passed over {sum(passed)} of {len(passed)} planted" if passed else ""
            print(
                f"draw {draw}, {reader}: "
                + ", ".join(f"{mark} {n}" for mark, n in sorted(counts.items()))
                + planted
            )
        for name, given in items.items():
            if not any(one.get("planted") for one in given.values()):
                groups[name.split("-")[0]].append(
                    {one["mark"] for one in given.values()} == {"publish"}
                )
        shares = ", ".join(f"{group} {sum(own)} of {len(own)}" for group, own in groups.items())
        print(
            f"draw {draw}: marked publish by every reader: {sum(map(sum, groups.values()))}: {shares}"
        )


def needs() -> None:
    """By version and degree: the share of readers who name a family's need, and families where 7 of 10 do."""
    readings: dict[tuple[int, int], list[dict[str, list[str]]]] = defaultdict(list)
    for one in records("needs"):
        readings[one["version"], one["degree"]].append(one["types"])
    planted = json.loads((DATA / "needs_planted.json").read_text(encoding="utf-8"))
    header = "version | degree | readers | planted | named, mean | by 7 of 10 | accepted, by 7 of 10 | mode misses"
    print(f"| {header} |\n" + "| --- " * 8 + "|")
    for (version, degree), readers in sorted(readings.items()):
        named, accepted, missed = [], [], 0
        for case in h2htalk.load_split("instructions").cases:
            if given := [
                types[case.family]
                for types in readers
                if case.degree == degree and case.family in types
            ]:
                named.append(np.mean([case.request_type in own for own in given]))
                wanted = {case.request_type, *case.accepted_types}
                accepted.append(np.mean([not wanted.isdisjoint(own) for own in given]))
                missed += Counter(chain.from_iterable(given)).most_common(1)[0][0] not in wanted
        right = [
            not set(planted[name]).isdisjoint(own[name])
            for own in readers
            for name in planted
            if name in own
        ]
        cells = [f"{sum(right)} of {len(right)}", f"{np.mean(named):.2f}"]
        cells += [
            f"{sum(share >= 0.7 for share in own)} of {len(own)}" for own in (named, accepted)
        ]
        print(
            f"| {version} | {degree} | {len(readers)} | {' | '.join(cells)} | {100 * missed / len(named):.1f} % |"
        )


# Whether the statement of the set's point is true of each kind of reply.
TRUTH = {
    "correction": False, "old_fact": True, "invention": True, "no_invention": False,
    "service": False, "false_service": True, "emergency": True,
}  # fmt: skip


def rulers() -> None:
    """Replies whose answer is known: right and wrong without a judge, with a truthful one, with one played by hand."""
    cases = {case.id: case for name in SPLITS for case in h2htalk.load_split(name).cases}
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in records("hand_sets"):
        case = cases[one["case"]]
        reply = StudyReply("hand", one["case"], one["place"], LIVE, one["reply"], "")
        open_ = [
            point.id
            for point in points_at(case, reply.place)
            if decided(one["reply"], point.check) is None
        ]
        name = one["point"] if one["point"] in open_ else ""
        true = TRUTH[one["kind"]]
        judges = {"nobody": {}, "truthful": {name: true}} | (
            {"hand": {name: one["judged"]}} if "judged" in one else {}
        )
        for judge, points in judges.items():
            answers = answer_points(reply, case, Judgement(points=points), {}).points
            said = next(
                (answer.true for answer in answers if answer.point.id == one["point"]), None
            )
            counts[one["kind"], judge][
                "unscored" if said is None else "right" if said == true else "wrong"
            ] += 1
    print("| kind | judge | n | right | wrong | unscored |\n| --- | --- | --- | --- | --- | --- |")
    for (kind, judge), own in counts.items():
        print(
            f"| {kind} | {judge} | {own.total()} | {own['right']} | {own['wrong']} | {own['unscored']} |"
        )


def baselines() -> None:
    """100 times the lexical mean of each baseline, by split, language, and subtask or kind."""
    names = list(BASELINES)
    print(
        f"| split | language | subtask or kind | {' | '.join(names)} |\n"
        + "| --- " * (3 + len(names))
        + "|"
    )
    for name in SPLITS:
        means: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for baseline in names:
            for group, mean in lexical_means(name, f"baseline:{baseline}").items():
                means[group][baseline] = mean
        for (language, group), row in sorted(means.items()):
            print(
                f"| {name} | {language} | {group} | "
                + " | ".join(f"{row[b]:.1f}" for b in names)
                + " |"
            )


def lexical_means(name: str, model: str, **settings: Any) -> dict[tuple[str, str], float]:
    """100 times a model's lexical mean on a split by (language, subtask or kind)."""
    split = h2htalk.load_split(name)
    groups = {
        one.id: (one.language, str(one.metadata.get("study") or one.subtask))
        for one in split.scenarios
    }
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder, "run"))
        spec = h2htalk.EvaluateSpec(
            model=model, split=name, out=out, embedder="none", baselines=False, **settings
        )
        h2htalk.evaluate(spec)
        for item in h2htalk.load_run(out).items().to_pylist():
            values[groups[item["id"]]] += (
                [100 * item["lexical"]] if item["lexical"] is not None else []
            )
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
    commands = {own.__name__: own for own in (points, reviews, needs, rulers, baselines, embedded)}
    commands[sys.argv[1] if sys.argv[1:] else "points"]()
