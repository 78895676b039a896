"""Write the tables and the page of a scored run again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from h2htalk.benchmark.metrics.composite import ItemScore, item_score
from h2htalk.benchmark.metrics.scoring import read_scores
from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.report.tables import write_tables
from h2htalk.benchmark.run_data import RunData, read_run_data
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.data.append_log import writer_lock
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import Answers
from h2htalk.errors import DataError


def report(path: Path) -> Summary:
    """Write a scored run's tables and page again; raises DataError when it was never scored."""
    summary = read_summary(path / "summary.json")
    data = read_run_data(path)
    ids = [s.id for s in data.split.scenarios]
    scores = read_scores(data.folder.scores(summary.signature), ids)
    answers = data.folder.answers(ids, data.spec.samples)
    answered = {key for key, answer in answers.items() if isinstance(answer, Response)}
    if answered != {(s.id, s.sample) for item in scores.values() for s in item.samples if s.lexical}:
        raise DataError(f"{path}: its answers are not those that were scored; run `h2htalk score {path}`")
    with writer_lock(data.folder.shard):
        write_report(data, summary, answers, scores)
    return summary


def write_report(data: RunData, summary: Summary, answers: Answers, scores: Mapping[str, ItemScore]) -> None:
    write_tables(summary, data.folder.tables)
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
