"""What tests of the English names, addresses and organisations share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from h2htalk.curation.pii.english import find_english

DEVELOPMENT = Path(__file__).parent / "dev_names_en.jsonl"


def found(text: str, kind: str) -> list[str]:
    """The pieces of a text that are found as a type."""
    return [text[span.start : span.end] for span in find_english(text) if span.type == kind]


def development() -> list[dict[str, Any]]:
    """Hand-written sentences with spans, written before the rules."""
    return [json.loads(line) for line in DEVELOPMENT.read_text(encoding="utf-8").splitlines()]


def recall_and_precision(
    texts: Iterable[dict[str, Any]], spans: Iterable[Iterable[Any]], kind: str
) -> tuple[float, float]:
    """By overlap: the share of gold spans touched by one of their type, and of found ones that touch gold."""
    gold = touched = given = right = 0
    for text, found_spans in zip(texts, spans, strict=True):
        wanted = [(s["start"], s["end"]) for s in text["spans"] if s["type"] == kind]
        got = [(s.start, s.end) for s in found_spans if s.type == kind]
        gold += len(wanted)
        given += len(got)
        touched += sum(any(a < d and c < b for c, d in got) for a, b in wanted)
        right += sum(any(a < d and c < b for c, d in wanted) for a, b in got)
    return touched / gold, right / given
