"""Write a dossier: what was tested with which data, version and date, criteria, n, intervals, examples, limits,
raters."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.benchmark.answering import describe_answering, read_sessions
from h2htalk.benchmark.judge.judgements import list_people_ratings
from h2htalk.benchmark.report.run_tables import measure_name
from h2htalk.benchmark.report.table2 import COLUMNS, interval_text, items_text, model_rows, value_text
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.report import TITLES, replies_to_read
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.benchmark.studies.study_folder import StudyFolder
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.files import remove_file, replacing, write_text
from h2htalk.data.links import link_copies
from h2htalk.data.signature import Signature
from h2htalk.errors import DataError, counted, shorten
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import Table
from h2htalk.version import __version__

_PAGE = files("h2htalk.benchmark.studies.dossier") / "page"
EXAMPLES = 8  # of each study
_NONE = subprocess.DEVNULL
SECONDS = 120.0  # for a PDF
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def write_dossier(runs: Sequence[Path], out: Path) -> Iterator[str]:
    """Write `dossier.html` into a folder, and `dossier.pdf` where Chromium is present; yield what was written.

    `runs`: folders of scored studies and evaluations.
    """
    parts = [(_study_part if StudyFolder(path).manifest.exists() else _run_part)(path) for path in runs]
    shown = {table.name: table.title for part in parts if part["study"] == "sap" for table in part["tables"]}
    view = {
        "title": "What was tested, and what was found",
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "tiles": [],
        "parts": parts,
        "articles": list(_articles(shown)),
    }
    link_copies(runs, out)
    page = out / "dossier.html"
    write_text(page, render_page(_PAGE, view))
    yield f"{page}"
    pdf = out / "dossier.pdf"
    remove_file(pdf)  # an older one shows something else
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    why = f"none of {', '.join(BROWSERS)} is here"
    if browser is not None:
        try:
            with replacing(pdf) as new:
                command = [browser, *OPTIONS, f"--print-to-pdf={new.resolve()}", page.resolve().as_uri()]
                # Without pipes, which its children would keep open, and in a group of its own, which ends with them.
                with subprocess.Popen(command, stdin=_NONE, stdout=_NONE, stderr=_NONE, start_new_session=True) as run:
                    try:
                        code = run.wait(SECONDS)
                    finally:
                        with suppress(ProcessLookupError):
                            os.killpg(run.pid, signal.SIGKILL)
                if code:
                    raise subprocess.CalledProcessError(code, browser)
            yield f"{pdf}"
            return
        except (DataError, OSError, subprocess.SubprocessError) as error:
            why = f"{browser} failed ({shorten(' '.join(str(error).split()), 200)})"
    yield f"no PDF: {why}; print the page from a browser"


def _articles(shown: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The provisions, each with the titles of the tables that are shown."""
    for one in tomllib.loads((files(__package__) / "articles.toml").read_text(encoding="utf-8"))["article"]:
        titles = [shown[name] for name in one["tables"] if name in shown]
        yield one | {"tables": "; ".join(titles) or "none in this dossier"}


def _study_part(path: Path) -> dict[str, Any]:
    result = load_study(path)
    study = result.study
    people = list_people_ratings(study.folder)
    rounds = counted(len({one.round for one in people}), "round")
    raters = f"people: {counted(len(people), 'answer')} of {rounds}" if people else "no people"
    facts = [
        ("what", f"{result.model}, arms {', '.join(study.spec.arms)}"),
        ("data", f"{result.cases}, licence {study.split.licence}, fingerprint {study.split.fingerprint}"),
        *describe_answering(read_sessions(study.folder), study.folder.answers(), read_costs(study.path), {}).facts(),
        ("who answered the points", f"code; judge: {result.judge or 'none'}; {raters}"),
        *_signed(study.signature),
        *(("note", note) for note in result.warnings()),
    ]
    examples = replies_to_read(result, EXAMPLES)
    return _part(f"{TITLES[study.spec.study]}: {result.model}", facts, result.tables(), examples, study.spec.study)


def _run_part(path: Path) -> dict[str, Any]:
    run = load_run(path)
    summary, split = run.summary, run.data.split
    facts = [
        ("what", summary.model),
        ("data", f"{split.name} {split.version}, licence {split.licence}"),
        ("scored", f"{summary.counts.scored:,} of {summary.counts.items:,} items"),
        *summary.answering.facts(),
        *_signed(summary.signature),
    ]
    cells = model_rows(summary)[0].cells
    lines = [
        (f"{column.group} {column.heading}".strip(), value_text(cell), interval_text(cell), items_text(cell))
        for column in COLUMNS
        if (cell := cells.get(column.key)) is not None and cell.value is not None
    ]
    header = ("figure", measure_name(summary), "95 % interval", "items scored")
    return _part(f"Evaluation: {summary.model}", facts, [Table("Scores by subtask (Table 2)", header, lines)])


def _part(
    title: str, facts: Iterable[tuple[str, str]], tables: Sequence[Table], examples: Sequence[Any] = (), study: str = ""
) -> dict[str, Any]:
    shown = [(name, printable(value)) for name, value in facts]
    return {"title": printable(title), "facts": shown, "tables": tables, "examples": examples, "study": study}


def _signed(signature: Signature) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in {**signature.protocol, **signature.subject}.items() if value)
