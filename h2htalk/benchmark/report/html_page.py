"""Write a run as one HTML file that needs no network and no server: the tables, and every item with its prompt.

Text of items cannot execute (see `h2htalk.text.html_pages`): the items are in a JSON block, which the script inserts
as text only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, ItemScore, SampleScore, all_columns
from h2htalk.benchmark.report import notes, table2
from h2htalk.benchmark.report.table2 import PERCENT, items_text, value_text, with_half_width
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.protocol import Message
from h2htalk.data.files import write_text
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.scenario import Scenario, notes_crisis
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table

NONE = "–"


def page_view(summary: Summary) -> dict[str, Any]:
    """Return everything that page.html needs except the items; control characters are escaped."""
    all_notes, signature, counts = [*notes.notes(summary)], summary.signature, summary.counts
    parts = {"Protocol": {**signature.protocol, "fingerprint": signature.fingerprint}}
    parts |= {"Subject": dict(signature.subject), "Answers": dict(summary.answering.facts())}
    # The labels under the title: a kind and a text.
    bad = [("bad", "incomplete")] * summary.incomplete + [("bad", table2.NOT_SCORED)] * bool(counts.private)
    measure = ("", "comparable S") if summary.s_comparable else ("bad", "S not comparable")
    measure = ("", "lexical only") if summary.measure == "lexical" else measure
    judged = ("", "judged" if summary.judged else "unjudged")
    # The overall figures, the share of kept contracts and the number of items.
    row, kept = table2.main_row(summary), summary.rows.compliance["items_mean"]
    head = ("overall", "Overall") if row["overall"].value is not None else ("items_mean", "Mean of items")
    shown = [(label, row.get(key)) for key, label in [head, *((f"{d}_avg", d.title()) for d in DIMENSIONS)]]
    ends = {label: f"{cell.low:.2f} – {cell.high:.2f}" for label, cell in shown if cell and cell.low is not None}
    tiles = [
        *((label, value_text(cell, NONE), ends.get(label, "no value")) for label, cell in shown),
        ("Contract kept", value_text(kept, NONE, PERCENT), f"of {items_text(kept)} items"),
        ("Items scored", f"{counts.scored:,}", f"of {counts.items:,}"),
    ]
    held = summary.metrics.values()
    names = [name for name in all_columns(held) if any(name in cells for cells in held)]
    metrics = [
        (SUBTASKS[subtask].title, items_text(own.get(names[0])), *(with_half_width(own.get(n), True) for n in names))
        for subtask, own in summary.metrics.items()
    ]
    subtasks, title = table2.subtask_table(summary), Markup('<b class="group">{}</b>')
    lines = [line if any(line[1:]) else [title.format(line[0]), *line[1:]] for line in subtasks.rows]
    paper = table2.rows_table(rows := table2.table_rows(summary), half="ends")
    _, *columns = zip(paper.header, *paper.rows, strict=True)  # a column a row, so that it fits a screen
    return {
        "model": printable(summary.model),
        "split": printable(summary.split),
        "states": [*(bad or [("", "complete")]), measure, judged],
        "loud": [printable(note) for note, loud in all_notes if loud],
        "quiet": [*(printable(note) for note, loud in all_notes if not loud), *notes.spread_lines(summary)],
        "warnings": [printable(warning) for warning in summary.warnings],
        "tiles": [dict(zip(("label", "value", "note"), tile, strict=True)) for tile in tiles],
        "has_baselines": bool(summary.baselines),
        "subtasks": replace(subtasks, rows=lines),
        "metrics": Table("", ("Subtask", "Items", *(name.upper().replace("_", "-") for name in names)), metrics),
        "slices": table2.slice_tables(summary, ends=True),
        "table2": replace(paper, header=["", *(row.name for row in rows)], rows=columns),  # cautions: at the head
        "answers": table2.answer_tables(summary),
        "judge": Table("", ("judges", ""), list(notes.judge_facts(summary))),
        "costs": notes.cost_table(summary.costs) if summary.costs else None,
        "null_class": table2.null_class_table(summary, ends=True),
        "signature": [Table("", (title, ""), list(part.items())) for title, part in parts.items()],
        "version": printable(summary.package_version),
    }


_PAGE = files("h2htalk.benchmark.report") / "page"
_SCRIPTS = ("records.js", "detail.js", "list.js")
_MARKER = "@@items@@"
# Characters to escape in a script block: the first three could end the block, the last two end a line of script.
_ACTING = re.compile("[<>&\u2028\u2029]")


class ItemView(NamedTuple):
    """One item as the page shows it: its prompt, responses and scores."""

    scenario: Scenario
    messages: tuple[Message, ...]
    responses: tuple[Response | FailedResponse, ...]
    score: ItemScore


def write_page(path: Path, summary: Summary, items: Iterable[ItemView]) -> None:
    """Write the page of a run; the file appears only when it is complete.

    `items` are read once and written as they come, so that a run is never in memory as a whole.
    """
    text = render_page(_PAGE, {**page_view(summary), "data": _MARKER}, scripts=_SCRIPTS)
    before, after = text.rsplit(_MARKER, 1)  # the last: a model may be named so
    write_text(path, chain([before], _data(items), [after]))


def _data(items: Iterable[ItemView]) -> Iterator[str]:
    """Yield the items as JSON. Paragraphs of prompts are stored once, because personas and instructions repeat."""
    paragraphs: dict[str, int] = {}
    subtasks = [[s.name, s.title] for s in SUBTASKS.values()]
    head = script_json({"subtasks": subtasks, "metrics": list(METRIC_COLUMNS), "rules": RULES})
    yield head[:-1] + ',"items":['
    for number, item in enumerate(items):
        yield ("," if number else "") + script_json(_packed(item, paragraphs))
    yield '],"paragraphs":' + script_json(list(paragraphs)) + "}"


def script_json(value: Any) -> str:
    """JSON for a script block of a page, which no text in it can end."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _packed(item: ItemView, paragraphs: dict[str, int]) -> list[Any]:
    """Pack an item for `unpackItem` of records.js, which defines the order of the fields."""
    scenario, score, tags = item.scenario, item.score, item.scenario.tags
    by_sample = {sample.sample: sample for sample in score.samples}
    return [
        scenario.id,
        list(SUBTASKS).index(scenario.subtask),
        scenario.language,
        scenario.persona,
        [tags.emotion, tags.complexity, tags.interaction, tags.risk],
        list(scenario.references),
        [_short(value) for value in (score.s, score.lexical, score.ss, score.compliance)],
        score.unscored,
        [[m.role, [paragraphs.setdefault(p, len(paragraphs)) for p in m.content.split("\n\n")]] for m in item.messages],
        [_packed_sample(r, by_sample.get(r.sample)) for r in sorted(item.responses, key=lambda r: r.sample)],
        int(tags.risk != "none" or notes_crisis(scenario.metadata)),  # about a crisis
    ]


def _packed_sample(response: Response | FailedResponse, score: SampleScore | None) -> list[Any]:
    """Pack a sample for `unpackSample` of records.js. An answer equal to the raw text is not written twice."""
    score = score or SampleScore("", 0)
    metrics = [_short(score.values.get(name)) for name in METRIC_COLUMNS] if score.values else None
    ends = list(score.violations or ()), score.unscored
    scored = [metrics, _short(score.values.get("ss")), _short(score.s), *ends]
    if isinstance(response, FailedResponse):
        failure = response.failure
        return [response.sample, scored, None, [failure.reason, failure.message, failure.attempts]]
    answer, usage = None if response.answer == response.text else response.answer, response.usage
    said = [response.text, answer, response.thinking, response.finish_reason]
    return [response.sample, scored, [*said, usage.input_tokens, usage.output_tokens, response.request_id], None]


def _short(value: float | None) -> float | None:
    """Round to five decimals: a thousandth of what the tables show."""
    return None if value is None else round(value, 5)
