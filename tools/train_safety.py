"""Train the small classifiers of offensive language that ship with the package.

python tools/train_safety.py zh en                      trains both kinds; some five minutes on one core
python tools/train_safety.py characters                 the table of traditional characters (needs opencc)

The data are public (`H2HTALK_DATA`): `safety/` and `raw/`, see `tools/safety/corpora.py`; our own texts lie
in `tools/safety/`. Training needs scikit-learn and scipy; the package itself reads the weights with numpy. What ships
is measured by `tools/eval_safety.py`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

DATA = Path(__file__).parents[1] / "h2htalk" / "detect" / "safety" / "safety_data"
TRADITIONAL = Path(__file__).parents[1] / "h2htalk" / "text" / "traditional.txt"


NOTE = "# Traditional and simplified character, pair after pair; from OpenCC (Apache-2.0), see ATTRIBUTION.md"
CHARACTERS = range(0x4E00, 0xA000)
PAIRS_A_LINE = 50
# Traditional pronouns for which OpenCC keeps the character: their readers take them for the same word.
PRONOUNS = ("妳你", "牠它")


def write_traditional(path: Path) -> int:
    """Write the table, and say how many pairs it holds. Needs `pip install opencc-python-reimplemented`."""
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    pairs = [chr(code) + simplify(chr(code)) for code in CHARACTERS]
    changed = [pair for pair in pairs if len(pair) == 2 and pair[0] != pair[1]]
    changed = sorted({*changed, *PRONOUNS})
    lines = [
        "".join(changed[at : at + PAIRS_A_LINE]) for at in range(0, len(changed), PAIRS_A_LINE)
    ]
    path.write_text("\n".join([NOTE, *lines]) + "\n", encoding="utf-8")
    return len(changed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="+", choices=("zh", "en", "characters"), help="what to make, in this order"
    )
    for name in parser.parse_args().names:
        if name == "characters":
            print(f"{write_traditional(TRADITIONAL)} pairs")
        else:
            from safety.shipping import make

            data = Path(os.environ["H2HTALK_DATA"])
            make(name, data, DATA)
            make(name, data, DATA.with_name("masked_data"), masked=True)


if __name__ == "__main__":
    main()
