"""Print which of the environments that take long a run of `.ci/run` tests: `python3 tools/ci_environments.py`.

One line an environment: its make target, `run` or `leave`, why, and when it was last tested, separated by tabs. An
environment runs where the last commits touched what it covers; of the others the hash of HEAD draws one, so that
landings of any number of commits reach each of them.

What ran is appended to a file of the machine (`--record TARGET`). On a machine that keeps none, the history says
which commit last drew or touched an environment.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

# So many commits are one landing's neighbourhood.
COMMITS = 20
# The history that is searched for a commit that drew an environment.
SEARCHED = 200


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of its own, and the paths that its tests cover."""

    target: str
    covers: tuple[str, ...]


ENVIRONMENTS = (
    Environment("live-argilla", ("h2htalk/rounds", "tests/live/argilla")),
    Environment(
        "live-label-studio",
        (
            "h2htalk/rounds",
            "h2htalk/integrations/label_studio",
            "tests/live/label_studio",
            "tools/label-studio-constraints.txt",
        ),
    ),
    Environment(
        "live-scale",
        ("h2htalk/scale", "h2htalk/curation/run.py", "h2htalk/curation/dedup", "tests/live/scale"),
    ),
    Environment(
        "live-harness", ("h2htalk/integrations", "h2htalk/benchmark/metrics", "tests/live/harness")
    ),
    Environment(
        "live-opencompass",
        ("h2htalk/integrations", "tests/live/opencompass", "tools/opencompass-constraints.txt"),
    ),
    Environment(
        "live-vllm", ("h2htalk/chat/vllm", "tests/live/vllm", "tools/vllm_cpu_requirements.py")
    ),
)


def drawn(commit: str) -> Environment:
    """Draw an environment by the hash of a commit, whose digits are as good as random."""
    return ENVIRONMENTS[int(commit[:12], 16) % len(ENVIRONMENTS)]


def git(repository: Path, *arguments: str) -> str:
    """Return what a command of git prints; nothing where it fails, as for a history that is too short."""
    result = subprocess.run(
        ["git", *arguments], cwd=repository, capture_output=True, text=True, check=False
    )
    return result.stdout if result.returncode == 0 else ""


def touched(repository: Path, environment: Environment) -> bool:
    """Whether the last commits changed what an environment covers; a history that is too short counts as changed."""
    first = f"HEAD~{COMMITS}"
    if not git(repository, "rev-parse", "--verify", "--quiet", first):
        return True
    return bool(
        git(repository, "diff", "--name-only", first, "HEAD", "--", *environment.covers).strip()
    )


def record_file() -> Path:
    """Return the file in which this machine keeps what ran."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "h2htalk" / "ci-environments.tsv"


def recorded(path: Path) -> dict[str, str]:
    """Return when each environment ran last on this machine, and at which commit."""
    if not path.is_file():
        return {}
    runs: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        target, _, when = line.partition("\t")
        runs[target] = when
    return runs


def last_drawn(repository: Path) -> dict[str, str]:
    """Return the newest commit before HEAD that drew each environment."""
    commits: dict[str, str] = {}
    for line in git(repository, "log", f"-{SEARCHED}", "--skip=1", "--format=%H %cs").splitlines():
        commit, date = line.split()
        commits.setdefault(drawn(commit).target, f"{commit[:9]} of {date}")
    return commits


def plan(repository: Path, runs: dict[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each environment's target, `run` or `leave`, the reason, and when it was tested last."""
    head = git(repository, "rev-parse", "HEAD").strip()
    earlier = last_drawn(repository)
    for environment in ENVIRONMENTS:
        target = environment.target
        if target in runs:
            when = f"ran last {runs[target]}"
        elif target in earlier:
            when = f"no run is recorded on this machine; drawn last by {earlier[target]}"
        else:
            when = f"no run is recorded on this machine, and none of the last {SEARCHED} commits drew it"
        if touched(repository, environment):
            yield target, "run", f"the last {COMMITS} commits touched what it covers", when
        elif drawn(head) == environment:
            yield target, "run", "drawn by the hash of HEAD", when
        else:
            yield (
                target,
                "leave",
                f"not drawn; the last {COMMITS} commits touched nothing that it covers",
                when,
            )


def main() -> None:
    """Print the plan, or record that an environment ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--record", metavar="TARGET", help="append to the machine's file that TARGET has run"
    )
    record = parser.parse_args().record
    repository = Path(__file__).parents[1]
    path = record_file()
    if record is None:
        for row in plan(repository, recorded(path)):
            print("\t".join(row))
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    commit = git(repository, "rev-parse", "--short=9", "HEAD").strip()
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{record}\t{now} at {commit}\n")


if __name__ == "__main__":
    main()
