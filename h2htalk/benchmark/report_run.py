"""Write the tables and the page of a scored run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.metrics.composite import ItemScore, item_score
from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.report.tables import ITEMS, items_csv, write_tables
from h2htalk.benchmark.run_data import RunData
from h2htalk.benchmark.summary import Summary
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.files import write_text
from h2htalk.data.run_folder import Answers


def report(path: Path) -> Summary:
    """Write the tables and the page of a scored run again. Raises DataError when it was never scored."""
    run = load_run(path)
    with writer_lock(run.data.folder.shard, WAIT):
        write_report(run.data, run.summary, run.answers, run.item_scores)
    return run.summary


def write_report(data: RunData, summary: Summary, answers: Answers, scores: Mapping[str, ItemScore]) -> None:
    write_tables(summary, data.folder.tables)
    write_text(data.folder.tables / ITEMS, items_csv(data.split, scores))
    write_page(data.folder.page, summary, _item_views(data, answers, scores))


def _item_views(data: RunData, answers: Answers, scores: Mapping[str, ItemScore]) -> Iterator[ItemView]:
    for scenario in data.split.scenarios:
        keys = [(scenario.id, sample) for sample in range(data.spec.samples)]
        yield ItemView(
            scenario=scenario,
            messages=data.prompt_of(scenario) if data.prompt_of else (),
            responses=tuple(answers[key] for key in keys if key in answers),
            score=scores.get(scenario.id) or item_score(scenario.id, ()),
        )
