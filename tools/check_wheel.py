"""Check what a built wheel holds: every module and data file of the package, its licences, and nothing else.

python tools/check_wheel.py dist/*.whl
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 30_000_000  # bytes


def packaged_files() -> set[str]:
    """Every file of `h2htalk/` that is under version control."""
    listed = subprocess.run(
        ["git", "ls-files", "h2htalk"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return set(listed.split("\n")) - {""}


def problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel, a line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = {name for name in names if ".dist-info/" in name}
    missing = sorted(packaged_files() - names)
    unexpected = sorted(names - packaged_files() - info)
    found = [f"{name} is missing" for name in missing] + [
        f"{name} is not under version control" for name in unexpected
    ]
    licences = {name.partition("/licenses/")[2] for name in info if "/licenses/" in name}
    expected = {
        one for one in packaged_files() if Path(one).name.startswith(("LICENSE", "ATTRIBUTION"))
    } | {"LICENSE"}
    found += [
        f"the licence file {name} is not declared in pyproject.toml"
        for name in sorted(expected - licences)
    ]
    if wheel.stat().st_size > LARGEST:
        found.append(f"{wheel.stat().st_size:,} bytes, more than {LARGEST:,}")
    return found


def main() -> None:
    """Check each wheel that is named; exit code 1 where something is wrong."""
    wrong = [f"{path}: {line}" for path in sys.argv[1:] for line in problems(Path(path))]
    print(
        "\n".join(wrong)
        if wrong
        else f"{len(packaged_files())} files of the package are in the wheel"
    )
    sys.exit(1 if wrong or not sys.argv[1:] else 0)


if __name__ == "__main__":
    main()
