"""No page, table or export holds a folder of the machine: every writer is tried on runs in a folder of a telling name.

Model, judge and what servers return are named by their paths, and all that a command is given is an absolute path.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.judged_runs import command, verdict
from support.splits import write_split

PRIVATE = "zorbinas-laptop"  # a folder of everything that a command reads or writes
GOOD = "I hear you. What would help most tonight?"


def judge_reply(body: dict[str, Any]) -> str | None:
    """What a judge answers, of a run or of a study; None where no judge is asked."""
    form = body.get("response_format")
    if form is None:
        return None
    names = form["json_schema"]["schema"]["properties"]
    if not all(re.fullmatch(r"p\d+|perception", name) for name in names):
        return verdict(3)
    points = {name: {"evidence": "seen", "answer": True} for name in names}
    return json.dumps(
        {
            name: {"evidence": "", "score": 5} if name == "perception" else points[name]
            for name in names
        }
    )


def server_of(path: str, period: int) -> Callable[[dict[str, Any], int], Answer]:
    """A server that names its file in replies, in every n-th error and in every n-th filter's words."""
    seen: dict[str, int] = {}

    def reply(body: dict[str, Any], _: int) -> Answer:
        number = seen.setdefault(json.dumps(body["messages"]), len(seen))
        text = judge_reply(body)
        if text is None and period and number % period == 1:
            return Answer(
                {"error": {"message": f"failed to load {path}: no such file", "code": 400}}, 400
            )
        if text is None and period and number % period == 2:
            return Answer(
                {"error": {"message": f"Content Exists Risk in {path}", "code": 400}}, 400
            )
        named = {"model": path, "system_fingerprint": f"b4711 {path}"}
        return Answer(completion(text or f"{GOOD} {number}") | named)

    return reply


class Machine:
    """Two judged runs and two studies of models that lie in the private folder."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / PRIVATE
        self.home.mkdir()
        write_split(self.home / "split", 12, ("itinerary_basic",))
        self.runs = [self.run("first", period=0), self.run("second", period=6)]
        self.studies = [self.study("third"), self.study("fourth")]

    def run(self, name: str, period: int) -> Path:
        out = self.home / name
        with LoopbackServer(reply=server_of(f"{self.home}/models/{name}.gguf", period)) as server:
            model = f"server:{self.home}/models/{name}.gguf@{server.url}"
            settings = (
                "--split",
                self.home / "split",
                "--embedder",
                "none",
                "--no-baselines",
                "--out",
                out,
            )
            h2htalk_here("evaluate", model, *settings, "--concurrency", 1)
            h2htalk_here("judge", "run", out, "--judge", model)
        assert (out / "report.html").exists()
        return out

    def study(self, name: str) -> Path:
        out = self.home / name
        with LoopbackServer(reply=server_of(f"{self.home}/models/{name}.gguf", 0)) as server:
            model, judge = (
                f"server:{self.home}/models/{file}.gguf@{server.url}" for file in (name, "judge")
            )
            words = (
                "study",
                "instructions",
                model,
                "--judge",
                judge,
                "--language",
                "en",
                "--limit",
                2,
            )
            done = h2htalk_here(*words, "--out", out)
        assert (out / "report.html").exists(), done.stderr
        return out


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


def printed(out: Path, *words: object) -> None:
    """Keep what a command prints as a file, as who redirects it does."""
    out.write_text(h2htalk_here(*words).stdout, encoding="utf-8")


def write_pages(machine: Machine, out: Path) -> None:
    for folder in (*machine.runs, *machine.studies):
        (out / folder.name).mkdir()
        shutil.copy(folder / "report.html", out / folder.name)
        shutil.copytree(folder / "tables", out / folder.name / "tables")


def write_comparison(machine: Machine, out: Path) -> None:
    command("compare", *machine.runs, "--metric", "lexical", "--out", out / "runs")
    command("compare", *machine.studies, "--metric", "full/need_met", "--out", out / "studies")


def write_gate(machine: Machine, out: Path) -> None:
    forms = (
        ("junit", "gate.xml"),
        ("markdown", "gate.md"),
        ("html", "gate.html"),
        ("json", "gate.json"),
    )
    for kind, (reference, run) in (("runs", machine.runs), ("studies", machine.studies)):
        options = [word for name, file in forms for word in (f"--{name}", out / f"{kind}-{file}")]
        printed(out / f"{kind}.txt", "gate", run, "--reference-run", reference, *options)
        assert (out / f"{kind}-gate.md").exists()


def write_leaderboard(machine: Machine, out: Path) -> None:
    for form in ("csv", "json", "latex"):
        printed(out / f"board.{form}", "leaderboard", *machine.runs, "--format", form)
        printed(out / f"run.{form}", "report", machine.runs[1], "--format", form)


def write_exports(machine: Machine, out: Path) -> None:
    for run in machine.runs:
        command("results", "export", run, "--to", "bundle", "--out", out / f"{run.name}-bundle")
    about = ("--model", "lab/model", "--organization", "a lab")
    command(
        "results",
        "export",
        machine.runs[0],
        "--to",
        "every-eval-ever",
        "--out",
        out / "eee",
        *about,
    )


def write_site(machine: Machine, out: Path) -> None:
    command("site", *machine.runs, *machine.studies, "--out", out / "site")
    (
        out / "site.sources.json"
    ).unlink()  # it stays with its maker, who makes the site again from it


def write_dossier(machine: Machine, out: Path) -> None:
    command("study", "dossier", *machine.studies, *machine.runs, "--out", out / "dossier")
    command("study", "radar", *machine.studies, "--out", out / "radar.svg")


def write_training_data(machine: Machine, out: Path) -> None:
    command("study", "export", machine.studies[0], "--out", out / "accepted.jsonl")


WRITERS = (
    write_pages,
    write_comparison,
    write_gate,
    write_leaderboard,
    write_exports,
    write_site,
    write_dossier,
    write_training_data,
)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_what_leaves_names_no_folder_of_the_machine(
    writer: Callable[[Machine, Path], None], machine: Machine, tmp_path: Path
) -> None:
    """Pages and bundles published `/home/NAME/...` wherever a server or a user named a model by its path."""
    writer(machine, tmp_path)
    assert any(file.is_file() for file in tmp_path.rglob("*"))
    assert files_with(tmp_path, PRIVATE) == []
