"""Parts of a reference folder: studies, people's answers to them, documents about them."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

from reference.doubles import careless, dismissive, served, warm
from reference.run_parts import ONE_BY_ONE
from reference.workplace import Part, Workplace
from support.rounds import NAMES, answer
from support.studies import KEY, Companion, block

CHATS = Path(__file__).parents[2] / "tests" / "benchmark" / "studies" / "chats.jsonl"


def make_studies(work: Workplace) -> None:
    """Studies of safety, instructions, memory, an application and logs, with judges."""
    with served(warm, work.port(0)) as judge, served(dismissive, work.port(1)) as harmful:
        judging = ("--judge", judge, *ONE_BY_ONE)
        english = ("--language", "en", *judging)
        sap = ("study", "sap", judge, "--limit", 6, "--embedder", "none")
        work.h2htalk(*sap, *english, "--dry-run", "--out", "studies/dry")
        work.h2htalk(*sap, *english, "--out", "studies/sap")
        words = ("--limit", 6, "--embedder", "none", "--arms", "sap,none", *english)
        work.h2htalk("study", "sap", harmful, *words, "--out", "studies/sap-other")
        words = ("--limit", 4, "--embedder", "none", "--arms", "sap,none", "--language", "zh")
        with served(careless, work.port(2)) as model:
            judging_badly = ("--judge", model, *ONE_BY_ONE)
            out = ("--out", "studies/sap-zh")
            work.h2htalk("study", "sap", judge, *words, *judging_badly, *out, code=3)
        words = ("--limit", 12, *english, "--out", "studies/instructions")
        work.h2htalk("study", "instructions", judge, *words)
        words = ("--limit", 8, "--language", "zh", *ONE_BY_ONE, "--out", "studies/unjudged")
        work.h2htalk("study", "instructions", harmful, *words)
        words = ("--limit", 3, "--embedder", "minilm", *english, "--out", "studies/memory")
        work.h2htalk("study", "memory", judge, *words)
        make_logs(work, judge)
        make_application(work, judge)
    work.h2htalk("study", "score", "studies/sap")
    work.h2htalk("study", "score", "studies/memory", "--embedder", "none")


def make_logs(work: Workplace, judge: str) -> None:
    """Chats that an application had, read by a judge."""
    shutil.copy(CHATS, "chats.jsonl")
    spec = work.write("logs.toml", "concurrency = 1\n")
    words = ("--spec", spec, "--judge", judge, "--out", "studies/logs")
    work.h2htalk("study", "logs", "chats.jsonl", *words)


def make_application(work: Workplace, judge: str) -> None:
    """An application with its own prompt and memory."""
    adapter = work.write("app.toml", block("test-an-app.md", "toml"))
    server = Companion()
    server.port = work.port(8)
    with server, patch.dict(os.environ, {"COMPANION_KEY": KEY}):
        words = ("--adapter", adapter, "--study", "memory", "--limit", 3, "--language", "en")
        judging = ("--judge", judge, "--concurrency", 1)
        work.h2htalk("study", "app", server.url, *words, *judging, "--out", "studies/app")


def make_answers_of_people(work: Workplace) -> None:
    """Rounds in which people read replies; their answers are put into the studies."""
    lines = ["name,languages,crisis", *(f"{name},en zh,yes" for name in NAMES[:2])]
    people = work.write("people/studies.csv", "\n".join(lines) + "\n")
    for study, question in (("sap-other", "safety"), ("instructions", "points")):
        out = f"rounds/{study}"
        words = ("--ask", question, "--annotators", people, "--overlap", 2, "--budget", 24)
        folder = f"studies/{study}"
        work.h2htalk("study", "open-round", folder, "--out", out, *words)
        answer(Path(out), typed_safety if question == "safety" else typed_point)
        work.h2htalk("study", "close-round", folder, out)


def typed_safety(item: str, annotator: str) -> Mapping[str, str]:
    """What an annotator types about the safety of a reply."""
    number = zlib.crc32(item.encode()) % 5
    disagrees = number == 1 and annotator == NAMES[0]
    if number == 0 or disagrees:
        return {"perception": "2", "violation": "yes", "violations": "crisis_dismissed"}
    return {"perception": "4", "violation": "no"}


def typed_point(item: str, annotator: str) -> Mapping[str, str]:
    """What an annotator types about a statement."""
    number = zlib.crc32(item.encode()) % 7
    agrees = number != 0 and not (number == 1 and annotator == NAMES[0])
    return {"label": "yes" if agrees else "no"}


def make_documents(work: Workplace) -> None:
    """Gates and comparisons of studies, training data, a radar, and a dossier."""
    runs = ("studies/sap-other", "--reference-run", "studies/sap")
    files = ("--markdown", "gate.md", "--html", "gate.html", "--json", "gate.json")
    work.h2htalk("gate", *runs, *files, "--junit", "gate.xml", code=3)
    work.h2htalk("gate", "studies/sap", "--reference-run", "studies/sap", code=3)
    words = ("--metric", "sap/violation", "--out", "comparisons/studies")
    work.h2htalk("compare", "studies/sap", "studies/sap-other", *words)
    work.h2htalk("study", "export", "studies/sap", "--out", "training.jsonl")
    words = ("--arm", "none", "--no-violations", "--out", "training-none.jsonl")
    work.h2htalk("study", "export", "studies/sap-other", *words)
    work.h2htalk("study", "radar", "studies/instructions", "--out", "radar.svg")
    work.h2htalk("cases", "new", "cases/new.jsonl", "--language", "en")
    with served(warm, work.port(0)) as model:
        words = ("--split", "arcs", "--out", "contamination")
        work.h2htalk("study", "contamination", model, *words)
    studies = ("studies/sap", "studies/sap-other", "studies/instructions", "studies/logs")
    words = ("runs/ada", "--owner", "Office", "--out", "dossier")
    work.h2htalk("study", "dossier", *studies, "studies/memory", *words)


PARTS = (
    Part("studies", make_studies),
    Part("people", make_answers_of_people, needs=("studies",)),
    Part("documents", make_documents, needs=("people", "judgements")),
)
