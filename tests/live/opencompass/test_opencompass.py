"""mini through OpenCompass, in an environment of its own: what it sends, and that its scores are ours."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import h2htalk as package
from h2htalk.benchmark.run import load_run
from h2htalk.cli import app
from h2htalk.data.responses import Response
from h2htalk.integrations.harness_split import HarnessSplit
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.live.one_model import (
    LANGUAGES,
    PARTS,
    Ours,
    Seen,
    key_of,
    reply,
    require_ours,
    write_private,
)
from support.studies import block

pytestmark = [pytest.mark.live, pytest.mark.timeout(1200)]
ROOT = Path(package.__file__).parents[1]
OPENCOMPASS = ROOT / ".venv-opencompass" / "bin" / "opencompass"
if not OPENCOMPASS.parents[1].is_dir():
    pytest.skip("needs the environment of `make live-opencompass`", allow_module_level=True)

MODELS = """from mmengine.config import read_base

with read_base():
    from .h2htalk_mini import datasets, eval, infer, summarizer
models = [
    dict(
        type="h2htalk_opencompass.Chat", abbr="demo", path="loopback", openai_api_base="{url}", key="none",
        temperature=0.0, batch_size=16, query_per_second=1000, retry=2,
    )
]
"""


def h2htalk(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def opencompass(
    folder: Path, *words: str, python: str | None = sys.executable
) -> subprocess.CompletedProcess[str]:
    """The command of the documentation; with `python` None H2HTALK_PYTHON is not set."""
    environment = {name: value for name, value in os.environ.items() if name != "H2HTALK_PYTHON"}
    search = os.pathsep.join(
        filter(None, (str(folder / "h2htalk"), os.environ.get("PYTHONPATH", "")))
    )
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": search} | (
        {"H2HTALK_PYTHON": python} if python else {}
    )
    command = [OPENCOMPASS, folder / "h2htalk" / "models.py", "-w", folder / "out", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=environment, timeout=900
    )


def write_config(folder: Path, server: LoopbackServer, *words: str) -> None:
    h2htalk("integrations", "opencompass", "--out", str(folder / "h2htalk"), *words)
    (folder / "h2htalk" / "models.py").write_text(MODELS.format(url=server.url), encoding="utf-8")


@dataclass(frozen=True)
class Log:
    """What a run wrote: its folder, the details of each item, and the results of each data set."""

    path: Path
    rows: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, done: subprocess.CompletedProcess[str]) -> Log:
        (path,) = (folder / "out").iterdir()
        written = {
            one.stem: json.loads(one.read_text(encoding="utf-8"))
            for one in path.glob("results/demo/*.json")
        }
        logs = "".join(
            log.read_text(encoding="utf-8") for log in sorted((path / "logs").rglob("*.out"))
        )
        assert written, done.stdout[-2000:] + done.stderr[-2000:] + logs
        rows = {}
        for result in written.values():
            for row in result["details"]:
                assert all(
                    len(values) == 1 for name, values in row.items() if name != "example_abbr"
                )
                rows[row["id"][0]] = {name: values[0] for name, values in row.items()}
        return cls(path, rows, written)

    def group(self, name: str) -> dict[str, float]:
        (text,) = self.path.glob("summary/*.txt")
        (line,) = re.findall(rf"^{name}: (.*)$", text.read_text(encoding="utf-8"), re.MULTILINE)
        found: dict[str, float] = ast.literal_eval(line)
        return found


@pytest.fixture(scope="module", params=LANGUAGES)
def whole(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Log, Seen]:
    folder = tmp_path_factory.mktemp("opencompass")
    with LoopbackServer(reply=reply) as server:
        write_config(folder, server, "--language", request.param, "--embedder", "minilm")
        done = opencompass(folder)
        assert done.returncode == 0, done.stderr
        return request.param, Log.read(folder, done), Seen.by(server)


def test_every_value_of_every_item_is_ours(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    language, log, _ = whole
    require_ours(ours[language], log.rows, language)
    assert {name for name, row in log.rows.items() if row["compliance"] == 0} == ours[
        language
    ].broken
    assert {name for name, row in log.rows.items() if row["unscored"]} == set()
    assert {name for name, row in ours[language].scores.items() if row["unscored"]} == set()


def test_the_server_sees_messages_and_budgets_of_our_run(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    assert ours[whole[0]].seen == whole[2]
    assert len(set(whole[2].budgets.values())) == 4


def test_the_summary_groups_have_table_1s_weights(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    language, log, _ = whole
    rows = ours[language].summary.rows
    found = log.group(f"h2htalk_{language}")
    assert found.keys() == {"overall_lexical", *(["overall_s"] if language == "en" else [])}
    assert found["overall_lexical"] == pytest.approx(rows.lexical["overall"].value, abs=1e-7)
    assert (
        abs(found["overall_lexical"] - (rows.lexical["items_mean"].value or 0)) > 0.1
    )  # so that the test can fail
    if language == "en":
        assert found["overall_s"] == pytest.approx(rows.s["overall"].value, abs=1e-7)
    for name, result in log.results.items():
        cell = rows.lexical[name.removeprefix(f"h2htalk_{language}_")]
        assert result["lexical"] == pytest.approx(cell.value, abs=1e-7)
        assert result["unscored"] == 0


def test_a_log_becomes_a_run_like_our_own(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen], tmp_path: Path
) -> None:
    language, log, _ = whole
    own = ours[language]
    run = tmp_path / "run"
    h2htalk("import", "opencompass", str(log.path), "--out", str(run))
    imported = load_run(run)
    rows = {row["id"]: row for row in imported.scores().to_pylist()}
    require_ours(own, rows, language)
    for column in ("violations", "unscored"):
        assert {name: row[column] for name, row in rows.items()} == {
            n: row[column] for n, row in own.scores.items()
        }
    said = {
        key: answer.text
        for key, answer in load_run(own.out).answers.items()
        if isinstance(answer, Response)
    }
    assert {
        key: one.text for key, one in imported.answers.items() if isinstance(one, Response)
    } == said
    assert imported.summary.signature.fingerprint == own.summary.signature.fingerprint
    assert imported.summary.signature.subject["harness"] == "OpenCompass 0.5.4"
    for other in (run, log.path):  # the run that was made of the log, and the log itself
        for metric in ("lexical", *(["s"] if language == "en" else [])):
            shown = h2htalk(
                "compare", str(own.out), str(other), "--metric", metric, "--format", "json"
            )
            figures = {one["figure"]: one for one in json.loads(shown)["figures"]}
            assert figures["overall"]["items"] == LANGUAGES[language]
            assert max(abs(one["difference"]) for one in figures.values()) < 1e-7
    assert "unpaired 0" in h2htalk("compare", str(own.out), str(log.path), "--metric", "lexical")


@pytest.mark.parametrize("python", [None, shutil.which("false")])
def test_without_an_h2htalk_that_scores_no_model_is_asked(
    python: str | None, tmp_path: Path
) -> None:
    with LoopbackServer(reply=reply) as server:
        write_config(tmp_path, server, "--limit", "22")
        done = opencompass(tmp_path, python=python)
    assert done.returncode != 0
    assert "export H2HTALK_PYTHON=ENVIRONMENT/bin/python" in done.stderr.splitlines()[-1]
    assert server.requests == 0


def test_a_failed_call_stops_the_task_and_items_without_references_are_counted(
    tmp_path: Path,
) -> None:
    """The same command with `-r` continues; a reply without text scores 0, and an item without a reference nothing."""
    private = write_private(tmp_path / "split", 22, 7)
    items = HarnessSplit(str(tmp_path / "split")).items
    empty = next(one for one in items if one.id not in private)
    last = items[-1].messages[-1]["content"]
    refused = {key_of(empty.messages): Answer(completion(None))}

    def answer(request: dict[str, Any], count: int) -> str | Answer:
        return refused.get(key_of(request["messages"]), "I hear you, and I am here. Tell me more.")

    with LoopbackServer(reply=answer, faults_at={last: "unauthorized"}) as server:
        write_config(tmp_path, server, "--split", str(tmp_path / "split"))
        stopped = opencompass(tmp_path)
        log = Log.read(tmp_path, stopped)
        ended = {name for name in log.rows if name != items[-1].id}
        assert len(log.results) < 11
        assert items[-1].id not in log.rows
        h2htalk("import", "opencompass", str(log.path), "--out", str(tmp_path / "part"), code=3)
        part = load_run(tmp_path / "part").scores().to_pylist()
        assert {row["id"] for row in part if row["unscored"] == "missing"} == {
            one.id for one in items
        } - ended
        server.mend()
        before = server.requests
        done = opencompass(tmp_path, "-r")
        assert done.returncode == 0, done.stderr
        assert 0 < server.requests - before <= 4
    log = Log.read(tmp_path, done)
    unscored = {name: row["unscored"] for name, row in log.rows.items() if row["unscored"]}
    assert unscored == dict.fromkeys(private, "private_reference")
    assert all(row["lexical"] is None for name, row in log.rows.items() if name in private)
    assert log.rows[empty.id]["lexical"] == 0
    assert sum(result["unscored"] for result in log.results.values()) == len(private)
    assert "NaN" not in json.dumps(log.results)
    h2htalk("import", "opencompass", str(log.path), "--out", str(tmp_path / "run"))
    rows = {row["id"]: row for row in load_run(tmp_path / "run").scores().to_pylist()}
    assert {name for name, row in rows.items() if row["unscored"]} == private
    for name in rows.keys() - private:
        own, theirs = (
            [found[column] for column in (*PARTS, "lexical")]
            for found in (rows[name], log.rows[name])
        )
        assert own == pytest.approx(theirs, abs=1e-9)


def test_the_first_block_of_the_page_ends_with_a_score(
    ours: dict[str, Ours], tmp_path: Path
) -> None:
    """Only what the reader fills in is replaced; the environments are there, so that none is made."""
    shown = block("../integrations/opencompass.md", "bash").splitlines()
    lines = [line for line in shown if not line.startswith("python -m venv")]
    assert len(lines) <= 12
    (tmp_path / "h2htalk-env").symlink_to(Path(sys.executable).parents[1])
    (tmp_path / "opencompass-env").symlink_to(OPENCOMPASS.parents[1])
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/other").symlink_to(ours["en"].out)
    with LoopbackServer(reply=reply) as server:
        code = (
            "\n".join(lines)
            .replace("http://127.0.0.1:8000/v1", server.url)
            .replace("MODEL", "loopback")
        )
        command = ["bash", "-euo", "pipefail", "-c", code]
        env = {**os.environ, "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Overall" in done.stdout
    assert server.requests == LANGUAGES["en"]
