"""The document for a compliance file: title page, contents, summary, numbered tables and figures, appendices.

In `dossier/` are its layout, the words of the summary (`words.toml`) and the provisions (`articles.toml`).
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from markupsafe import Markup

from h2htalk.benchmark.answering import describe_answering, read_sessions
from h2htalk.benchmark.judge.judgements import list_people_ratings
from h2htalk.benchmark.observations import Figure, Observation, blindness, figure_of, select
from h2htalk.benchmark.report.charts import Mark, interval_plot
from h2htalk.benchmark.report.notes import judge_facts, notes
from h2htalk.benchmark.report.pdf import page_numbers, print_pdf
from h2htalk.benchmark.report.table2 import main_row, measure_name, subtask_table
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.report import replies_to_read, study_view, title_of
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.files import remove_file, write_output, write_text
from h2htalk.data.links import link_copies
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.version import __version__

_FOLDER = files("h2htalk.benchmark.studies") / "dossier"
EXAMPLES = 4  # of each study
DEPLOYED = ("sap", "app", "whole")  # the summary shows the first of these arms, else the study's first
NOBODY = "no person answered"
TITLE = "Scores by subtask (table 2 of the paper)"
TICKS = "Grey ticks: baselines near the scores, which are answers that need no model."
NOTES = ("Intervals 95 %. A baseline ends with ! where the model is not above it.", f"Of the figure: {TICKS}")


def write_dossier(runs: Sequence[Path], out: Path, owner: str = "", paper: str = "a4") -> Iterator[str]:
    """Write `dossier.html` into a folder, and `dossier.pdf` where Chromium is present; yield what was written.

    `runs`: folders of scored studies and evaluations. `owner` answers for the document; `paper`: `a4` or `letter`.
    """
    words, articles = (tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8")) for name in ("words", "articles"))
    parts = [(_study_part if StudyFolder(path).manifest.exists() else _run_part)(path, words) for path in runs]
    tables, figures, places = count(2), count(1), defaultdict[str, list[int]](list)  # table 1: what was tested
    for part in parts:
        facts = (*part["facts"], *part["signature"].protocol.items(), *part["signature"].subject.items())
        part["facts"] = [(name, printable(text)) for name, text in facts if text]
        part |= {name: [*map(printable, part[name])] for name in ("who", "warnings")}
        part["tables"] = [(next(tables), table, chart, chart and next(figures)) for table, chart in part["tables"]]
        for number, table, *_ in part["tables"]:
            places[f"{part['kind']} {table.name}"].append(number)
    for article in articles["article"]:
        article["tables"] = sorted(number for name in article["tables"] for number in places[f"sap {name}"])
    view = {"owner": printable(owner), "paper": paper, "date": datetime.now(UTC).date(), "version": __version__}
    view |= {"articles": articles["article"], "number": next(tables)}
    view |= {"tiles": [], "parts": parts, "pages": {}}
    page, pdf, numbered = (out / name for name in ("dossier.html", "dossier.pdf", "dossier.numbered.html"))
    write_output(page, render_page(_FOLDER / "page", view), "<!doctype html><!-- h2htalk dossier -->")
    link_copies(runs, out)
    yield f"{page}"
    remove_file(pdf)  # an older one shows something else
    why = print_pdf(page, pdf)
    if not why and (pages := page_numbers(pdf)):  # printed again, with the numbers in its contents
        write_text(numbered, render_page(_FOLDER / "page", {**view, "pages": pages}))
        why = print_pdf(numbered, pdf)
        remove_file(numbered)
    yield f"no PDF: {why}; print the page from a browser" if why else f"{pdf}"


def _study_part(path: Path, words: Mapping[str, Any]) -> dict[str, Any]:
    result = load_study(path)
    study, kind, rows, view = result.study, result.study.spec.study, result.observations, study_view(result)
    people, arms, split = list_people_ratings(study.folder), study.spec.arms, study.split
    shown = dict.fromkeys([next((arm for arm in DEPLOYED if arm in arms), arms[0]), *["none"] * ("none" in arms)])
    figures = [[(title_of(arm, kind), _figure(rows, one["figure"], arm)) for arm in shown] for one in words[kind]]
    asked = f"people: {counted(len(people), 'answer')}, each by up to {max((p.annotators for p in people), default=0)}"
    answering = describe_answering(read_sessions(study.folder), study.folder.answers(), read_costs(path), {})
    facts = [("arms", ", ".join(arms)), ("licence", split.licence), ("fingerprint of the data", split.fingerprint)]
    part: dict[str, Any] = {"kind": kind, "title": view["title"], "system": view["model"], "figures": figures}
    part |= {"data": f"{view['split']}, {counted(len(result.replies), 'reply', 'replies')}", "words": words[kind]}
    part |= {"who": ["code", *[f"judge {view['judge']}"] * bool(result.judge), *[asked] * bool(people)]}
    part |= {"warnings": [*(one.partition("; ")[0] for one in view["warnings"]), *[NOBODY] * (not people)]}
    part |= {"tables": [(table, view["charts"].get(table.name)) for table in view["tables"]]}
    part |= {"facts": [*facts, *replace(answering, endpoints={}).facts()], "signature": study.signature}
    return part | {"examples": replies_to_read(result, EXAMPLES, public=True)}


def _figure(rows: Sequence[Observation], name: str, arm: str) -> Figure:
    return blindness(select(rows, "need_met", arm)) if name == "blindness" else figure_of(select(rows, name, arm))


def _run_part(path: Path, words: Mapping[str, Any]) -> dict[str, Any]:
    run = load_run(path)
    summary, split, judging = run.summary, run.data.split, run.summary.judging
    main, trivial = main_row(summary), {name: main_row(summary, own) for name, own in summary.baselines.items()}
    judges, people = (judging.judges, judging.people) if judging else ((), 0)
    embedder = summary.signature.protocol.get("embedder", "").partition("@")[0]
    mark = f" by {embedder}, not comparable" * (summary.measure == "s" and not summary.s_comparable)
    marks, table, counts = list[Mark](), subtask_table(summary), summary.counts
    for one, cell in ((one, main[name]) for name, one in SUBTASKS.items() if name in main):
        ticks = tuple(v for own in trivial.values() if one.name in own and (v := own[one.name].value) is not None)
        marks.append(Mark(one.title, cell.value, cell.low, cell.high, one.dimension.title(), ticks))
    says = f"{measure_name(summary)}{mark}, percent"
    chart = Markup(interval_plot(f"{TITLE}: {summary.model}", TICKS, says, marks))
    heads = [head + mark * (head in ("S", "S and J")) for head in table.header]
    key, label = ("items_mean", "mean of the items") if main["overall"].value is None else ("overall", "overall")
    best = sorted((v, name) for name, own in trivial.items() if (v := own[key].value) is not None)[-1:]
    scores = {label: main[key], **{f"best answer without a model ({name})": trivial[name][key] for _, name in best}}
    part: dict[str, Any] = {"kind": "evaluation", "title": "Evaluation", "system": printable(summary.model)}
    part |= {"figures": [[*scores.items()], [(label, summary.rows.compliance[key])]], "measure": says}
    part |= {"data": f"{split.name} {split.version}, {counts.scored:,} of {counts.items:,} items scored"}
    part |= {"who": ["code", *(f"judge {one}" for one in judges), *[f"people: {people:,} answers"] * bool(people)]}
    part |= {"warnings": [*(one for one, bad in notes(summary) if bad), *summary.warnings, *[NOBODY] * (not people)]}
    part |= {"tables": [(replace(table, title=TITLE, header=heads, notes=NOTES), chart)], "examples": []}
    facts = [("licence", split.licence), *judge_facts(summary), *replace(summary.answering, endpoints={}).facts()]
    return part | {"facts": facts, "signature": summary.signature, "words": words["evaluation"]}
