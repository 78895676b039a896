"""How large what others made may be, so that no file or server takes the memory or the time of this machine.

Each bound lies far above real data, and can be raised by an environment variable that its message names.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from h2htalk.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound: `variable` is the environment variable that replaces its default."""

    variable: str
    default: int
    unit: str

    @property
    def value(self) -> int:
        """The bound that holds. Raises ConfigError where the variable is no number above 0."""
        text = os.environ.get(self.variable, "").strip()
        if not text:
            return self.default
        if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0):
            raise ConfigError(
                f"{self.variable} must be a whole number above 0; correct it, or unset it"
            )
        return int(text)

    def message(self, what: str) -> str:
        """What to say of something that passes the bound."""
        value = self.value
        return f"{what} of more than {value:,} {self.unit}; where that is right, set {self.variable}={4 * value}"


LINE = Bound(
    "H2HTALK_LARGEST_LINE", 1 << 26, "bytes"
)  # of a text file, a field of a table, a row of Parquet
COLUMNS = Bound("H2HTALK_MOST_COLUMNS", 10_000, "columns")
REPLY = Bound("H2HTALK_LARGEST_REPLY", 1 << 28, "bytes")  # of an annotation server, of the Hub
DOWNLOAD = Bound("H2HTALK_LARGEST_DOWNLOAD", 1 << 33, "bytes")  # a file of the Hub
VALUES = Bound(
    "H2HTALK_MOST_VALUES", 1_000_000, "values"
)  # of one JSON text: each takes Python some 80 to 300 bytes, and 33 MB of `[],` hold eleven million
# Of an export that is one JSON text: a person's chats of years hold millions of values.
EXPORT_VALUES = Bound("H2HTALK_MOST_EXPORT_VALUES", 10_000_000, "values")
LISTING = Bound("H2HTALK_MOST_LISTED", 1_000_000, "entries")  # of what a server lists in pages
# Of Parquet: pyarrow takes some 14 bytes for each.
FOOTER = Bound("H2HTALK_LARGEST_FOOTER", 1 << 24, "bytes")
# Of a part of a Parquet file while it is unfolded, beside 16 bytes for each byte of the file.
PARQUET_MEMORY = Bound("H2HTALK_PARQUET_MEMORY", 3 << 26, "bytes")
# Of all rows of a small Parquet file: of a large one a thousand times its size.
TABLE = Bound("H2HTALK_LARGEST_TABLE", 1 << 30, "bytes")
