"""Install into an environment what a file of `environments/` admits: `install_into.py ENVIRONMENT FILE REQUIREMENT...`.

uv is five times as fast as pip, but does not read pip's settings (a mirror, certificates, a build of torch): where it
reaches no registry, pip installs. What no release can meet is said in one line, which `.ci/run` repeats at its end:

    not installed: .venv-docs from environments/docs.txt: there is no version of zensical==99.0

With TODAYS_RELEASES set (`make constraints`) all versions but torch's are today's newest.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path("environments")
TORCH = FOLDER / "torch.txt"
BUILD = FOLDER / "build.txt"
PIP = ("-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off")

# How uv begins where it has read the registry and no versions fit together.
NO_SOLUTION = re.compile(r"No solution found[^\n]*\n(.*)", re.DOTALL)
# Who wants what, as pip lists it.
CONFLICT = re.compile(r"The conflict is caused by:\n((?: +.*\n)+)")
PIP_ERROR = re.compile(r"^ERROR: (.+)", re.MULTILINE)
# The reason is one line of a list.
LONGEST_REASON = 500
# pip prints a line for each package; the last ones hold the error.
LINES_SHOWN = 40


class NotInstalled(Exception):
    """An installation that failed, with the reason in the words of uv or pip."""


class NoSolution(NotInstalled):
    """uv read the registry, and no versions fit together: pip would search for long and find none either."""


def in_one_line(text: str) -> str:
    """Return text without the frames and line breaks of a terminal, and cut where it is long."""
    words = re.sub(r"[\s×│╰─▶]+", " ", text).strip()
    if len(words) > LONGEST_REASON:
        return f"{words[:LONGEST_REASON]}..."
    return words


def reason_of(output: str) -> str:
    """Return why uv or pip failed: which versions contradict each other, else the first error, else the last line."""
    no_solution = NO_SOLUTION.search(output)
    if no_solution:
        cause, _, _ = no_solution[1].partition("hint:")
        return in_one_line(cause.replace("cause:", ""))
    conflict = CONFLICT.search(output)
    if conflict:
        return in_one_line(re.sub(r"\n(?=.)", "; ", conflict[1]))
    error = PIP_ERROR.search(output)
    if error:
        return in_one_line(error[1])
    lines = output.split("\n")
    lines_with_text = [line for line in lines if line.strip()]
    if not lines_with_text:
        return "no message"
    return in_one_line(lines_with_text[-1])


def run(command: Sequence[str | Path], environment: Mapping[str, str]) -> None:
    """Run a command in silence; raise NotInstalled, with the end of its output printed, where it fails."""
    result = subprocess.run(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode == 0:
        return
    last_lines = result.stdout.splitlines()[-LINES_SHOWN:]
    print("\n".join(last_lines), flush=True)
    reason = reason_of(result.stdout)
    if NO_SOLUTION.search(result.stdout):
        raise NoSolution(reason)
    raise NotInstalled(reason)


def pip_environment(constraints: Path, build: Path | None) -> dict[str, str]:
    """Return the variables by which pip also builds from the constraints: an option does not reach its builds.

    Before version 25.3 pip reads PIP_CONSTRAINT there, later PIP_BUILD_CONSTRAINT.
    """
    environment = dict(os.environ)
    of_the_user = environment.get("PIP_CONSTRAINT", "")
    environment["PIP_CONSTRAINT"] = f"{of_the_user} {constraints}".strip()
    if build is not None:
        environment["PIP_BUILD_CONSTRAINT"] = str(build)
    return environment


def install_by_uv(
    folder: Path, constraints: Path, build: Path | None, arguments: Sequence[str]
) -> None:
    """Install uv into the environment, and by it all else."""
    python = folder / "bin" / "python"
    run([python, *PIP, "uv"], pip_environment(constraints, build))
    command = [folder / "bin" / "uv", "pip", "install", "--quiet", "--python", python]
    command += ["--constraint", constraints]
    if build is not None:
        command += ["--build-constraint", build]
    run([*command, *arguments], os.environ)


def install_by_pip(
    folder: Path, constraints: Path, build: Path | None, arguments: Sequence[str]
) -> None:
    command = [folder / "bin" / "python", *PIP, "--use-pep517", *arguments]
    run(command, pip_environment(constraints, build))


def install(folder: Path, constraints: Path, only: str, arguments: Sequence[str]) -> None:
    """Install by uv, and by pip where uv reached no registry; `only` names the one that is to be asked."""
    build: Path | None = BUILD
    if os.environ.get("TODAYS_RELEASES"):
        constraints = TORCH
    if constraints == TORCH:
        build = None
    if only == "pip":
        install_by_pip(folder, constraints, build, arguments)
        return
    try:
        install_by_uv(folder, constraints, build, arguments)
    except NoSolution:
        raise
    except NotInstalled:
        if only == "uv":
            raise
        install_by_pip(folder, constraints, build, arguments)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=["uv", "pip"], default="")
    parser.add_argument("environment", type=Path)
    parser.add_argument("constraints", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="as for `pip install`")
    settings = parser.parse_args()
    try:
        install(settings.environment, settings.constraints, settings.only, settings.arguments)
    except NotInstalled as error:
        print(
            f"not installed: {settings.environment} from {settings.constraints}: {error}",
            flush=True,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
