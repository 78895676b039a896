"""Train the small classifiers of offensive language that ship with the package.

python tools/train_safety.py zh en                      trains both kinds; some five minutes on one core
python tools/train_safety.py characters                 the table of traditional characters (needs opencc)

The data are public (`H2HTALK_DATA`, or --data): `safety/` and `raw/`, see `tools/safety/corpora.py`; our own texts lie
in `tools/safety/`. Training needs scikit-learn and scipy; the package itself reads the weights with numpy. What ships
is measured by `tools/eval_safety.py`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

DATA = Path(__file__).parents[1] / "h2htalk" / "curation" / "safety" / "safety_data"
TRADITIONAL = Path(__file__).parents[1] / "h2htalk" / "text" / "traditional.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=("zh", "en", "characters"), help="what to make, in this order")
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    options = parser.parse_args()
    if options.data is None and options.names != ["characters"]:
        parser.error("name the data's folder with --data or H2HTALK_DATA")
    for name in options.names:
        if name == "characters":
            from safety.characters import write_traditional

            print(f"{write_traditional(TRADITIONAL)} pairs")
        else:
            from safety.shipping import make

            make(name, Path(options.data), DATA)
            make(name, Path(options.data), DATA.with_name("masked_data"), masked=True)


if __name__ == "__main__":
    main()
