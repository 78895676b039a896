"""The files of `environments/`: each environment of the Makefile comes from one, none contradicts pyproject.toml."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import ci_suites
import install_into
import make_constraints
from make_constraints import ENVIRONMENTS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "environments"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
# Raised by hand, and no environment.
BY_HAND = {"torch", "build"}
# What always runs, and what CI does not run.
NOT_BY_TURNS = {"dev", "docs", "peers"}
# Options of an installation that take a value.
WITH_VALUE = {"--only", "--resolution", "--requirement"}


@cache
def read_pins(name: str) -> dict[str, Version]:
    """Return the version of each package in a file of constraints."""
    versions = {}
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        package, _, version = line.partition("==")
        versions[canonicalize_name(package)] = Version(version)
    return versions


@cache
def commands(name: str) -> list[list[str]]:
    """Return what the rule of an environment gives to tools/install_into.py, a list of words each time."""
    dry_run = subprocess.run(
        ["make", "--dry-run", "--always-make", ENVIRONMENTS[name].stamp],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = dry_run.stdout.replace("\\\n", " ").splitlines()
    words = [shlex.split(line) for line in lines if "tools/install_into.py" in line]
    return [line[line.index("tools/install_into.py") + 1 :] for line in words]


def of_the_project(extras: Sequence[str], core: bool) -> list[str]:
    lines = list(PROJECT["dependencies"]) if core else []
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    return lines


@cache
def requirements(name: str) -> list[Requirement]:
    """Return what the rule of an environment names itself, and what pyproject.toml names for it."""
    lines = []
    if name == "docs":
        lines += of_the_project(["docs"], core=False)
    for words in commands(name):
        values = [words[index + 1] for index, word in enumerate(words) if word in WITH_VALUE]
        arguments = [word for word in words if word not in values and not word.startswith("--")]
        for argument in arguments[2:]:
            extras = re.fullmatch(r"\.(?:\[([\w,-]+)\])?", argument)
            if extras is None:
                lines.append(argument)
                continue
            named = extras[1].split(",") if extras[1] else []
            lines += of_the_project(named, core=True)
    return [Requirement(line) for line in lines]


def contradictions(
    needed: Sequence[Requirement], versions: Mapping[str, Version], python: str
) -> list[str]:
    """Return the requirements, of those that hold for a Python, that a pinned version does not meet."""
    unmet = []
    for requirement in needed:
        marker = requirement.marker
        if marker is not None and not marker.evaluate({"python_version": python, "extra": ""}):
            continue
        version = versions.get(canonicalize_name(requirement.name))
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            unmet.append(f"{requirement}: {version}")
    return unmet


def python_of(name: str) -> str:
    first_line = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").partition("\n")[0]
    python = re.search(r"Python (3\.\d+)", first_line)
    assert python is not None, name
    return python[1]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_no_constraint_contradicts_what_an_environment_installs(name: str) -> None:
    assert requirements(name) != []
    assert contradictions(requirements(name), read_pins(name), python_of(name)) == []


def test_a_constraint_that_contradicts_is_found() -> None:
    needed = [
        Requirement("rich>=13.7"),
        Requirement("typer>=0.24"),
        Requirement("numpy<2; python_version < '3.11'"),
    ]
    versions = {"rich": Version("14.0"), "typer": Version("0.12"), "numpy": Version("2.3")}
    assert contradictions(needed, versions, "3.11") == ["typer>=0.24: 0.12"]
    assert len(contradictions(needed, versions, "3.10")) == 2


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_rule_of_an_environment_names_its_file(name: str) -> None:
    files = set()
    for words in commands(name):
        folder = words.index(str(ENVIRONMENTS[name].folder))
        files.add(words[folder + 1])
    assert files == {f"environments/{name}.txt"}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_all_that_a_rule_names_is_pinned(name: str) -> None:
    """All but what the Makefile installs by version, and what `lowest` takes at its lower bound."""
    left_out = set(make_constraints.LEFT_OUT)
    lowest_extras = ENVIRONMENTS[name].lowest_extras
    if lowest_extras is not None:
        left_out |= make_constraints.direct_requirements(lowest_extras)
    named = {canonicalize_name(requirement.name) for requirement in requirements(name)}
    by_uv = any("pip" not in words for words in commands(name))
    if by_uv:
        named.add(canonicalize_name("uv"))
    assert named - left_out - read_pins(name).keys() == set()
    if lowest_extras is not None:
        assert read_pins(name).keys() & left_out == set(), "else the lower bound is not tested"


def test_every_environment_has_a_file_and_every_file_an_environment() -> None:
    files = {path.stem for path in FOLDER.iterdir()}
    assert files == ENVIRONMENTS.keys() | BY_HAND
    stamps = re.findall(
        r"^\$\(\w+\)/(?:\w+/)?[\w-]+\.stamp: environments/([\w-]+)\.txt", MAKEFILE, re.M
    )
    assert set(stamps) == ENVIRONMENTS.keys() | {"torch"}
    rules = re.findall(r"^\$\(\w+\)/.*\.stamp:.*", MAKEFILE, re.M)
    assert [rule for rule in rules if ": environments/" not in rule] == []


def test_the_files_name_versions_alone() -> None:
    """No index, no address, no hash and no local version such as `+cpu`: which build, pip's settings say."""
    for path in FOLDER.iterdir():
        lines = path.read_text(encoding="utf-8").splitlines()
        pinned = [line for line in lines if not line.startswith("#")]
        assert [line for line in pinned if not re.fullmatch(r"[\w.-]+==[\w.!]+", line)] == []


def test_torch_has_one_version_and_builds_meet_what_pyproject_needs() -> None:
    torch = read_pins("torch")["torch"]
    versions = {name: read_pins(name).get("torch") for name in ENVIRONMENTS}
    assert {name for name, version in versions.items() if version == torch} == {
        "dev",
        "opencompass",
        "vllm",
    }
    assert set(versions.values()) == {torch, None}
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = tomllib.loads(text)["build-system"]["requires"]
    needed = [Requirement(line) for line in lines]
    for name in ["build", *ENVIRONMENTS]:
        assert contradictions(needed, read_pins(name), "3.11") == [], name


def test_a_change_of_constraints_runs_the_suites_of_their_environment_first() -> None:
    _, suites = ci_suites.read_times(ROOT / ".ci" / "times")
    paths: set[Path] = set()
    for suite in suites:
        paths.update(map(Path, suite.paths))
    named = {path.stem for path in paths if path.parent == Path("environments")}
    assert named == ENVIRONMENTS.keys() - NOT_BY_TURNS


def test_pins_leave_out_builds_of_torch_and_the_setuptools_of_venv() -> None:
    versions = {"torch": "2.13.0+cpu", "Ruff": "0.8", "pip": "23.0.1", "setuptools": "66.1.1"}
    left_out = make_constraints.LEFT_OUT
    assert make_constraints.pins(versions, left_out) == ["ruff==0.8", "torch==2.13.0"]
    assert make_constraints.pins({"setuptools": "84.2.1"}, left_out) == ["setuptools==84.2.1"]


def test_direct_requirements_are_those_of_the_package_and_its_extras() -> None:
    names = make_constraints.direct_requirements(["release"])
    assert {"typer", "huggingface-hub", "mlcroissant"} <= names
    assert "spacy" not in names


UV = """error: No solution found when resolving dependencies
  cause: Because there is no version of zensical==99.0 and
      you require zensical==99.0, we can conclude that your requirements are unsatisfiable.
      hint: something else
"""
OLDER_UV = """  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of zensical==99.0 and
      you require zensical==99.0, we can conclude that your
      requirements are unsatisfiable.
"""
PIP = """INFO: pip is looking at multiple versions of markdown
ERROR: Cannot install h2htalk because these package versions have conflicting dependencies.

The conflict is caused by:
    mkdocs-material 9.8.2 depends on markdown>=3.9
    The user requested (constraint) markdown==3.1

To fix this you could try to:
1. loosen the range of package versions you've specified
ERROR: ResolutionImpossible: for help visit a page
"""


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (UV, "Because there is no version of zensical==99.0 and you require zensical==99.0, "),
        (
            OLDER_UV,
            "Because there is no version of zensical==99.0 and you require zensical==99.0, ",
        ),
        (
            PIP,
            "mkdocs-material 9.8.2 depends on markdown>=3.9; The user requested (constraint) markdown==3.1",
        ),
        ("ERROR: No matching distribution found for a==9\n", "No matching distribution found"),
        ("Traceback\n\nOSError: disk\n\n", "OSError: disk"),
        ("", "no message"),
    ],
)
def test_the_reason_of_a_failure_is_one_line(output: str, reason: str) -> None:
    line = install_into.reason_of(output)
    assert line.startswith(reason)
    assert "\n" not in line
    assert "hint" not in line
