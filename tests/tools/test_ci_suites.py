"""What `.ci/run` makes of planted failures: ten small tests, and a `make` that prints."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import ci_suites

ROOT = Path(__file__).parents[2]
TEN_TESTS = """
import os, pathlib, time
import pytest

TRIES = pathlib.Path(os.environ["TRIES"])

def first_try(name):
    path = TRIES / name
    first = not path.exists()
    path.touch()
    return first

@pytest.mark.parametrize("number", range(10))
def test_small(number):
    planted = os.environ.get(f"PLANT_{number}", "")
    if planted == "fails":
        assert number < 0
    if planted == "fails once":
        assert not first_try(str(number))
    if planted == "hangs" or planted == "hangs once" and first_try(str(number)):
        time.sleep(60)
"""
PYTEST = f"{sys.executable} -m pytest -p no:cacheprovider -p no:randomly -q tests"
# `planted` 1.0 is at hand, and the constraints name 99.0: nothing is ever installed.
INSTALL = f"{ROOT}/tools/twice.sh {sys.executable} {ROOT}/tools/install_into.py"
PLANTED = f"{sys.prefix} environments/planted.txt --no-index --find-links wheels planted"
MAKEFILE = f"""
.PHONY: .venv/dev.stamp test-all dist docs live demo lowest live-vllm live-scale test-todays-releases
.venv/dev.stamp docs demo:
\t@echo made $@
\t@test "$(PLANT_CONSTRAINT)" != $@ || {INSTALL} $(PLANT_INSTALLER) {PLANTED}
test-all:
\t@{PYTEST}
dist:
\t@test "$(PLANT_DIST)" = "" || exit 1
live:
\t@test "$(PLANT_LIVE)" = "" || exit 1
lowest live-vllm live-scale test-todays-releases:
\t@for number in $(PLANT_RERUNS); do echo "RERUN tests/test_ten.py::test_small[$$number]"; done
\t@echo suite $@, no skip: $$H2HTALK_NO_SKIP
\t@case " $(PLANT_SUITES) " in *" $@ "*) exit 1;; esac
\t@case " $(PLANT_SLOW) " in *" $@ "*) sleep 60;; esac
"""
TIMES = (
    "# target seconds paths\nalways 1000\nlowest 2 rounds\nlive-vllm 2 chat\nlive-scale 2 scale\n"
)
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-03T00:00:00Z"


def commit(folder: Path, path: str, when: str) -> None:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{path} {when}\n", encoding="utf-8")
    identity = ("-c", "user.name=h2htalk", "-c", "user.email=h2htalk@example.org")
    environment = {"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when}
    for arguments in (
        ["add", "--all"],
        [*identity, "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", path],
    ):
        subprocess.run(["git", *arguments], cwd=folder, check=True, env=environment)


class Project:
    """A small repository on which the suites run."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capfd = capfd

    def run(self) -> tuple[int, str]:
        status = ci_suites.main()
        return status, self._capfd.readouterr().out


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Project:
    folder = tmp_path / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_ten.py").write_text(TEN_TESTS, encoding="utf-8")
    (folder / "pytest.ini").write_text(
        "[pytest]\ntimeout = 5\ntimeout_method = thread\n", encoding="utf-8"
    )
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / ".ci").mkdir()
    (folder / ".ci" / "times").write_text(TIMES, encoding="utf-8")
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("ruff", "mypy"):
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho {name}\ntest "$PLANT_STYLE" = ""\n', encoding="utf-8")
        tool.chmod(0o755)
    (folder / ".gitignore").write_text(".venv\n__pycache__\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    commit(folder, "docs/page.md", OLD)
    commit(folder, "docs/page.md", NEW)
    (tmp_path / "tries").mkdir()
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST", "MAKEFLAGS", "MAKELEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIES", str(tmp_path / "tries"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "--reruns 1 --maxfail 25 -raR")
    monkeypatch.setenv("H2HTALK_NO_SKIP", "1")
    monkeypatch.setattr(ci_suites, "ROOT", folder)
    # What this machine lacks is not installed for suites that only print.
    monkeypatch.setattr(ci_suites, "DEBIAN_PACKAGES", {})
    monkeypatch.setattr(ci_suites, "INSTALLATION", 1)
    monkeypatch.setattr(ci_suites, "GRACE", 1)
    monkeypatch.setattr(sys, "argv", ["ci_suites.py"])
    return Project(folder, capfd)


def lines_of(output: str, word: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith(word)]


def test_a_quiet_run_passes_and_runs_everything(project: Project) -> None:
    status, output = project.run()
    assert status == 0
    assert "10 passed" in output
    assert len(lines_of(output, "suite ")) == 3
    assert "suite lowest, no skip: 0" in output
    assert "suite live-vllm, no skip: 1" in output
    assert lines_of(output, "FAILED") == lines_of(output, "RERUN") == []


def test_a_test_that_fails_always_fails_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_3", "fails")
    status, output = project.run()
    assert status == 1
    assert "FAILED: make test-all (always), exit 2" in output
    assert "tests that failed once and were run again" not in output
    assert len(lines_of(output, "suite ")) == 3, "steps go on after a failure"


def test_a_test_that_fails_the_first_time_passes_and_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_3", "fails once")
    status, output = project.run()
    assert status == 0
    assert "tests that failed once and were run again: 1" in output
    assert "RERUN tests/test_ten.py::test_small[3]" in output.splitlines()[-1]


def test_what_was_run_again_is_named_in_a_run_that_fails(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_3", "fails once")
    monkeypatch.setenv("PLANT_5", "fails")
    status, output = project.run()
    assert status == 1
    assert "tests that failed once and were run again: 1" in output
    assert output.splitlines()[-2] == "RERUN tests/test_ten.py::test_small[3]"


def test_four_tests_that_fail_the_first_time_fail_the_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 3, 5, 7):
        monkeypatch.setenv(f"PLANT_{number}", "fails once")
    status, output = project.run()
    assert status == 1
    assert "tests that failed once and were run again: 4" in output
    assert "FAILED: more than 3 tests passed at their second try only" in output


@pytest.mark.parametrize(("planted", "expected"), [("hangs once", 0), ("hangs", 1)])
def test_a_hang_in_one_process_is_started_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, planted: str, expected: int
) -> None:
    monkeypatch.setenv("PLANT_3", planted)
    status, output = project.run()
    assert status == expected
    assert "started again: make test-all" in output
    assert "RERUN make test-all: the time limit of a test ended its process" in output
    assert ("FAILED: make test-all" in output) == bool(expected)


def test_a_suite_over_its_time_is_ended_and_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(project.folder, "chat/engine.py", NEW)
    monkeypatch.setenv("PLANT_SLOW", "live-vllm")
    status, output = project.run()
    assert status == 1
    (line,) = lines_of(output, "FAILED")
    assert re.fullmatch(
        r"FAILED: make live-vllm \(changed, 2 s expected\), ended after \d s, past its time", line
    )


def test_a_touched_suite_fails_and_another_warns(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(project.folder, "chat/engine.py", NEW)
    monkeypatch.setenv("PLANT_SUITES", "live-vllm live-scale")
    status, output = project.run()
    assert status == 1
    assert lines_of(output, "suite ")[0] == "suite live-vllm, no skip: 1", "it runs first"
    (failed,) = lines_of(output, "FAILED")
    (warned,) = lines_of(output, "WARNING, mend it first")
    assert "make live-vllm (changed, 2 s expected), exit 2 after" in failed
    assert "make live-scale (by turns, 2 s expected), exit 2 after" in warned


def test_what_fails_in_an_untouched_suite_only_warns(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_SUITES", "live-scale")
    status, output = project.run()
    assert status == 0
    assert len(lines_of(output, "WARNING, mend it first: make live-scale")) == 1


def test_three_steps_that_fail_are_all_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANT_DIST", "fails")
    monkeypatch.setenv("PLANT_LIVE", "fails")
    monkeypatch.setenv("PLANT_3", "fails")
    status, output = project.run()
    assert status == 1
    failed = lines_of(output, "FAILED: ")
    assert [line.partition(" (")[0] for line in failed] == [
        "FAILED: make test-all",
        "FAILED: make dist",
        "FAILED: make live",
    ]


def write_planted_wheel(folder: Path) -> None:
    """Write a wheel of version 1.0, and constraints that only 99.0 meets."""
    (folder / "wheels").mkdir()
    with zipfile.ZipFile(folder / "wheels" / "planted-1.0-py3-none-any.whl", "w") as wheel:
        described = "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n"
        wheel.writestr("planted-1.0.dist-info/METADATA", described)
        wheel.writestr(
            "planted-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("planted-1.0.dist-info/RECORD", "")
    (folder / "environments").mkdir()
    (folder / "environments" / "planted.txt").write_text("planted==99.0\n", encoding="utf-8")
    (folder / "environments" / "build.txt").write_text("setuptools==84.2.1\n", encoding="utf-8")


@pytest.mark.parametrize("installer", ["", "--only uv", "--only pip"])
def test_a_constraint_that_cannot_be_met_is_named_with_its_step(
    project: Project, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    write_planted_wheel(project.folder)
    monkeypatch.setenv("PLANT_CONSTRAINT", "docs")
    monkeypatch.setenv("PLANT_INSTALLER", installer)
    status, output = project.run()
    assert status == 1
    (line,) = lines_of(output, "FAILED")
    assert line.startswith("FAILED: make docs (always), exit 2 after")
    _, _, reason = line.partition("not installed: ")
    assert reason.startswith(f"{sys.prefix} from environments/planted.txt: ")
    assert "planted==99.0" in reason
    assert output.splitlines()[-1] == line


@pytest.mark.parametrize("touched", [True, False])
def test_what_others_release_today_only_warns(
    project: Project, monkeypatch: pytest.MonkeyPatch, touched: bool
) -> None:
    path = "chat" if touched else "rounds"
    (project.folder / ".ci" / "times").write_text(
        f"always 1000\ntest-todays-releases 2 {path}\n", encoding="utf-8"
    )
    commit(project.folder, "chat/engine.py", NEW)
    monkeypatch.setenv("PLANT_SUITES", "test-todays-releases")
    monkeypatch.setenv("PLANT_RERUNS", "1 2 3 4")
    status, output = project.run()
    assert status == 0
    assert "suite test-todays-releases, no skip: 0" in output
    assert lines_of(output, "FAILED") == []
    warned = lines_of(output, "WARNING, mend it first: make test-todays-releases")
    assert len(warned) == 5
    assert ("(changed, 2 s expected)" in warned[0]) == touched
    assert "run again: tests/test_ten.py::test_small[4]" in warned[3]
    assert "exit 2 after" in warned[4]


def test_a_history_that_holds_only_the_change_counts_as_touched(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".git/HEAD", ".git/index"):
        (project.folder / name).unlink()
    subprocess.run(["git", "init", "--quiet"], cwd=project.folder, check=True)
    subprocess.run(
        ["git", "symbolic-ref", "HEAD", "refs/heads/other"], cwd=project.folder, check=True
    )
    commit(project.folder, "docs/page.md", NEW)
    monkeypatch.setenv("PLANT_SUITES", "live-scale")
    status, output = project.run()
    assert status == 1
    assert "FAILED: make live-scale (changed" in output


def test_a_slow_machine_leaves_out_what_would_end_too_late(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.folder / ".ci" / "times").write_text(
        "always 100\nlowest 200 rounds\nlive-vllm 300 chat\nlive-scale 600 scale\n",
        encoding="utf-8",
    )
    commit(project.folder, "chat/engine.py", NEW)
    # What always runs took twenty times its row.
    monkeypatch.setattr(sys, "argv", ["ci_suites.py", "--elapsed", "2000"])
    status, output = project.run()
    assert status == 0
    left_out = lines_of(output, "left out")
    assert len(left_out) == 3
    assert any(
        re.match(r"left out: make live-vllm \(changed, 60\d\d s expected\): it would end in", line)
        for line in left_out
    )


def test_the_first_of_the_others_has_more_time_than_the_rest(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.folder / ".ci" / "times").write_text(
        "always 1500\nlowest 1200 rounds\nlive-vllm 1200 chat\nlive-scale 1200 scale\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "argv", ["ci_suites.py", "--elapsed", "1400"])
    status, output = project.run()
    assert status == 0
    assert len(lines_of(output, "suite ")) == 1
    assert len(lines_of(output, "left out")) == 2


def test_a_suite_brings_the_debian_packages_that_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = ci_suites.Suite(target="live-workbook", seconds=60, paths=())
    commands: dict[str, str] = {}
    monkeypatch.setattr(ci_suites.shutil, "which", commands.get)
    monkeypatch.setattr(ci_suites.os, "geteuid", lambda: 0)
    assert ci_suites.debian_packages(suite) == ("libreoffice-calc", "fonts-noto-cjk")
    commands["soffice"] = "/usr/bin/soffice"
    assert ci_suites.debian_packages(suite) == ()
    commands.clear()
    monkeypatch.setattr(ci_suites.os, "geteuid", lambda: 1000)
    assert ci_suites.debian_packages(suite) == (), "only root can install them"
    _, suites = ci_suites.read_times(ROOT / ".ci" / "times")
    assert ci_suites.DEBIAN_PACKAGES.keys() <= {row.target for row in suites}


def test_the_order_of_the_others_is_drawn_by_the_commit() -> None:
    suites = [ci_suites.Suite(target=name, seconds=1, paths=()) for name in "abcdef"]
    first = {ci_suites.draw_order(suites, f"{number:040x}")[0].target for number in range(60)}
    assert first == set("abcdef")


def test_targets_and_paths_of_the_rows_exist() -> None:
    seconds, suites = ci_suites.read_times(ROOT / ".ci" / "times")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    assert seconds > 0
    assert [suite.target for suite in suites if suite.target not in targets] == []
    for suite in suites:
        missing = [path for path in suite.paths if not (ROOT / path).exists()]
        assert missing == [], suite.target
    live = {name for name in targets if name.startswith("live-")}
    assert live <= {suite.target for suite in suites}, "every live suite has its turn"
    always = {words[1] for words in ci_suites.ALWAYS if words[0] == "make"}
    assert always <= targets | {".venv/dev.stamp"}


def paths_of(variable: str) -> list[str]:
    """The paths that a variable of the Makefile lists, those of the variables in it included."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    (words,) = re.findall(rf"^{variable} := (.*)$", makefile, re.MULTILINE)
    paths: list[str] = []
    for word in words.split():
        inner = re.fullmatch(r"\$\((\w+)\)", word)
        if inner:
            paths += paths_of(inner[1])
        else:
            paths.append(word)
    return paths


@pytest.mark.parametrize("variable", ["CORE_TESTS", "PEOPLE_TESTS", "LIVE_TESTS", "NEWEST_TESTS"])
def test_the_tests_that_a_target_names_exist(variable: str) -> None:
    paths = paths_of(variable)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_live_test_has_a_target() -> None:
    """`make live` names its files, and each other suite a folder of its own."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    covered = {ROOT / path for path in paths_of("LIVE_TESTS")}
    covered |= {ROOT / path for path in re.findall(r"-m live (tests/live/\w+)$", makefile, re.M)}
    # A mark in what tests share is taken over by its name.
    shared = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "support").rglob("*.py")
    )
    assert shared.count("mark.live") == 1
    assert re.findall(r"^(\w+) = .*_LATER\[", shared, re.M) == ["OPENAI_FIRST", "ANTHROPIC_FIRST"]
    marked = re.compile(r"mark\.live|OPENAI_FIRST|ANTHROPIC_FIRST")
    this_file = Path(__file__)
    without = [
        path
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if path != this_file
        and marked.search(path.read_text(encoding="utf-8"))
        and not covered & {path, *path.parents}
    ]
    assert without == []


def test_every_environment_that_runs_tests_can_run_them_again() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = [line for line in makefile.splitlines() if "pytest-timeout" in line]
    assert lines
    assert [line for line in lines if "pytest-rerunfailures" not in line] == []
    assert "pytest-rerunfailures" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_an_installation_that_fails_is_tried_again_once(tmp_path: Path) -> None:
    script = tmp_path / "installs.sh"
    script.write_text(
        f'#!/bin/sh\necho try >> {tmp_path}/tries\ntest "$(wc -l < {tmp_path}/tries)" -ge "$1"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    for needed, status in ((2, 0), (5, 1)):
        (tmp_path / "tries").write_text("")
        result = subprocess.run(
            ["sh", ROOT / "tools" / "twice.sh", script, str(needed)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == status
        assert "tried again" in result.stderr
        assert (tmp_path / "tries").read_text().count("try") == 2
