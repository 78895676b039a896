"""The record in a ballot's hidden sheet: whose it is, of which round and wave, and what stands where."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import RoundError

SHEET = "ballot"
FORMAT = "h2htalk ballot 1"
# A cell holds 32,767 characters; ASCII only, so that no program changes one.
_PIECE = 30_000
# Above the items of a sitting: the columns' keys (hidden), their headings.
FIRST_ROW = 3


@dataclass(frozen=True, slots=True)
class SheetRecord:
    """One sitting: its sheet's name, the keys of its columns, and its rows' codes from row `FIRST_ROW` on."""

    name: str
    keys: tuple[str, ...]
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What a ballot says of itself.

    Attributes:
        voter: their salted hash.
        choices: question -> (stored value as text, as it was shown): what counts even if our words change later.
    """

    round: str
    wave: int
    voter: str
    sheets: tuple[SheetRecord, ...]
    choices: Mapping[str, Sequence[tuple[str, str]]]

    def to_text(self) -> str:
        return json.dumps(
            {
                "round": self.round,
                "wave": self.wave,
                "voter": self.voter,
                "sheets": [[one.name, list(one.keys), list(one.codes)] for one in self.sheets],
                "choices": {name: [list(pair) for pair in pairs] for name, pairs in self.choices.items()},
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Record:
        """Read what `to_text` wrote. Raises RoundError where somebody changed it beyond reading."""
        try:
            raw: Any = json.loads(text)
            return cls(
                str(raw["round"]),
                int(raw["wave"]),
                str(raw["voter"]),
                tuple(
                    SheetRecord(str(name), tuple(keys), tuple(codes)) for name, keys, codes in raw["sheets"]
                ),
                {name: [(value, shown) for value, shown in pairs] for name, pairs in raw["choices"].items()},
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise RoundError(f"the hidden sheet {SHEET!r} was changed; take a fresh ballot") from error


def pieces(text: str) -> list[str]:
    """A text as cells hold it."""
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
