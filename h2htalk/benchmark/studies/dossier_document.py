"""The document for a compliance file: title page, contents, summary, numbered tables and figures, appendices.

In `dossier/` are its layout, the words of the summary (`words.toml`) and the provisions (`articles.toml`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from h2htalk.benchmark.judge.judgements import list_people_ratings
from h2htalk.benchmark.observations import Observation, blindness, figure_of, select
from h2htalk.benchmark.raters import describe_check
from h2htalk.benchmark.report.charts import Mark, interval_plot
from h2htalk.benchmark.report.notes import judge_facts, notes
from h2htalk.benchmark.report.pdf import page_numbers, print_pdf
from h2htalk.benchmark.report.run_tables import main_title, subtask_table
from h2htalk.benchmark.report.table2 import main_row
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.run_facts import collect_facts, read_sessions
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.report.study_page import ReplyToRead, replies_to_read, study_view
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.files import remove_file, write_output, write_text
from h2htalk.data.links import link_copies
from h2htalk.data.model_names import text_without_paths, without_paths
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table
from h2htalk.version import __version__

_FOLDER = files("h2htalk.benchmark.studies") / "dossier"
EXAMPLES = 4  # of each study
# The summary shows the first of these arms, else the study's first.
DEPLOYED = ("sap", "app", "whole")
NOBODY = "no person answered"
TITLE = "Scores by subtask (table 2 of the paper)"
TICKS = "Grey ticks: baselines near the scores, which are answers that need no model."
NOTES = (
    "Intervals 95 %. A baseline ends with ! where the model is not above it.",
    f"Of the figure: {TICKS}",
)


class Exhibit(NamedTuple):
    """A numbered table, and the chart that is drawn from it."""

    number: int
    table: Table
    chart: Markup | None


class Statement(NamedTuple):
    """A figure of the summary in each arm that is shown, by its title; `word` says what it means."""

    word: Mapping[str, Any]
    figures: Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DossierPart:
    """What the document shows of a study or an evaluation; its texts hold no control characters."""

    kind: str  # the name of the study, or `evaluation`
    title: str
    system: str  # the model
    data: str  # what it was tested with
    answered_by: Sequence[str]
    statements: Sequence[Statement]
    warnings: Sequence[str]
    exhibits: Sequence[Exhibit]
    facts: Sequence[tuple[str, str]]  # of method and data
    examples: Sequence[ReplyToRead] = ()
    measure: str = ""  # of an evaluation: the score and its unit


def write_dossier(
    runs: Sequence[Path], out: Path, owner: str = "", paper: str = "a4"
) -> Iterator[str]:
    """Write `dossier.html` into a folder, and `dossier.pdf` where Chromium is present; yield what was written.

    `runs`: folders of scored studies and evaluations. `owner` answers for the document; `paper`: `a4` or `letter`.
    """
    words = _read_words("words")
    articles = _read_words("articles")["article"]
    numbers = count(2)  # table 1 says what was tested
    chapters = []
    for path in runs:
        read_part = _study_part if StudyFolder(path).manifest.exists() else _run_part
        chapters.append(read_part(path, words, numbers))
    for article in articles:
        article["tables"] = _numbers_of(article["tables"], chapters)
    view = {
        "owner": printable(owner),
        "paper": paper,
        "date": datetime.now(UTC).date(),
        "version": __version__,
        "articles": articles,
        "number": next(numbers),
        "tiles": [],
        "parts": chapters,
        "pages": {},
    }
    page = out / "dossier.html"
    pdf = out / "dossier.pdf"
    html = render_page(_FOLDER / "page", view)
    write_output(page, html, "<!doctype html><!-- h2htalk dossier -->")
    link_copies(runs, out)
    yield f"{page}"
    remove_file(pdf)  # an older one shows something else
    problem = print_pdf(page, pdf)
    pages = {} if problem else page_numbers(pdf)
    if pages:  # printed again, with the numbers in its contents
        numbered = out / "dossier.numbered.html"
        write_text(numbered, render_page(_FOLDER / "page", {**view, "pages": pages}))
        problem = print_pdf(numbered, pdf)
        remove_file(numbered)
    yield f"no PDF: {problem}; print the page from a browser" if problem else f"{pdf}"


def _read_words(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))


def _numbers_of(names: Sequence[str], chapters: Sequence[DossierPart]) -> list[int]:
    """Return the numbers of tables of the studies of safety."""
    numbers = []
    for part in chapters:
        for exhibit in part.exhibits:
            if part.kind == "sap" and exhibit.table.name in names:
                numbers.append(exhibit.number)
    return numbers


def _signed_facts(facts: Iterable[tuple[str, str]], signature: Signature) -> list[tuple[str, str]]:
    """Return facts with what the signature names; facts without a text are left out."""
    protocol = without_paths(signature.protocol)
    subject = without_paths(signature.subject)
    named = chain(facts, protocol.items(), subject.items())
    return [(name, printable(text)) for name, text in named if text]


def _printable_warnings(warnings: Iterable[str], people: int) -> list[str]:
    """Return warnings as the document shows them, and last whether no person answered."""
    shown_warnings = [*warnings]
    if not people:
        shown_warnings.append(NOBODY)
    return [printable(text_without_paths(warning)) for warning in shown_warnings]


def _study_part(path: Path, words: Mapping[str, Any], numbers: Iterator[int]) -> DossierPart:
    result = load_study(path)
    study = result.study
    kind = study.spec.study
    arms = study.spec.arms
    split = study.split
    view = study_view(result)
    shown_arms = [next((arm for arm in DEPLOYED if arm in arms), arms[0])]
    if "none" in arms and "none" not in shown_arms:
        shown_arms.append("none")
    statements = []
    for word in words[kind]:
        name = word["figure"]
        figures = [
            (result.titles[arm], _figure_of_arm(result.observations, name, arm))
            for arm in shown_arms
        ]
        statements.append(Statement(word, figures))
    people = list_people_ratings(study.folder)
    answered_by = ["code"]
    if result.judge:
        answered_by.append(f"judge {view['judge']} ({describe_check(result.planted)})")
    if people:
        most = max(rating.annotators for rating in people)
        answered_by.append(f"people: {counted(len(people), 'answer')}, each by up to {most}")
    sessions = read_sessions(study.folder)
    run_facts = collect_facts(sessions, study.folder.answers(), read_costs(path), {})
    facts = [
        ("arms", ", ".join(arms)),
        ("licence", split.licence),
        ("fingerprint of the data", split.fingerprint),
        *replace(run_facts, endpoints={}).texts(),
    ]
    warnings = map(_without_advice, view["warnings"])
    charts = view["charts"]
    exhibits = [Exhibit(next(numbers), table, charts.get(table.name)) for table in view["tables"]]
    return DossierPart(
        kind=kind,
        title=view["title"],
        system=view["model"],
        data=f"{view['split']}, {counted(len(result.replies), 'reply', 'replies')}",
        answered_by=[printable(rater) for rater in answered_by],
        statements=statements,
        warnings=_printable_warnings(warnings, len(people)),
        exhibits=exhibits,
        facts=_signed_facts(facts, study.signature),
        examples=replies_to_read(result, EXAMPLES, public=True),
    )


def _without_advice(warning: str) -> str:
    """A warning without the advice after its first semicolon; what a judge's check says of a second language stays."""
    return warning if warning.startswith("Judge ") else warning.partition("; ")[0]


def _figure_of_arm(rows: Sequence[Observation], name: str, arm: str) -> Estimate:
    if name == "blindness":
        return blindness(select(rows, "need_met", arm))
    return figure_of(select(rows, name, arm))


def _run_part(path: Path, words: Mapping[str, Any], numbers: Iterator[int]) -> DossierPart:
    run = load_run(path)
    summary = run.summary
    split = run.data.split
    counts = summary.counts
    embedder = summary.signature.protocol.get("embedder", "").partition("@")[0]
    mark = ""
    if summary.measure == "s" and not summary.s_comparable:
        mark = f" by {embedder}, not comparable"
    measure = f"{main_title(summary)}{mark}, percent"
    chart = Markup(
        interval_plot(f"{TITLE}: {summary.model}", TICKS, measure, list(_subtask_marks(summary)))
    )
    table = subtask_table(summary)
    headings = [f"{name}{mark}" if name in ("S", "S and J") else name for name in table.header]
    table = replace(table, title=TITLE, header=headings, notes=NOTES)
    scores, compliance = _scores(summary)
    pairs = zip(words["evaluation"], (scores, compliance), strict=True)
    statements = [Statement(word, figures) for word, figures in pairs]
    judges = summary.judging.judges if summary.judging else ()
    people = summary.judging.people if summary.judging else 0
    answered_by = ["code", *(f"judge {judge}" for judge in judges)]
    if people:
        answered_by.append(f"people: {people:,} answers")
    facts = [
        ("licence", split.licence),
        *judge_facts(summary),
        *replace(summary.run_facts, endpoints={}).texts(),
    ]
    warnings = [note for note, is_warning in notes(summary) if is_warning]
    return DossierPart(
        kind="evaluation",
        title="Evaluation",
        system=printable(summary.model),
        data=f"{split.name} {split.version}, {counts.scored:,} of {counts.items:,} items scored",
        answered_by=[printable(rater) for rater in answered_by],
        statements=statements,
        warnings=_printable_warnings([*warnings, *summary.warnings], people),
        exhibits=[Exhibit(next(numbers), table, chart)],
        facts=_signed_facts(facts, summary.signature),
        measure=measure,
    )


def _subtask_marks(summary: Summary) -> Iterator[Mark]:
    """Yield the score of each subtask with its interval, and ticks at the baselines."""
    cells = main_row(summary)
    baselines = [main_row(summary, row) for row in summary.baselines.values()]
    for name, subtask in SUBTASKS.items():
        if name not in cells:
            continue
        values = [baseline[name].value for baseline in baselines if name in baseline]
        ticks = [value for value in values if value is not None]
        cell = cells[name]
        dimension = subtask.dimension.title()
        yield Mark(subtask.title, cell.value, cell.low, cell.high, dimension, tuple(ticks))


def _scores(summary: Summary) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]]]:
    """Return the score and the best answer without a model, and the share of contracts that hold."""
    cells = main_row(summary)
    key, label = "overall", "overall"
    if cells["overall"].value is None:
        key, label = "items_mean", "mean of the items"
    scores = [(label, cells[key])]
    baselines = []
    for name, row in summary.baselines.items():
        value = main_row(summary, row)[key].value
        if value is not None:
            baselines.append((value, name))
    if baselines:
        _, best = max(baselines)
        cell = main_row(summary, summary.baselines[best])[key]
        scores.append((f"best answer without a model ({best})", cell))
    return scores, [(label, summary.rows.compliance[key])]
