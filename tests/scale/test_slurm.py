"""Suites on Slurm: array expressions, groups, scripts and their quoting, with stand-ins for the programs they call."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from h2htalk.data.files import write_json
from h2htalk.scale.slurm import Launch, array_expression
from support.command_line import h2htalk_here
from support.doubles.loopback import LoopbackServer
from support.kills import communicate, stored_replies, wait_until
from support.splits import write_split

PAID = '[[models]]\nmodel = "openai:gpt-test"\nshards = 2\n'


def local(name: str = "a", shards: int = 1, gpus: int = 0) -> str:
    return f'[[models]]\nname = "{name}"\nmodel = "scripted:replies.jsonl"\ngpus = {gpus}\nshards = {shards}\n'


class Site:
    """A folder to submit from, with programs of Slurm that record how they were called."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        patch.chdir(folder)
        patch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        self.program("squeue", "")
        self.program("scontrol", "echo 'MaxArraySize            = 1001'")
        self.program(
            "sbatch", f'echo "$(( 100 + $(tr "\\036" "\\n" < {self.log} | grep -c ^sbatch) ))"'
        )

    @property
    def log(self) -> str:
        return shlex.quote(str(self.folder / "calls.txt"))

    def program(self, name: str, text: str) -> None:
        log = f'printf "%s\\037" {name} "$@" >> {self.log}; printf "\\036" >> {self.log}'
        (self.bin / name).write_text(f"#!/bin/bash\n{log}\n{text}\n")
        (self.bin / name).chmod(0o755)

    def suite(self, *models: str, head: str = "") -> Path:
        path = self.folder / "suite.toml"
        path.write_text(f'out = "runs"\n{head}\n{"".join(models)}')
        return path

    def calls(self, name: str) -> list[list[str]]:
        path = self.folder / "calls.txt"
        calls = path.read_text().split("\036") if path.exists() else []
        return [words[1:-1] for call in calls if (words := call.split("\037"))[0] == name]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path / "site", monkeypatch)


def finish(folder: Path, run: str, shard: int, total: int) -> None:
    """Write the manifest and the mark of an attempt at a shard."""
    attempt = folder / f"{run}.shards" / f"{shard}-of-{total}" / "20260101T000000-00000000"
    attempt.mkdir(parents=True)
    facts = {"shard": shard, "of": total}
    signature = {"protocol": {"items": "x"}, "subject": {"engine": "scripted", "model": "x"}}
    write_json(
        attempt / "attempt.json", {"spec": {"model": "x"}, "shard": facts, "signature": signature}
    )
    write_json(attempt / "shard.json", {**facts, "failed": 0, "files": {}})


@pytest.mark.parametrize("expression", ["0", "0-3,5", "1,3,5", "7-8", "0,2-3,9-11"])
def test_indices_are_written_as_ranges(expression: str) -> None:
    indices = []
    for part in expression.split(","):
        bounds = part.split("-")
        indices += range(int(bounds[0]), int(bounds[-1]) + 1)
    assert array_expression(indices) == expression


def options(command: list[str]) -> dict[str, str]:
    return dict(
        word.removeprefix("--").partition("=")[::2] for word in command if word.startswith("--")
    )


def test_an_array_holds_the_tasks_that_need_the_same(site: Site) -> None:
    models = [local("a", 2, 1), PAID, local("b", 1, 4)]
    launch = Launch(site.suite(*models, local("c", 3, 1), local("d")))
    submitted = [options(command) for command in launch.arrays(launch.missing())]
    assert [
        (
            options_of_job["array"],
            options_of_job.get("gres"),
            "requeue" in options_of_job,
            "no-requeue" in options_of_job,
        )
        for options_of_job in submitted
    ] == [
        ("0-1,5-7", "gpu:1", True, False),
        ("2-3", None, False, True),  # paid: no GPU of ours, and no second try without a look
        ("4", "gpu:4", True, False),
        ("8", None, True, False),
    ]


def test_arrays_are_cut_at_the_limit_of_the_site(site: Site) -> None:
    head = "[slurm]\narray_limit = 3\ntasks_at_once = 2"
    launch = Launch(site.suite(head + "\n", local("a", 8)))
    submitted = [
        (options(array)["array"], options(array).get("export"))
        for array in launch.arrays([0, 1, 2, 4, 7])
    ]
    assert submitted == [
        ("0-2%2", None),
        ("1%2", "ALL,H2HTALK_OFFSET=3"),
        ("1%2", "ALL,H2HTALK_OFFSET=6"),
    ]
    assert site.calls("scontrol") == []
    plain = Launch(site.suite(local("a", 1000), local("b", 2)))
    assert [options(array)["array"] for array in plain.arrays(plain.missing())] == ["0-999", "0-1"]
    site.program("scontrol", "exit 1")
    assert len(plain.arrays(plain.missing())) == 2, (
        "the default of Slurm holds where the site does not answer"
    )


def test_launch_submits_what_is_missing_and_a_merge_after_it(site: Site) -> None:
    suite = site.suite(local("a", 4), PAID)
    finish(site.folder / "runs", "a", 2, 4)
    done = h2htalk_here("launch", "slurm", suite)
    assert done.returncode == 0, done.stderr
    assert site.calls("sbatch") == []
    assert "--dependency=afterany:$job1:$job2,singleton" in done.stdout

    done = h2htalk_here("launch", "slurm", suite, "--submit")
    first, paid, merge = map(options, site.calls("sbatch"))
    assert (first["array"], paid["array"], merge["dependency"]) == (
        "0,2-3",
        "4-5",
        "afterany:101:102,singleton",
    )
    jobs = [
        json.loads(line)
        for line in (site.folder / "runs/launch/jobs.jsonl").read_text().splitlines()
    ]
    assert [(job["job"], job["purpose"]) for job in jobs] == [
        ("101", "task"),
        ("102", "task"),
        ("103", "merge"),
    ]

    name = Launch(suite).name
    site.program(
        "squeue",
        f"echo '101 0 {name}-0'; echo '101 2 {name}-0'; echo '77 5 other'; echo '103 N/A {name}-merge'",
    )
    done = h2htalk_here("launch", "slurm", suite, "--submit")
    array, paid, merge = map(options, site.calls("sbatch")[3:])
    assert "5 shards missing, 2 queued or running already" in done.stdout
    assert (array["array"], merge["dependency"]) == ("3", "afterany:101:104:105,singleton")


def test_only_a_merge_is_submitted_where_no_shard_is_missing(site: Site) -> None:
    suite = site.suite(local())
    finish(site.folder / "runs", "a", 1, 1)
    h2htalk_here("launch", "slurm", suite, "--submit")
    (merge,) = site.calls("sbatch")
    assert options(merge)["dependency"] == "singleton"
    assert merge[-1].endswith("/merge.sh")
    assert h2htalk_here("launch", "status", suite).returncode == 3
    for name in ("run.json", "summary.json"):
        write_json(site.folder / "runs" / "a" / name, {})
    done = h2htalk_here("launch", "slurm", suite, "--submit")
    assert (done.stdout, len(site.calls("sbatch"))) == ("0 shards missing\n", 1)
    assert h2htalk_here("launch", "status", suite).returncode == 0


def test_status_reads_files_and_prints_what_submits_the_rest(site: Site) -> None:
    suite = site.suite("[slurm]\narray_limit = 3\n", local("a", 8))
    for shard in (1, 4, 6, 7, 8):
        finish(site.folder / "runs", "a", shard, 8)
    site.program("squeue", "exit 1")
    done = h2htalk_here("launch", "status", suite)
    assert (done.returncode, "sbatch" in done.stdout) == (3, False), "no script is there yet"
    Launch(suite).write()
    done = h2htalk_here("launch", "status", suite)
    assert done.returncode == 3
    assert done.stdout.splitlines()[1].split() == ["a", "5", "of", "8", "0", "3", "no"]
    for line in done.stdout.splitlines()[3:]:
        subprocess.run(["bash", "-c", line], check=True)
    assert [
        (options(call)["array"], options(call).get("export")) for call in site.calls("sbatch")
    ] == [
        ("1-2", None),
        ("1", "ALL,H2HTALK_OFFSET=3"),
    ]


def test_stop_cancels_merges_before_what_they_wait_for(site: Site) -> None:
    suite = site.suite(local("a", 4))
    site.program("scancel", "")
    name = Launch(suite).name
    site.program(
        "squeue",
        f"echo '5 0 {name}-0'; echo '5 1 {name}-0'; echo '7 N/A {name}-merge'; echo '8 N/A x-merge'",
    )
    done = h2htalk_here("launch", "stop", suite)
    assert site.calls("scancel") == [["--quiet", "7"], ["--quiet", "5"]]
    assert done.stdout == "cancelled 1 merge 7\ncancelled 1 array 5\n"
    site.program("squeue", "")
    assert (
        h2htalk_here("launch", "stop", suite).stdout == "cancelled 0 merges\ncancelled 0 arrays\n"
    )


HOSTILE = "a b'; touch pwned #$(touch pwned)`touch pwned`\"%A\n"


def test_scripts_run_one_task_whatever_folders_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path / HOSTILE, monkeypatch)
    head = (
        f"out = {json.dumps(HOSTILE)}\n[slurm]\nsetup = 'export SEEN=$UNSET-set'\narray_limit = 2\n"
    )
    suite = site.folder / "suite.toml"
    suite.write_text(head + local("; touch pwned") + local("b", 2))
    launch = Launch(suite)
    launch.write()
    site.program("h2htalk", f'echo "$PWD $SEEN" > {shlex.quote(str(site.folder / "where.txt"))}')
    for index, offset, expected in ((0, None, ("touch-pwned", "1/1")), (0, 2, ("b", "2/2"))):
        variables = {"SLURM_ARRAY_TASK_ID": str(index)} | (
            {"H2HTALK_OFFSET": str(offset)} if offset else {}
        )
        subprocess.run(
            ["bash", launch.folder / "task.sh"],
            check=True,
            cwd="/",
            env={**os.environ, **variables},
        )
        arguments = site.calls("h2htalk")[-1]
        words = [
            "evaluate",
            "--suite",
            str(launch.folder / "suite.toml"),
            "--run",
            expected[0],
            "--shard",
            expected[1],
        ]
        assert arguments == words
    assert (site.folder / "where.txt").read_text() == f"{site.folder} -set\n"
    assert (launch.folder / "suite.toml").read_text() == suite.read_text()
    assert not [*tmp_path.rglob("pwned")]
    env = {**os.environ, "SLURM_ARRAY_TASK_ID": "3"}
    done = subprocess.run(
        ["bash", launch.folder / "task.sh"], capture_output=True, text=True, env=env
    )
    assert (done.returncode, done.stderr) == (2, "no task 3\n")


@pytest.mark.parametrize(
    ("codes", "expected"), [((3, 3, 0), 0), ((3, 2), 2), ((3, 3, 3, 3), 3), ((0,), 0)]
)
def test_the_merge_waits_for_marks_that_are_shown_late(
    site: Site, codes: tuple[int, ...], expected: int
) -> None:
    launch = Launch(site.suite(local()))
    launch.write()
    site.program("sleep", "")
    site.program(
        "h2htalk",
        f"codes=({' '.join(map(str, codes))}); exit ${{codes[$(tr '\\036' '\\n' < {site.log} | grep -c ^h2htalk)-1]}}",
    )
    done = subprocess.run(["bash", launch.folder / "merge.sh"], check=False)
    assert done.returncode == expected
    assert site.calls("h2htalk") == [["merge", "--suite", str(launch.folder / "suite.toml")]] * len(
        codes
    )
    assert len(site.calls("sleep")) == len(codes) - 1


def test_an_index_never_changes_its_meaning(site: Site) -> None:
    a = local("a", 2)
    b = local("b", 2)
    assert h2htalk_here("launch", "slurm", site.suite(a)).returncode == 0
    assert h2htalk_here("launch", "slurm", site.suite(a, b)).returncode == 0
    for suite, words in ((site.suite(b, a), ("slurm",)), (site.suite(local("a", 3)), ("status",))):
        done = h2htalk_here("launch", *words, suite)
        assert (done.returncode, "was made for other runs or shards" in done.stderr) == (2, True)


def test_errors_of_slurm_are_told(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = site.suite(local())
    site.program("sbatch", "echo 'error: invalid partition' >&2; exit 1")
    done = h2htalk_here("launch", "slurm", suite, "--submit")
    assert (done.returncode, done.stderr) == (2, "error: sbatch: error: invalid partition\n")
    (site.bin / "sbatch").unlink()
    (site.bin / "squeue").unlink()
    monkeypatch.setenv("PATH", str(site.bin))
    done = h2htalk_here("launch", "slurm", suite, "--submit")
    assert done.returncode == 2
    assert "is not installed here: submit from a machine that has it" in done.stderr
    assert h2htalk_here("launch", "slurm", suite).returncode == 0


@pytest.mark.parametrize("name", ["模型", "launch"])
def test_a_run_takes_no_folder_that_has_another_use(site: Site, name: str) -> None:
    done = h2htalk_here("launch", "status", site.suite(local(name)))
    assert (done.returncode, "give it a `name`" in done.stderr) == (2, True)


def test_a_shard_ends_in_order_on_sigterm(tmp_path: Path) -> None:
    """Also where a script started it with `&`, which makes it deaf to Ctrl-C."""
    words = [
        "--split",
        write_split(tmp_path / "split", 20),
        "--out",
        tmp_path / "runs",
        "--shard",
        "1/2",
    ]
    with LoopbackServer(latency=0.5) as server:
        command = [
            sys.executable,
            "-m",
            "h2htalk",
            "evaluate",
            server.spec,
            *words,
            "--embedder",
            "none",
        ]
        command = [*command, "--concurrency", "2"]
        process = subprocess.Popen(
            [*map(str, command)],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
        wait_until(lambda: server.requests > 4, "nothing is asked")
        process.terminate()
        assert "stopped; what is finished is stored" in communicate(process)[1]
    assert process.returncode == 130
    (calls,) = tmp_path.glob("runs/1-of-2/*/calls.jsonl")
    assert len(stored_replies(calls)) >= 2
    assert (
        json.loads((calls.parent / "attempt.json").read_text())["sessions"][0]["ended"] is not None
    )


def test_a_model_on_the_processor_asks_for_no_gpu(site: Site) -> None:
    runs = Launch(
        site.suite('[[models]]\nmodel = "embedded"\n', '[[models]]\nmodel = "vllm:a/b"\n')
    ).runs
    assert [run.gpus for run in runs] == [0, 1]


@pytest.mark.parametrize(
    "line",
    [
        "7 N/A {name}-0",
        "7 x {name}-0",
        "7 99999999999999999999 {name}-0",
        "seven 1 {name}-0",
        "7 1 {name}-0 and more",
        "7 1 {name}-other",
        "٧ 1 {name}-0",
    ],
)
def test_a_line_of_squeue_that_lies_is_named(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that is no number ended in a traceback of ValueError."""
    site = Site(tmp_path, monkeypatch)
    path = site.suite(local())
    site.program("squeue", f"echo '{line.format(name=Launch(path).name)}'")
    site.program("scancel", "")
    done = h2htalk_here("launch", "stop", path)
    assert done.returncode == 2
    assert "squeue shows a job of this suite in a line that cannot be read" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not site.calls("scancel")


def test_what_sbatch_and_squeue_print_may_be_no_utf_8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path, monkeypatch)
    path = site.suite(local())
    site.program("squeue", r"printf '\xff\xfe 1 other\n'")
    site.program("sbatch", r"printf 'Submitted \xff batch job\n'")
    done = h2htalk_here("launch", "slurm", path, "--submit")
    assert done.returncode == 2
    assert "sbatch printed no id of a job" in done.stderr
