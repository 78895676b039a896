"""`h2htalk evaluate` and `analyze`, as a user types them: what they print and write, and with which exit code."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from support.command_line import h2htalk, h2htalk_here, scripted
from support.doubles.loopback import LoopbackServer
from support.splits import scenario_records, write_split
from support.tables import table


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_evaluate_prints_the_table_and_writes_a_run_that_stands_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = h2htalk(
        "evaluate", scripted(tmp_path), "--split", "mini@1", "--embedder", "none", "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert all(
        word in done.stdout for word in ("DialogueEmotion", "Overall", "constant", "report.html")
    )
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["incomplete"], summary["measure"]) == (False, "lexical")
    assert summary["counts"]["scored"] == len(load_split("mini@1").scenarios)
    lines = (out / "calls.jsonl").read_text().splitlines()
    assert set(json.loads(lines[0])) == {
        "id",
        "sample",
        "text",
        "finish_reason",
        "usage",
        "at",
        "stage",
        "asked",
    }
    names = "items.csv metrics.csv run.csv slices.csv table2.csv table2.json table2.tex"
    assert " ".join(sorted(p.name for p in (out / "tables").iterdir())) == names


@pytest.mark.parametrize(("words", "expected"), table("cli", "wrong_input"))
def test_wrong_input_is_one_line_and_nothing_written(
    in_folder: Path, words: list[str], expected: str
) -> None:
    model, *options = words
    done = h2htalk_here(
        "evaluate", model, "--split", "mini@1", "--embedder", "none", "--out", "run", *options
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert expected in done.stderr
    assert done.stderr.startswith("error: ")
    assert list(in_folder.iterdir()) == []


def test_a_specification_file_gives_the_options_and_the_command_line_wins(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f'model = "{scripted(tmp_path)}"\nsplit = "mini@1"\nout = "{tmp_path}/run"\nembedder = "none"\n'
        'language = "en"\nsubtasks = ["dialogue_base"]\n'
    )
    assert h2htalk_here("evaluate", "--spec", spec, "--language", "zh").returncode == 0
    assert json.loads((tmp_path / "run/run.json").read_text())["spec"]["language"] == "zh"
    spec.write_text('modle = "embedded"\n')
    done = h2htalk_here("evaluate", "--spec", spec)
    assert (done.returncode, f"{spec}: unknown key modle" in done.stderr) == (2, True)


def test_dry_run_says_what_would_be_asked_and_refuses_what_the_evaluation_would(
    tmp_path: Path,
) -> None:
    common = ("--split", "mini@1", "--embedder", "none", "--dry-run", "--out")
    assert "154 calls" in h2htalk("evaluate", "embedded", *common, "run", cwd=tmp_path).stdout
    assert (
        "no calls"
        in h2htalk_here("evaluate", "baseline:constant", *common, tmp_path / "run").stdout
    )
    assert list(tmp_path.iterdir()) == []
    model = scripted(tmp_path)
    out = tmp_path / "run"
    assert (
        h2htalk_here(
            "evaluate", model, "--split", "mini@1", "--embedder", "none", "--out", out
        ).returncode
        == 0
    )
    assert "0 calls (154 answered already)" in h2htalk_here("evaluate", model, *common, out).stdout
    for words, named in (
        (("embedded", *common, out), "engine (scripted, embedded)"),
        ((model, *common, out, "--sap", "none"), "sap (full, none)"),
        (("embedded", *common, tmp_path), "other files"),
        (("embedded", *common, tmp_path / "new", "--embedder", "word2vec"), "word2vec"),
    ):
        done = h2htalk_here("evaluate", *words)
        assert (done.returncode, named in done.stderr) == (2, True), done.stderr


def test_paths_that_are_not_utf_8_work_from_evaluate_to_report(tmp_path: Path) -> None:
    """pyarrow raised on the folder; the split's name broke the run's own split.toml."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/n\xff"))
    split = folder / os.fsdecode(b"s\xff.jsonl")
    out = folder / "run"
    write_jsonl(split, scenario_records(3))
    done = h2htalk(
        "evaluate", scripted(tmp_path), "--split", split, "--embedder", "none", "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert [h2htalk_here(command, out).returncode for command in ("score", "report")] == [0, 0]
    done = h2htalk_here(
        "split", "export", split, "--out", folder / "exported", "--format", "parquet"
    )
    assert done.returncode == 0, done.stderr
    assert "n\\udcff/exported/scenarios.parquet" in done.stdout


@pytest.mark.parametrize(("module", "model", "embedder", "advice"), table("cli", "extras"))
def test_missing_extras(
    tmp_path: Path, module: str, model: str, embedder: str, advice: str, monkeypatch: Any
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    words = (
        "evaluate",
        model,
        "--embedder",
        embedder,
        "--split",
        "mini@1",
        "--out",
        tmp_path / "run",
    )
    done = h2htalk_here(*words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert advice in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_key_is_one_line_that_says_what_to_set_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    words = ("--split", "mini@1", "--embedder", "none", "--out", tmp_path / "run")
    with LoopbackServer(faults={"unauthorized": 1.0}) as server:
        done = h2htalk_here("evaluate", server.spec, *words)
    assert (done.returncode, "set H2HTALK_SERVER_KEY" in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_servers_key_stands_in_no_file_and_no_message(tmp_path: Path) -> None:
    key = "sk-secret-0123456789"
    env = {**os.environ, "H2HTALK_SERVER_KEY": key}
    with LoopbackServer(faults={"http_500": 0.3}) as server:
        split = write_split(tmp_path / "split", 20)
        words = (
            "evaluate",
            server.spec,
            "--split",
            split,
            "--embedder",
            "none",
            "--out",
            tmp_path / "run",
        )
        done = h2htalk(*words, "--timeout", 1, env=env)
        assert server.authorizations == {f"Bearer {key}"}
    assert done.returncode == 3
    assert key not in done.stdout + done.stderr
    assert not [
        p for p in (tmp_path / "run").rglob("*") if p.is_file() and key.encode() in p.read_bytes()
    ]


def test_a_split_becomes_a_page_and_a_screenful(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    done = h2htalk(
        "analyze", "mini@1", "--language", "en", "--limit", "2", "--processes", "1", "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert "English, 2 scenarios" in done.stdout
    assert done.stdout.splitlines()[-1] == f"page: {out / 'index.html'}"
    assert "drawing" in done.stderr
    assert list(json.loads((out / "summary.json").read_text())["languages"]) == ["en"]


@pytest.mark.parametrize(("words", "message"), table("cli", "analyze"))
def test_analyze_refuses_before_the_work_and_writes_nothing(
    in_folder: Path, words: list[str], message: str
) -> None:
    (in_folder / "file").touch()
    write_jsonl(in_folder / "thesis" / "chapter.tex", [])
    done = h2htalk_here("analyze", "--out", "out", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert not (in_folder / "out").exists()
