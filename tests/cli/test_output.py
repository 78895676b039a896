"""What is printed: nothing acts on a terminal, tables fit it, an error is one short line, a full disk is said."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.cli.output import LONGEST_ERROR, one_line_errors
from h2htalk.data.files import write_jsonl
from h2htalk.errors import ConfigError, counted, quoted, shorten
from h2htalk.text.tables import Table
from h2htalk.text.terminal_layout import text_width
from support.command_line import h2htalk_here
from support.judged_runs import answered_run, judge_file
from support.runs import baseline_run
from support.splits import scenario_records
from support.studies import cases_of, judge_of, studied
from support.tables import table

H2HTALK = (sys.executable, "-m", "h2htalk")


def on_a_terminal(*words: str) -> str:
    """What a person would see; through a pipe the command line strips colours, and with them what is looked for."""
    ours, theirs = pty.openpty()
    run = subprocess.Popen(
        [*H2HTALK, *words], stdout=theirs, stderr=theirs, env={**os.environ, "COLUMNS": "200"}
    )
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 65536):
            output += piece
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(ours)
    run.wait(timeout=60)
    return output.decode()


def test_a_split_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    """Its name could clear the screen, set the window's title and turn the text around."""
    nasty = r"\u001b[31m\u009b2J\u007f\u202e\u0007"
    records = [
        r | {"persona": "eve\x1b[2J\u202e"} for r in scenario_records(30) if r["language"] == "en"
    ]
    write_jsonl(tmp_path / "split" / "scenarios.jsonl", records)
    (tmp_path / "split" / "personas").mkdir()
    eve = 'id = "eve\\u001b[2J\\u202e"\nrelation = "friend"\n[en]\nname = "Eve"\ndescription = "You bake."\n'
    (tmp_path / "split" / "personas" / "eve.toml").write_text(eve)
    header = (f'{key} = "x{nasty}y\\nz"\n' for key in ("name", "version", "description", "licence"))
    (tmp_path / "split" / "split.toml").write_text("".join(header))
    split = str(tmp_path / "split")
    out = str(tmp_path / "run")
    dry = (
        "evaluate",
        "embedded",
        "--split",
        split,
        "--out",
        out,
        "--embedder",
        "none",
        "--dry-run",
    )
    for words in (("split", "info", split), dry, ("prompts", "show", "all", "--split", split)):
        output = on_a_terminal(*words)
        assert len(output) > 100, output
        assert [c for c in output if not c.isprintable() and c not in "\n\r"] == []
    assert "x\\x1b[31m\\x9b2J\\x7f\\u202e\\x07y" in on_a_terminal("split", "info", split)


def test_an_error_line_is_short_and_keeps_its_two_ends(capsys: pytest.CaptureFixture[str]) -> None:
    """An id of three million characters was printed whole."""
    with pytest.raises(SystemExit, match="2"), one_line_errors():
        raise ConfigError(f"x.jsonl:3: {chr(27) * 100_000}; take it out")
    line = capsys.readouterr().err
    assert len(line) == LONGEST_ERROR + len("error: \n")
    assert line.startswith("error: x.jsonl:3: \\x1b\\x1b")
    assert line.endswith("; take it out\n")


@pytest.mark.parametrize(
    ("value", "output"),
    [*table("cli", "quoted"), ("x" * 10_000, "'" + "x" * 39 + "…" + "x" * 38 + "'")],
)
def test_quoted_chinese_can_be_read_and_what_looks_like_something_else_cannot_hide(
    value: object, output: str
) -> None:
    assert quoted(value) == output


def test_texts_are_shortened_to_their_ends_and_one_of_a_thing_is_not_several() -> None:
    assert [shorten(text, 5) for text in ("abcde", "abcdef", "")] == ["abcde", "ab…ef", ""]
    assert [counted(n, "tie is", "ties are") for n in (0, 1, 1_200)] == [
        "0 ties are",
        "1 tie is",
        "1,200 ties are",
    ]
    assert counted(1, "item") + counted(2, "item") == "1 item2 items"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", ["leaderboard --paper", "prompts show all", "--help", "split list"]
)
def test_an_output_that_cannot_be_written_is_one_line_and_a_closed_pipe_none(
    words: str, unbuffered: str
) -> None:
    """It was a traceback, and a second complaint when the interpreter ended with something in its buffer."""
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    reader, closed = os.pipe()
    os.close(reader)
    full = "error: the output cannot be written: No space left on device; free space, or print elsewhere\n"
    for stdout, ending in ((os.open("/dev/full", os.O_WRONLY), (2, full)), (closed, (1, ""))):
        command = [*H2HTALK, *words.split()]
        done = subprocess.run(
            command,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
            env=environment,
        )
        os.close(stdout)
        assert (done.returncode, done.stderr) == ending


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(FileNotFoundError), one_line_errors():
        Path("/no/such/file").read_text()


@pytest.fixture(scope="module")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a-folder-with-a-rather-long-name")
    for name, baseline in (("a", "constant"), ("b", "copy-last-turn"), ("c", "random-reference")):
        baseline_run(folder / name / "run", baseline)
    for study, split in (
        ("sap", "high_risk"),
        ("instructions", "instructions"),
        ("memory", "arcs"),
    ):
        studied(folder / study, study, judge=judge_of(cases_of(split, "en")[:4]), limit=2)
    (folder / "judged").mkdir()
    answered_run(
        folder / "judged", [f"Answer number {n}, which is of some length." for n in range(12)]
    )
    return folder


@pytest.mark.parametrize("command", table("cli", "commands"))
def test_tables_have_at_most_80_columns(
    command: str, site_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables of a study had 260."""
    output = list[str]()
    form = Table.to_terminal

    def recorded(table: Table, gap: int = 2, width: int = 0) -> str:
        output.append(form(table, gap, width))
        return output[-1]

    monkeypatch.chdir(site_folder)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Table, "to_terminal", recorded)
    judge = judge_file(site_folder / "judged" / "run", lambda item: 3)
    done = h2htalk_here(*command.replace("JUDGE", judge).split())
    assert done.returncode in (0, 3, 4), done.stderr
    assert output
    lines = "\n".join(output).splitlines()
    assert [line for line in lines if text_width(line) > 80] == []
    assert set(lines) - {""} <= {
        line.rstrip() for line in done.stdout.splitlines()
    }  # each line as it was made
