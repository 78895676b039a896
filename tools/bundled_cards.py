"""Write into the cards of the bundled splits what follows from their data: `python tools/bundled_cards.py [FOLDER]`.

These are the line of the version with the fingerprint and the number of corrected items, the block of counts (as
`h2htalk split info` prints them), and what trivial answers and references meet. `check_bundled.py` compares them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from bundled_points import arm_shares

from h2htalk.analysis.split_description import describe_split
from h2htalk.data.readers.reads import READS
from h2htalk.data.splits import BUNDLED_FOLDER, Split, load_split
from h2htalk.errors import counted

SETS = ("mini", "high_risk", "instructions", "arcs")
ATTRIBUTION = 'CC BY 4.0. Attribution: "h2htalk, the h2htalk authors".'
# What a card says where no `reads.jsonl` beside it tells who has read the items for the gates of a release.
READ_BY_NOBODY = (
    "Nobody on record has read these items for harm by the companion, explicit content, minors, crises or personal "
    "data, which the gates of a release ask about: they were written by their authors, and `h2htalk release check` "
    "says that they are *not tested*. The readers of the review were asked whether they would publish what was drawn "
    "for them, which answers none of these questions."
)
_VERSION = re.compile(r"(?m)^Version \d+, .*$")
_COUNTS = re.compile(r"(?s)(?<=\n## Counts\n\n```\n).*?(?=```\n)")
_SHARES = re.compile(r"(?m)^\* (\w+) [\d.]+ of musts, [\d.]+ of all$")


def version_line(folder: Path, split: Split) -> str:
    """The version, its fingerprint, and how many items it corrects, which the readings of the card do not know."""
    entries = tomllib.loads((folder / "errata.toml").read_text(encoding="utf-8")).get("erratum", ())
    corrected = {entry["item"] for entry in entries if str(entry["version"]) == split.version}
    after = f"It corrects {counted(len(corrected), 'item')} (`errata.toml`), after the readings and ratings below."
    return f"Version {split.version}, fingerprint `{split.fingerprint}`, {ATTRIBUTION} {after}"


def counts_block(split: Split) -> str:
    """What `split info` prints below its head."""
    _, _, counts = describe_split(split).partition("\n\n")
    return counts


def share_lines(split: Split) -> dict[str, str]:
    """By trivial answer, and for the references: the line that says what they meet."""
    return {
        arm: f"* {arm} {100 * of_musts:.1f} of musts, {100 * of_all:.1f} of all"
        for arm, (of_musts, of_all) in arm_shares(split).items()
    }


def updated(folder: Path, split: Split, card: str) -> str:
    """A card with what follows from the data of its split."""
    card = _VERSION.sub(lambda _: version_line(folder, split), card, count=1)
    card = _COUNTS.sub(lambda _: counts_block(split), card, count=1)
    lines = share_lines(split)
    return _SHARES.sub(lambda line: lines.get(line[1], line[0]), card)


def says_who_has_read_it(folder: Path) -> bool:
    """Whether a split has the readings of its items, or a card that says that there are none."""
    card = (folder / "CARD.md").read_text(encoding="utf-8")
    return (folder / READS).is_file() or READ_BY_NOBODY in card.splitlines()


def stale(folder: Path, split: Split) -> list[str]:
    """What of a split's card is not what its data say, a line each."""
    card = (folder / "CARD.md").read_text(encoding="utf-8")
    right = updated(folder, split, card)
    wanted = [
        version_line(folder, split),
        *counts_block(split).splitlines(),
        *share_lines(split).values(),
    ]
    present = set(card.splitlines())
    missing = [line for line in wanted if line and line not in present]
    if right != card and not missing:
        missing.append("the version, the counts or the shares stand at another place, or twice")
    return [f"{split.name}: CARD.md lacks: {line}" for line in missing]


def main(words: Sequence[str]) -> None:
    """Write the cards of a folder of splits."""
    folder = Path(words[0]) if words else BUNDLED_FOLDER
    for name in SETS:
        path = folder / name / "CARD.md"
        card = path.read_text(encoding="utf-8")
        path.write_text(updated(path.parent, load_split(path.parent), card), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
