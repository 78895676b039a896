"""Train the small language pipelines that ship with the package, and reproduce their figures.

python tools/train_pipelines.py --check                 the figures of docs/measurements.md, from the shipped weights
python tools/train_pipelines.py --check-teacher         those of the teacher that lies in --work
python tools/train_pipelines.py zh_segmenter zh_parser en_teacher en_parser --work DIR

A teacher that lies in --work is used as it is; remove `en_teacher.pt` to train it anew.
The data are public (`H2HTALK_DATA`): treebanks in `ud/`, name sets in `ner/`,
and for the teacher's silver the texts of `safety/diasafety_train.json` and `raw/counselchat_en.csv`. Training needs
`pip install opencc-python-reimplemented` beside the `analysis`, `embedded` and `local` extras.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="what to train, in this order")
    parser.add_argument(
        "--check", action="store_true", help="score the shipped pipelines on the test sets"
    )
    parser.add_argument(
        "--record", action="store_true", help="with --check: write the figures down"
    )
    parser.add_argument(
        "--check-teacher", action="store_true", help="score the teacher that lies in --work"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/pipelines"), help="for what training leaves behind"
    )
    options = parser.parse_args()
    if not (options.names or options.check or options.check_teacher):
        parser.error("name pipelines to train, or --check or --check-teacher")
    data = Path(os.environ["H2HTALK_DATA"])
    stored = options.work / "en_teacher.pt"
    if options.names:
        from pipelines.recipes import RECIPES

        unknown = [name for name in options.names if name not in RECIPES]
        if unknown:
            parser.error(f"no pipeline {', '.join(unknown)}; choose from {', '.join(RECIPES)}")
        options.work.mkdir(parents=True, exist_ok=True)
        for name in options.names:
            RECIPES[name](data, options.work)
    if options.check_teacher:
        if not stored.exists():
            parser.error(
                f"no teacher at {stored}; train it: python tools/train_pipelines.py en_teacher"
            )
        from pipelines.checking import check_teacher

        check_teacher(data, stored)
    if options.check:
        from pipelines.checking import check

        return 0 if check(data, record=options.record) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
