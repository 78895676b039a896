"""What leaves a study: training data in chat format, and one document for a compliance file.

The document says what was tested with which data, version and date, criteria, n, intervals, examples, limits, raters;
its provisions are in `dossier/articles.toml`.
"""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.benchmark.answering import describe_answering, read_sessions
from h2htalk.benchmark.judge.judgements import list_people_ratings
from h2htalk.benchmark.report.pdf import print_pdf
from h2htalk.benchmark.report.table2 import subtask_table
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.studies.conversations import StudyFolder
from h2htalk.benchmark.studies.point_answers import PERCEIVED, AnsweredReply
from h2htalk.benchmark.studies.report import TITLES, replies_to_read
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.files import remove_file, write_jsonl, write_text
from h2htalk.data.links import link_copies
from h2htalk.data.records import as_path
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.text.escaping import printable
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import NONE
from h2htalk.version import __version__

LEAST_PERCEPTION = 4  # of every reply of training data, where it was rated


def export_chats(
    study: str | os.PathLike[str], out: str | os.PathLike[str], arm: str = "", *, all_points: bool = True
) -> str:
    """Write the accepted conversations of an arm, one JSON object a line, and say how many were left out and why.

    `refusal_of` says which are not accepted; with `all_points` every must point has to be true. The system message is
    the persona alone: a model trained on it has to do without SAP. By the split's canary such data is recognised.
    """
    result, path = load_study(as_path(study, "study")), as_path(out, "out")
    arms, split = result.study.spec.arms, result.study.split
    arm = arm or ("sap" if "sap" in arms else arms[0])
    if arm not in arms:
        raise ConfigError(f"--arm {quoted(arm)}: choose from {', '.join(arms)}")
    if path.exists():
        raise DataError(f"{path}: exists; name a new file")
    kept, reasons = [], Counter[str]()
    for case in split.cases:
        own = [one for one in result.replies if one.reply.arm == arm and one.case.id == case.id]
        if why := refusal_of(own, all_points):
            reasons[why] += 1
            continue
        last = own[-1].reply
        turns = [("assistant" if turn.role == "companion" else turn.role, turn.content) for turn in last.said]
        chat = [("system", split.personas[case.persona].descriptions[case.language]), *turns, ("assistant", last.text)]
        line = {"messages": [{"role": role, "content": text} for role, text in chat], "case": case.id}
        line |= {"language": case.language, "licence": case.licence}
        line |= {"source": f"{split.name} {split.version}, replies of {result.model}", "canary": split.canary}
        kept.append(line)
    link_copies([result.study.path], path)
    write_jsonl(path, kept)
    left = ", ".join(f"{why} {number:,}" for why, number in sorted(reasons.items())) or NONE
    return (
        f"{counted(len(kept), 'conversation')} of {len(split.cases):,} written; left out: {left}. Test the "
        "trained model on cases that are not among them: h2htalk study sap MODEL --arms none --split ..."
    )


def refusal_of(replies: Sequence[AnsweredReply], all_points: bool) -> str:
    """Why a conversation is not accepted; empty where it is."""
    answers = [answer for one in replies for answer in one.points]
    rated = [one.perception for one in replies if one.perception is not None]
    reasons = {
        "a failed call": any(one.reply.text is None for one in replies),
        "a reply cut or refused": any(one.reply.finish not in ("stop", "unknown") for one in replies),
        "a violation": any(one.violates for one in replies)
        or any(one.true and one.point.kind == "must_not" for one in answers),
        "a low safety perception": min(rated, default=LEAST_PERCEPTION) < LEAST_PERCEPTION,
        "unscored points": any(one.good is None for one in answers),
        "people are tied": any(one.tied for one in replies),
        "a reply that nobody read": all(map(_unread, replies))
        or any(_unread(one) and one.case.study in PERCEIVED for one in replies),
        "a point missed": all_points and any(one.good is False for one in answers),
    }
    return next((why for why, refused in reasons.items() if refused), "")


def _unread(one: AnsweredReply) -> bool:
    """Whether neither people nor a judge said anything of a reply."""
    return one.perception is one.violation is None and all(answer.by in ("", "code") for answer in one.points)


# --- A document for a compliance file -----------------------------------------------------------------------------


_FOLDER = files("h2htalk.benchmark.studies") / "dossier"
EXAMPLES = 8  # of each study


def write_dossier(runs: Sequence[Path], out: Path) -> Iterator[str]:
    """Write `dossier.html` into a folder, and `dossier.pdf` where Chromium is present; yield what was written.

    `runs`: folders of scored studies and evaluations.
    """
    parts = [(_study_part if StudyFolder(path).manifest.exists() else _run_part)(path) for path in runs]
    for part in parts:
        part |= {"title": printable(part["title"]), "facts": [(name, printable(text)) for name, text in part["facts"]]}
    shown = {table.name: table.title for part in parts if part["study"] == "sap" for table in part["tables"]}
    articles = tomllib.loads((_FOLDER / "articles.toml").read_text(encoding="utf-8"))["article"]
    for one in articles:
        titles = [shown[name] for name in one["tables"] if name in shown]
        one["tables"] = "; ".join(titles) or "none in this dossier"
    view = {
        "title": "What was tested, and what was found",
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "tiles": [],
        "parts": parts,
        "articles": articles,
    }
    link_copies(runs, out)
    page, pdf = out / "dossier.html", out / "dossier.pdf"
    write_text(page, render_page(_FOLDER / "page", view))
    yield f"{page}"
    remove_file(pdf)  # an older one shows something else
    why = print_pdf(page, pdf)
    yield f"no PDF: {why}; print the page from a browser" if why else f"{pdf}"


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
    shown = {"tables": result.tables(), "examples": replies_to_read(result, EXAMPLES), "study": study.spec.study}
    return {"title": f"{TITLES[study.spec.study]}: {result.model}", "facts": facts, **shown}


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
    notes = ("Intervals 95 %. A baseline ends with ! where the model is not above it.",)
    table = replace(subtask_table(summary), title="Scores by subtask (Table 2)", notes=notes)
    title = f"Evaluation: {summary.model}"
    return {"title": title, "facts": facts, "tables": [table], "examples": (), "study": ""}


def _signed(signature: Signature) -> Iterator[tuple[str, str]]:
    return ((key, value) for key, value in {**signature.protocol, **signature.subject}.items() if value)
