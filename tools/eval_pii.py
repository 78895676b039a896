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
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.detect.personal.engine.analyzer import find_spans
from h2htalk.detect.personal.spans import Span
from h2htalk.distributions import wilson_interval

Gold = Mapping[str, Any]


def share(found: int, of: int) -> str:
    """`0.991 [0.970, 0.998] n 340`."""
    if not of:
        return "-"
    low, high = wilson_interval(found / of, of)
    return f"{found / of:.3f} [{low:.3f}, {high:.3f}] n {of}"


def report(rows: Sequence[Gold], found: Sequence[Sequence[Span]], *, show: bool) -> Iterator[str]:
    """The tables of what was found of what is labelled, a line at a time, and each miss and false span if asked."""
    labels: dict[tuple[str, str, str], Counter[str]] = defaultdict(
        Counter
    )  # by type, kind and form
    marks: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by type and form
    shown = list[str]()
    sealed = list[bool]()
    types = {label["type"] for row in rows for label in row["spans"]}
    for row, spans in zip(rows, found, strict=True):
        form = row.get("form", "plain")
        text = row["text"]
        gold = [Span(label["start"], label["end"], label["type"], 1.0) for label in row["spans"]]
        for label, span in zip(row["spans"], gold, strict=True):
            over = [one for one in spans if one.overlaps(span)]
            signs = (
                {"gold"}
                | {"any" for _ in over}
                | {"found" for one in over if one.type == span.type}
            )
            signs |= {
                "exact"
                for one in over
                if (one.start, one.end, one.type) == (span.start, span.end, span.type)
            }
            labels[span.type, label.get("kind", ""), form].update(signs)
            labels[span.type, "", "all"].update(signs)
            shown += (
                []
                if "found" in signs
                else [f"missed {span.type:16} {row['id']} {_quoted(text, span)}"]
            )
        for span in (one for one in spans if one.type in types):
            right = any(label.type == span.type and label.overlaps(span) for label in gold)
            for group in (form, "all"):
                marks[span.type, group].update(["marked", "right"][: 1 + right])
            shown += (
                []
                if right
                else [f"false  {span.type:16} {row['id']} {_quoted(text, span)} {span.score:.2f}"]
            )
        covered = {at for span in spans for at in range(span.start, span.end)}
        sealed += (
            [all(at in covered for span in gold for at in range(span.start, span.end))]
            if gold
            else []
        )
    yield f"{'type':16} {'kind':9} {'form':8} {'recall':30} {'exact':6} {'any':6}"
    for (of_type, kind, form), n in sorted(labels.items()):
        exact = n["exact"] / n["gold"]
        any_type = n["any"] / n["gold"]
        yield f"{of_type:16} {kind:9} {form:8} {share(n['found'], n['gold']):30} {exact:.3f}  {any_type:.3f}"
    yield f"{'type':16} {'':9} {'form':8} precision"
    for (of_type, form), n in sorted(marks.items()):
        yield f"{of_type:16} {'':9} {form:8} {share(n['right'], n['marked'])}"
    yield f"sealed sentences: {share(sum(sealed), len(sealed))}"
    yield from shown if show else ()


def _quoted(text: str, span: Span) -> str:
    before = text[max(span.start - 25, 0) : span.start]
    after = text[span.end : span.end + 15]
    return f"{before}[{text[span.start : span.end]}]{after}"


def negatives(rows: Sequence[Gold], found: Sequence[Sequence[Span]]) -> Iterator[str]:
    """How many sentences without personal data were marked, and what in them."""
    hit = [(row, spans) for row, spans in zip(rows, found, strict=True) if spans]
    yield f"negatives hit: {share(len(hit), len(rows))}"
    for row, spans in hit:
        said = ", ".join(f"{row['text'][s.start : s.end]} ({s.type} {s.score:.2f})" for s in spans)
        yield f"  {row['id']} {row.get('why', '')}: {said}"


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
        rows = [
            json.loads(line)
            for line in path.read_text(encoding="utf-8").split("\n")
            if line.strip()
        ]
        found = [find_spans(row["text"], language) for row in rows]
        print(f"# {path.name}: {len(rows)} sentences")
        print(
            "\n".join(
                negatives(rows, found)
                if path in args.negatives
                else report(rows, found, show=args.show)
            )
        )


if __name__ == "__main__":
    main()
