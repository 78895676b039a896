"""Write a run as one HTML file that needs no network and no server: the tables, and every item with its prompt.

Text of items cannot execute (see `h2htalk.text.html_pages`): the items are in a JSON block, which the script inserts
as text only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import ItemScore, SampleScore
from h2htalk.benchmark.metrics.metric_table import columns
from h2htalk.benchmark.report.html_view import page_view
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.protocol import Message
from h2htalk.data.files import write_text
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.html_pages import render_page

_PAGE = files("h2htalk.benchmark.report") / "page"
_SCRIPTS = ("records.js", "detail.js", "list.js")
_MARKER = "@@items@@"
# Characters to escape in a script block: the first three could end the block, the last two end a line of script.
_ESCAPES = {c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item as the page shows it: its prompt, responses and scores."""

    scenario: Scenario
    messages: tuple[Message, ...]
    responses: tuple[Response | FailedResponse, ...]
    score: ItemScore


def write_page(path: Path, summary: Summary, items: Iterable[ItemView]) -> None:
    """Write the page of a run; the file appears only when it is complete.

    Args:
        path: the HTML file.
        summary: the figures of the tables.
        items: read once and written as they come, so that a run is never in memory as a whole.

    Raises:
        DataError: the folder cannot be written, or the disk is full.
    """
    before, after = _frame(summary)
    write_text(path, _chunks(before, items, after))


def _frame(summary: Summary) -> tuple[str, str]:
    """Render the page and split it where the items go."""
    text = render_page(_PAGE, {**page_view(summary), "data": _MARKER}, scripts=_SCRIPTS)
    before, after = text.rsplit(_MARKER, 1)  # the last: a model may be named so
    return before, after


def _chunks(before: str, items: Iterable[ItemView], after: str) -> Iterator[str]:
    """Yield the page in pieces. Paragraphs of prompts are stored once, because personas and instructions repeat."""
    paragraphs: dict[str, int] = {}
    yield before
    head = {
        "subtasks": [[s.name, s.title] for s in SUBTASKS.values()],
        "metrics": list(columns()),
        "rules": RULES,
    }
    yield _script_json(head)[:-1] + ',"items":['
    for number, item in enumerate(items):
        yield ("," if number else "") + _script_json(_packed(item, paragraphs))
    yield '],"paragraphs":' + _script_json(list(paragraphs)) + "}"
    yield after


def _script_json(value: Any) -> str:
    """Format JSON for a script element; lone surrogates are escaped, so that it is always valid UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


_SUBTASK_NUMBER = {name: number for number, name in enumerate(SUBTASKS)}


def _packed(item: ItemView, paragraphs: dict[str, int]) -> list[Any]:
    """Pack an item for `unpackItem` of records.js, which defines the order of the fields."""
    scenario, score = item.scenario, item.score
    tags = scenario.tags
    by_sample = {sample.sample: sample for sample in score.samples}
    return [
        scenario.id,
        _SUBTASK_NUMBER[scenario.subtask],
        scenario.language,
        scenario.persona,
        [tags.emotion, tags.complexity, tags.interaction, tags.risk],
        list(scenario.references),
        [_short(value) for value in (score.s, score.lexical, score.ss, score.compliance)],
        score.unscored,
        [[m.role, [paragraphs.setdefault(p, len(paragraphs)) for p in m.content.split("\n\n")]] for m in item.messages],
        [_packed_sample(r, by_sample.get(r.sample)) for r in sorted(item.responses, key=lambda r: r.sample)],
    ]


def _packed_sample(response: Response | FailedResponse, score: SampleScore | None) -> list[Any]:
    """Pack a sample for `unpackSample` of records.js. An answer equal to the raw text is not written twice."""
    scored: list[Any] = [None, None, None, [], None]
    if score is not None:
        metrics = [_short(score.values.get(name)) for name in columns()] if score.values else None
        scored = [
            metrics,
            _short(score.values.get("ss")),
            _short(score.s),
            list(score.violations or ()),
            score.unscored,
        ]
    if isinstance(response, FailedResponse):
        failure = response.failure
        return [response.sample, scored, None, [failure.reason, failure.message, failure.attempts]]
    answer = response.answer
    usage = response.usage
    reply = [
        response.text,
        None if answer == response.text else answer,
        response.thinking,
        response.finish_reason,
        usage.input_tokens,
        usage.output_tokens,
        response.request_id,
    ]
    return [response.sample, scored, reply, None]


def _short(value: float | None) -> float | None:
    """Round to five decimals: a thousandth of what the tables show."""
    return None if value is None else round(value, 5)
