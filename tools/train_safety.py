"""Train the small classifiers of offensive language that ship with the package, and reproduce their figures.

python tools/train_safety.py --check                    the figures of docs/measurements.md, from the shipped weights
python tools/train_safety.py --check --record           the same, and write them into the manifest
python tools/train_safety.py zh en                      trains both kinds; some five minutes on one core
python tools/train_safety.py characters                 the table of traditional characters (needs opencc)

The data are public (`H2HTALK_DATA`, or --data): `safety/` and `raw/`, see `tools/safety/corpora.py`; our own texts lie
in `tools/safety/`. Training needs scikit-learn and scipy; the package itself reads the weights with numpy.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

MODELS = ("zh", "en")
DATA = Path(__file__).parents[1] / "h2htalk" / "curation" / "safety" / "safety_data"
MASKED = DATA.with_name("masked_data")
TRADITIONAL = Path(__file__).parents[1] / "h2htalk" / "text" / "traditional.txt"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="what to make, in this order: zh, en, characters")
    parser.add_argument("--check", action="store_true", help="measure what ships; exit 1 where a limit is missed")
    parser.add_argument("--record", action="store_true", help="with --check: write the figures into the manifest")
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    options = parser.parse_args()
    if not (options.names or options.check):
        parser.error("name zh, en or characters to make them, or --check")
    if unknown := set(options.names) - {*MODELS, "characters"}:
        parser.error(f"cannot make {', '.join(sorted(unknown))}; choose from zh, en, characters")
    if options.data is None and options.names != ["characters"]:
        parser.error("name the data's folder with --data or H2HTALK_DATA")

    for name in options.names:
        if name == "characters":
            from safety.characters import write_traditional

            print(f"{write_traditional(TRADITIONAL)} pairs")
        else:
            from safety.shipping import make

            make(name, Path(options.data), DATA)
            make(name, Path(options.data), MASKED, masked=True)
    return check(Path(options.data), record=options.record) if options.check else 0


def check(data: Path, *, record: bool) -> int:
    """Print every figure beside what is asked of it; 1 where one is missed or is not what was recorded."""
    from safety.checking import MOST_BYTES, TOLERANCE, chinese, english, lexicons
    from safety.shipping import read_manifest, write_manifest

    missed = 0
    for language, measure in (("zh", chinese), ("en", english)):
        figures = measure(data)
        entry = read_manifest(DATA, language)
        for figure in figures:
            print(figure.line(), flush=True)
        missed += sum(not figure.reached for figure in figures)
        now = {figure.what: round(figure.value, 4) for figure in figures if "CPU second" not in figure.what}
        if record:
            write_manifest(DATA, language, entry | {"figures": now})
        else:
            before = entry.get("figures", {})
            moved = [what for what, value in now.items() if abs(before.get(what, -1) - value) > TOLERANCE]
            print(f"{language}: {len(moved)} figures are not as recorded", *moved, sep="\n  ")
            missed += len(moved)
    for figure in lexicons(data):
        print(figure.line(), flush=True)
        missed += not figure.reached
    size = sum(path.stat().st_size for folder in (DATA, MASKED) for path in folder.glob("*.weights"))
    print(f"weights: {size:,} bytes of {MOST_BYTES:,}")
    return 1 if missed or size > MOST_BYTES else 0


if __name__ == "__main__":
    raise SystemExit(main())
