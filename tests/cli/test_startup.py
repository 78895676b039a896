"""What commands import, and what they say while they take long."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

import h2htalk.progress
import h2htalk.site.build
import h2htalk.site.pages
from h2htalk.cli import GROUPS, SECTIONS, SINGLE, all_commands
from h2htalk.curation.release import gates
from h2htalk.curation.release.build import check_release
from h2htalk.curation.release.content import ReleaseContent, ReleaseItem
from h2htalk.curation.release.gate_context import GateContext
from h2htalk.curation.release.report import OF_A_SPLIT, release_lines
from h2htalk.data.splits import load_split
from support.command_line import h2htalk_here
from support.runs import baseline_run

ROOT = Path(__file__).resolve().parents[2]
# What takes long to import, and asks models, trains, draws or reads languages.
HEAVY = (
    *(
        "scipy",
        "aiohttp",
        "openai",
        "anthropic",
        "httpx",
        "httpx2",
        "huggingface_hub",
        "jieba",
        "sacrebleu",
        "spacy",
    ),
    *(
        "torch",
        "transformers",
        "openvino",
        "matplotlib",
        "presidio_analyzer",
        "datasets",
        "fsspec",
        "openpyxl",
        "ray",
    ),
)
PROGRAM = """
import sys
from h2htalk.cli import main
sys.argv = ["h2htalk", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print("MODULES", *sys.modules)
"""


def modules_after(*words: object) -> set[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=200, check=True
    )
    return set(done.stdout.rpartition("MODULES ")[2].split())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return baseline_run(tmp_path_factory.mktemp("runs") / "constant")


@pytest.mark.parametrize("words", ["--help", "--version", "", "--no-such-option"])
def test_the_command_line_alone_imports_no_command(words: str) -> None:
    """`--version` read the records, prompts and options of every command: four fifths of its second."""
    loaded = modules_after(*words.split())
    assert loaded.isdisjoint({*HEAVY, "numpy", "pyarrow", "jinja2", "rich.console"})
    packages = {name.split(".")[1] for name in loaded if name.startswith("h2htalk.")}
    assert packages == {"addresses", "cli", "errors", "interrupts", "masking", "text", "version"}
    assert {name for name in loaded if name.startswith("h2htalk.cli.")} == {"h2htalk.cli.output"}


def test_the_help_imports_no_records() -> None:
    """Typer reads the values of options by pydantic; a list of commands has none."""
    assert modules_after("--help").isdisjoint({"pydantic", "asyncio"})


def test_every_command_stands_in_one_section_of_the_help() -> None:
    named = " ".join(SECTIONS.values()).split()
    assert sorted(named) == sorted([*SINGLE, *GROUPS])
    text = h2htalk_here("--help").stdout
    titles = [line.removesuffix(":") for line in text.splitlines() if line[:1].isupper()]
    assert [title for title in titles if title in SECTIONS] == list(SECTIONS)


def test_each_line_of_the_help_is_what_the_command_says() -> None:
    """The list of commands is printed without their modules, so it has lines of its own."""
    commands = all_commands()
    for name, entry in SINGLE.items():
        assert commands.commands[name].help.partition(". ")[0].removesuffix(
            "."
        ) == entry.line.removesuffix(".")
    assert {*commands.commands} == {*SINGLE, *GROUPS}


# What each command may load beside Python's own modules: the libraries that it cannot do without.
SLOW = (
    *HEAVY,
    "numpy",
    "pyarrow",
    "pyarrow.compute",
    "jinja2",
    "rich.console",
    "rapidfuzz",
    "multiprocessing",
)
LOADED = {
    "evaluate --help": "",
    "leaderboard --help": "",
    "curate --help": "",
    "round --help": "",
    "results --help": "",
    "show RUN": "numpy jinja2",
    "leaderboard RUN": "numpy pyarrow jinja2 rich.console rapidfuzz",
    "compare RUN RUN": "numpy pyarrow jinja2 rapidfuzz scipy",
    "gate RUN --reference-run RUN": "numpy pyarrow jinja2 rapidfuzz scipy",
    "site RUN --out SITE": (
        "numpy pyarrow pyarrow.compute jinja2 rich.console rapidfuzz multiprocessing huggingface_hub httpx2"
    ),
}


@pytest.mark.parametrize("words", LOADED)
def test_a_command_loads_the_libraries_that_it_needs_and_no_others(
    words: str, run: Path, tmp_path: Path
) -> None:
    """`show` of a run loaded the Hub's client and what finds duplicates, `leaderboard` all functions of Arrow."""
    named = {"RUN": run, "SITE": tmp_path / "site"}
    loaded = modules_after(*(named.get(word, word) for word in words.split()))
    assert loaded & set(SLOW) <= set(LOADED[words].split())


def test_the_gates_of_a_release_say_how_far_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`release check` and `release build` said nothing while the gates read every item."""
    monkeypatch.setattr(h2htalk.progress, "QUICK", 0.0)
    items = tuple(map(ReleaseItem, load_split("mini@1").scenarios[:3]))
    content = ReleaseContent({"test": items}, (), {})
    assert gates.run_gates(content, cast("GateContext", None), []) == []
    assert "running gates  3/3" in capsys.readouterr().err


def test_a_check_of_a_release_reads_its_items_for_gates_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It read them for hints, for gates and for hate in users' words, and said "running gates" three times."""
    passes: list[str] = []

    def passing(label: str, items: Sequence[object]) -> Sequence[object]:
        passes.append(label)
        return items[:1]

    monkeypatch.setattr(gates, "counted_items", passing)
    checked = check_release("mini@1")
    assert checked.content.records()
    assert passes == ["running gates"]
    # A bundled split has no specification, and is never built.
    text_of_check = "\n".join(release_lines(checked))
    assert OF_A_SPLIT in text_of_check
    assert "--allow" not in text_of_check


@pytest.mark.parametrize(
    "words", ["leaderboard RUN", "report --help", "costs RUN", "runs RUN", "round status RUN"]
)
def test_commands_that_read_import_nothing_that_asks_or_draws(words: str, run: Path) -> None:
    """`leaderboard` took a quarter of a second for tables of scipy, and `runs` loaded a client of servers."""
    loaded = modules_after(*(str(run) if word == "RUN" else word for word in words.split()))
    assert sorted(loaded & set(HEAVY)) == []


def test_each_command_is_there_alone_as_among_all() -> None:
    """The command line of one command is built without the others."""
    for name in (*SINGLE, *GROUPS):
        alone = h2htalk_here(name, "--help")
        assert alone.returncode == 0
        assert f"h2htalk {name}" in alone.stdout.splitlines()[0]
    assert "Did you mean 'leaderboard'" in h2htalk_here("leaderbord").stderr


def test_long_commands_say_how_far_they_are(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`leaderboard`, `compare`, `score` and `site` said nothing for up to a minute on a busy machine."""
    for module in (h2htalk.progress, h2htalk.site.build, h2htalk.site.pages):
        monkeypatch.setattr(module, "QUICK", 0.0)
    for module_name in ("metrics.composite", "gate.gate"):
        monkeypatch.setattr(f"h2htalk.benchmark.{module_name}.QUICK", 0.0)
    second_run = baseline_run(tmp_path / "other", "copy-last-turn")
    expected = {
        "leaderboard": ["reading runs  2/2"],
        "compare": ["reading runs  2/2", "comparing runs  1/1"],
    }
    for name, lines in expected.items():
        done = h2htalk_here(name, run, second_run)
        assert done.returncode == 0
        for line in lines:
            assert line in done.stderr
            assert line not in done.stdout
    gated = h2htalk_here("gate", run, "--reference-run", run)
    assert "reading runs  2/2" in gated.stderr
    assert "testing criteria  " in gated.stderr
    assert "reading runs" not in gated.stdout
    scored = h2htalk_here("score", second_run).stderr
    assert "scoring  " in scored
    assert "checking contracts  22/22" in scored
    assert "writing the page  22/22" in h2htalk_here("report", second_run).stderr
    written = h2htalk_here("site", run, second_run, "--out", tmp_path / "site")
    assert "reading folders  2/2" in written.stderr
    assert "drawing models  2/2" in written.stderr
    total = written.stderr.partition("writing pages  ")[2].split()[0]
    assert total.partition("/")[0] == total.partition("/")[2]
