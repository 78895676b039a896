"""The item browser: its page, the data that the page loads as scripts, a table; and one transcript alone.

data/items-SPLIT.js    ids, tags and first words of a split's items, as columns
data/prompts-SPLIT.js  prompts as they were sent, whose paragraphs are stored once, and references that are public
data/scores-SPLIT.js   scores of its runs, as columns in the order of the items
data/texts-RUN.js      answers with their metrics, and what judges and people said of them
data.parquet           a row for each run and item: tags, scores, broken rules, and the bits of `FLAGS`

A chunk is `h2htalk_chunk("NAME", "...")` with JSON as gzip in base64: a page on a disk may load scripts and nothing
else. Ids and other names of the data are values in it, never keys. `item_chunks` packs them, `pages/chunks.js` unpacks.
"""

from __future__ import annotations

import base64
import gzip
import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.report.page_items import script_json
from h2htalk.data.files import json_line
from h2htalk.errors import ConfigError, quoted, suggest
from h2htalk.site.context import Context
from h2htalk.site.item_chunks import SCORES, ItemSet, item_sets, pack_item_set, prompt_version
from h2htalk.site.leaks import LeakCheck
from h2htalk.text.contracts.violations import RULES
from h2htalk.text.help_lines import read_help_lines


def write_items(
    context: Context, check: LeakCheck, leave_out: Collection[str] = ()
) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of the browser's page and of its data, run after run; `check` is given every text."""
    sets = item_sets(context.sources.runs, leave_out)
    if not sets:
        return
    page = _page(context, sets, check, context.words["nav"]["items"])
    yield "items.html", page.encode("utf-8", "replace")
    tables: list[dict[str, list[Any]]] = []
    for item_set in sets:
        for name, data in pack_item_set(item_set, check, tables):
            packed = base64.b64encode(gzip.compress(json_line(data).strip().encode(), mtime=0))
            yield f"data/{name}.js", b'h2htalk_chunk("%s", "%s");\n' % (name.encode(), packed)
    yield "data.parquet", _parquet(tables)


def count_item_files(context: Context, leave_out: Collection[str] = ()) -> int:
    """Return how many files `write_items` writes: the page, the table, three of each split and one of each run."""
    sets = item_sets(context.sources.runs, leave_out)
    return 2 + sum(3 + len(item_set.runs) for item_set in sets) if sets else 0


def share_item(context: Context, item: str) -> str:
    """Render one item and the answers of up to three runs as a page that needs no other file.

    Raises ConfigError where no run was asked this item, or the page would show what must not be published.
    """
    runs = [source for source in context.sources.runs if item in source.run.item_scores]
    if not runs:
        names: list[str] = []
        for source in context.sources.runs:
            names += source.run.item_scores
        raise ConfigError(
            f"no run of this site was asked {quoted(item)}; {suggest(item, names)}name one that was"
        )
    check = LeakCheck(context.sources)
    item_set = item_sets(runs[:3])[0]
    item_set.scenarios = {item: item_set.scenarios[item]}
    chunks = []
    for name, data in pack_item_set(item_set, check, []):
        chunks.append([name, json_line(data).strip()])
    page = _page(context, [item_set], check, item_set.label, alone=item, chunks=chunks)
    check.require_none()
    return page


def _page(
    context: Context, sets: Sequence[ItemSet], check: LeakCheck, heading: str, **alone: Any
) -> str:
    """Render the page with its words, and which splits and runs there are; `alone`: one item and its chunks."""
    words = context.words["items"]
    languages: set[str] = set()
    splits = []
    for item_set in sets:
        languages |= {scenario.language for scenario in item_set.scenarios.values()}
        runs = []
        for source in item_set.runs:
            runs.append([source.key, source.label, item_set.prompts[prompt_version(source.run)]])
        splits.append([item_set.key, item_set.label, runs])
    check.check("items.html", "label", [""], [splits])
    help_lines = []
    for language in sorted(languages):
        lines = []
        for name, line in read_help_lines().overview(language):
            lines.append([name, line and line.url, line and str(line.date)])
        help_lines.append([language, lines])
    data = {
        "words": words,
        "rules": [[code, words["rules"][code]] for code in RULES],
        "help": help_lines,
        "splits": splits,
        **alone,
    }
    view = {"heading": heading, "data": Markup(script_json(data)), "alone": bool(alone)}
    return context.page("items.html", view, scripts=("chunks.js", "item.js", "items.js"))


def _parquet(tables: Sequence[dict[str, list[Any]]]) -> bytes:
    """Return one row for each run and item that it was asked, a group for each run."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {**dict.fromkeys(SCORES, pa.float64()), "flags": pa.int8()}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in tables[0]])
    target = io.BytesIO()
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for columns in tables:
            table = pa.table(columns, schema)
            writer.write_table(table.filter(table["flags"].is_valid()))
    return target.getvalue()
