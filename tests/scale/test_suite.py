"""Suites: what a file may say, which runs it means, what each may cost, and that one failing run ends no other."""

from __future__ import annotations

import csv
import os
import re
import resource
from pathlib import Path

import pytest

from h2htalk.errors import ConfigError
from h2htalk.scale.attempts import Shard
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.suite import (
    MissingShards,
    merge_suite,
    read_suite,
    run_suite,
    runs_of,
    shard_spec,
)
from support.command_line import h2htalk, h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.shards import own_words, same_bytes
from support.splits import write_split

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> Path:
    path = folder / "suite.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "models: missing|models"),
        ("models = []", "models"),
        ('modles = 1\n[[models]]\nmodel = "embedded"', "modles.*docs/how-to/scale.md lists them"),
        ('[[models]]\nmodel = "embedded"\nunknown = "x"', "says why it is `unknown`, not both"),
        ('[[models]]\nname = "x"', "says why it is `unknown`, not both"),
        ('[[models]]\nmodel = "gpt:x"', "unknown engine|no engine"),
        (
            '[[models]]\nmodel = "vllm:Qwen2-7B"',
            r"neither a folder \(./NAME\) nor a name on the Hub \(OWNER/NAME\)",
        ),
        ('[[models]]\nmodel = "vllm:Qwen/Qwen2/7B"', "neither a folder"),
        ('[[models]]\nmodel = "embedded"\ngpus = -1', "gpus"),
        (
            '[[models]]\nmodel = "embedded"\n[evaluate]\nsplit = "mini"',
            "evaluate.split: belongs to the suite",
        ),
        (
            '[[models]]\nmodel = "embedded"\nevaluate = { seed = 9 }',
            "evaluate.seed: belongs to the suite",
        ),
        ('[[models]]\nmodel = "embedded"\nshards = true', "shards"),
        ('[[models]]\nmodel = "embedded"\n[slurm]\npartitoin = "gpu"', "partitoin"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_name(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        read_suite(written(tmp_path, text))
    assert "suite.toml" in str(raised.value)


def test_every_combination_is_a_run_with_its_share_of_the_money(tmp_path: Path) -> None:
    text = """out = "runs"
splits = ["mini", "mini@1"]
sap = ["full", "no-empathy"]
seeds = [0, 3]
max_cost = 16.0
shards = 2
[evaluate]
embedder = "none"
temperature = 0.5
[[models]]
model = "server:some/model name@http://127.0.0.1:9/v1"
evaluate = { temperature = 0.7 }
shards = 5
[[models]]
model = "openai:gpt-4o"
"""
    runs = runs_of(read_suite(written(tmp_path, text.replace("no-empathy", "none"))))
    assert len(runs) == len({run.name for run in runs}) == 2 * 2 * 2 * 2
    assert all(re.fullmatch(r"[\w.-]+", run.name) for run in runs)
    assert {run.spec.max_cost for run in runs if run.paid} == {2.0}
    assert {run.spec.max_cost for run in runs if not run.paid} == {None}
    assert {(run.spec.temperature, run.shards) for run in runs} == {(0.7, 5), (0.5, 2)}
    chosen_run = runs_of(read_suite(tmp_path / "suite.toml"), [runs[3].name])[0]
    assert (chosen_run.spec.out, shard_spec(chosen_run).out) == (
        f"runs/{chosen_run.name}",
        f"runs/{chosen_run.name}.shards",
    )
    with pytest.raises(ConfigError, match=r"--run 'nothing'"):
        runs_of(read_suite(tmp_path / "suite.toml"), ["nothing"])
    two = '[[models]]\nmodel = "openai:a b"\n[[models]]\nmodel = "anthropic:a-b"\n'
    with pytest.raises(ConfigError, match="two runs of the suite are called a-b"):
        runs_of(read_suite(written(tmp_path, two)))


def test_a_suite_runs_here_and_in_shards_to_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_split(tmp_path / "split", 12)
    messages: list[str] = []
    with LoopbackServer(reply=own_words) as server:
        text = f"""splits = ["split"]
sap = ["full", "none"]
shards = 3
[evaluate]
embedder = "none"
[[models]]
name = "loop"
model = "{server.spec}"
[[models]]
name = "away"
model = "server:away@http://127.0.0.1:1/v1"
evaluate = {{ attempts = 1 }}
"""
        path = written(tmp_path, text)
        assert run_suite(path, (), None, False, messages.append) == 2
        names = ["loop-sap-full", "loop-sap-none", "away-sap-full", "away-sap-none"]
        assert [line.partition(":")[0] for line in messages] == names
        assert messages[0] == "loop-sap-full: done, runs/loop-sap-full"
        os.rename("runs", "here")
        for run in runs_of(read_suite(path), ["loop-sap-full", "loop-sap-none"]):
            assert run.missing() == MissingShards(unfinished=[1, 2, 3], failed=[])
            for number in range(1, run.shards + 1):
                evaluate_shard(shard_spec(run), Shard(number, 3))
            assert run.missing() == MissingShards(unfinished=[], failed=[])
    assert merge_suite(path, messages.append) == 3  # of the model that is away no attempt is there
    for name in ("loop-sap-full", "loop-sap-none"):
        assert same_bytes(Path("here", name), Path("runs", name)) == {}


def test_the_command_line_takes_a_suite_and_a_shard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, '[[models]]\nmodel = "embedded"\n')
    for words, message in (
        (["evaluate", "embedded", "--suite", path], "--suite: the file holds all settings"),
        (
            ["evaluate", "embedded", "--split", "mini", "--out", "x", "--run", "y"],
            "--run: names a run of a --suite",
        ),
        (
            ["evaluate", "embedded", "--split", "mini", "--out", "x", "--shard", "4/3"],
            "write NUMBER/SHARDS",
        ),
        (["merge", "x"], "name the shards and --out, or a --suite"),
        (["merge", "x", "--suite", path], "--suite: the file names shards, runs and prompts"),
        (["merge", "x", "--out", "y"], "no attempt at a shard is there"),
    ):
        done = h2htalk_here(*words)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_the_models_of_the_paper_are_told_in_under_five_seconds() -> None:
    """All 50 of Table 2 by its names; what cannot be told is named; ids have the form of ids."""
    data = os.environ.get("H2HTALK_DATA")
    suite = read_suite(ROOT / "examples/models-50.toml")
    assert len(suite.models) == 50
    if data:
        with (Path(data) / "h2htalk_table2.csv").open(encoding="utf-8", newline="") as file:
            assert [model.name for model in suite.models] == [
                row["model"] for row in csv.DictReader(file)
            ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = h2htalk("evaluate", "--suite", ROOT / "examples/models-50.toml", "--dry-run")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5
    )  # CPU: the machine may be busy
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("not run: ") == sum(bool(model.unknown) for model in suite.models)
    hours = sum(model.hours * model.gpus for model in suite.models if model.model and model.hours)
    assert f"{hours:,.1f} GPU hours" in done.stdout
