"""Measure the recognisers of personal data on labelled sentences.

    python tools/eval_pii.py tests/curation/golden/pii_en.jsonl [FILE ...] [--negatives FILE] [--show]

A file holds `{"id", "form", "text", "spans": [{"start", "end", "type", "kind"}]}` a line; its language is the end of
its name (`_en.jsonl`, `_zh.jsonl`), or --language. Types that no span of a file names are not counted against
precision. A span counts as found by any overlap with one of its type; *exact*: the same start, end and type; *any*:
overlap with a span of whatever type. *Sealed*: sentences in which every labelled character is covered by some span.
Intervals are Wilson's, 95 %.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.curation.anonymize.engine.analyzer import find_spans
from h2htalk.curation.anonymize.spans import Span
from h2htalk.distributions import wilson_interval

Gold = Mapping[str, Any]


@dataclass
class Tally:
    """Counts of one group of spans."""

    gold: int = 0
    found: int = 0
    exact: int = 0
    any_type: int = 0
    marked: int = 0
    right: int = 0


@dataclass
class Measured:
    """What a file showed."""

    by_type: dict[tuple[str, str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    marked: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    sealed: int = 0
    sentences: int = 0
    shown: list[str] = field(default_factory=list)


def share(found: int, of: int) -> str:
    """`0.9912 [0.970, 0.998] n 340`."""
    if not of:
        return "-"
    low, high = wilson_interval(found / of, of)
    return f"{found / of:.3f} [{low:.3f}, {high:.3f}] n {of}"


def measure(rows: Sequence[Gold], found: Sequence[Sequence[Span]]) -> Measured:
    """Count what was found of what is labelled."""
    result = Measured()
    types = {span["type"] for row in rows for span in row["spans"]}
    for row, spans in zip(rows, found, strict=True):
        form = row.get("form", "plain")
        gold = [Span(s["start"], s["end"], s["type"], 1.0) for s in row["spans"]]
        for label, span in zip(row["spans"], gold, strict=True):
            for group in ((label.get("kind", ""), form), ("", "all")):
                _count_gold(result.by_type[span.type, *group], span, spans)
            if not any(s.type == span.type and s.overlaps(span) for s in spans):
                result.shown.append(f"missed {span.type:16} {row['id']} {_quoted(row['text'], span)}")
        for span in spans:
            if span.type not in types:
                continue
            right = any(g.type == span.type and g.overlaps(span) for g in gold)
            for tally in (result.marked[span.type, form], result.marked[span.type, "all"]):
                tally.marked += 1
                tally.right += right
            if not right:
                result.shown.append(f"false  {span.type:16} {row['id']} {_quoted(row['text'], span)} {span.score:.2f}")
        covered = {at for span in spans for at in range(span.start, span.end)}
        if gold:
            result.sentences += 1
            result.sealed += all(at in covered for g in gold for at in range(g.start, g.end))
    return result


def _count_gold(tally: Tally, gold: Span, spans: Sequence[Span]) -> None:
    tally.gold += 1
    tally.found += any(s.type == gold.type and s.overlaps(gold) for s in spans)
    tally.exact += any((s.start, s.end, s.type) == (gold.start, gold.end, gold.type) for s in spans)
    tally.any_type += any(s.overlaps(gold) for s in spans)


def _quoted(text: str, span: Span) -> str:
    before, after = text[max(span.start - 25, 0) : span.start], text[span.end : span.end + 15]
    return f"{before}[{text[span.start : span.end]}]{after}"


def report(result: Measured) -> Iterator[str]:
    """The tables, a line at a time."""
    yield f"{'type':16} {'kind':9} {'form':8} {'recall':30} {'exact':6} {'any':6}"
    for (kind_type, kind, form), tally in sorted(result.by_type.items()):
        exact, any_type = tally.exact / tally.gold, tally.any_type / tally.gold
        yield f"{kind_type:16} {kind:9} {form:8} {share(tally.found, tally.gold):30} {exact:.3f}  {any_type:.3f}"
    yield f"{'type':16} {'':9} {'form':8} precision"
    for (kind_type, form), tally in sorted(result.marked.items()):
        yield f"{kind_type:16} {'':9} {form:8} {share(tally.right, tally.marked)}"
    yield f"sealed sentences: {share(result.sealed, result.sentences)}"


def negatives(rows: Sequence[Gold], found: Sequence[Sequence[Span]]) -> Iterator[str]:
    """How many sentences without personal data were marked, and what in them."""
    hit = [(row, spans) for row, spans in zip(rows, found, strict=True) if spans]
    yield f"negatives hit: {share(len(hit), len(rows))}"
    for row, spans in hit:
        said = ", ".join(f"{row['text'][s.start : s.end]} ({s.type} {s.score:.2f})" for s in spans)
        yield f"  {row['id']} {row.get('why', '')}: {said}"


def read_rows(path: Path) -> list[Gold]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--language", choices=("en", "zh"))
    parser.add_argument("--negatives", type=Path, action="append", default=[])
    parser.add_argument("--show", action="store_true", help="print each miss and each false span")
    args = parser.parse_args()
    for path in [*args.files, *args.negatives]:
        language = args.language or path.stem[-2:]
        if language not in ("en", "zh"):
            sys.exit(f"{path}: name its language with --language")
        rows = read_rows(path)
        found = [find_spans(row["text"], language) for row in rows]
        print(f"# {path.name}: {len(rows)} sentences")
        if path in args.negatives:
            print("\n".join(negatives(rows, found)))
            continue
        result = measure(rows, found)
        print("\n".join(report(result)))
        if args.show:
            print("\n".join(result.shown))


if __name__ == "__main__":
    main()
