"""Find the fonts of the figures: matplotlib's own, and for Chinese a bundled one, so that no character is a box."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from h2htalk.data.languages import find_language
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.parsing.parsing import INSTALL

BUNDLED = Path(__file__).parent / "chinese_font" / "H2HTalkSansSC-Regular.ttf"


@dataclass(frozen=True, slots=True)
class FontFile:
    """A font that matplotlib, Pillow and `wordcloud` all read.

    Attributes:
        name: of its family, as a figure's legend or a summary names it.
        source: `matplotlib` or `bundled`.
        covers: the code points that it can draw.
    """

    path: Path
    name: str
    source: str
    covers: frozenset[int] = field(repr=False)

    def missing(self, text: str) -> frozenset[str]:
        """Return the characters of a text that the font would draw as boxes."""
        return frozenset(character for character in text if ord(character) not in self.covers)


@cache
def find_font(language: str) -> FontFile:
    """Find the font for words of a language: the bundled one for Chinese, so that figures are equal everywhere.

    English: matplotlib's DejaVu Sans, which has all of Latin, Greek and Cyrillic.

    Raises:
        ConfigError: an unknown language, or one in a script without a font.
        MissingExtraError: matplotlib is not installed.
    """
    script = find_language(language).script
    if script not in ("Latin", "Chinese"):
        raise ConfigError(f"no font for {script} letters; the figures have fonts for Latin and Chinese ones")
    try:
        from matplotlib import get_data_path
        from matplotlib.font_manager import fontManager, get_font
    except ImportError:
        raise MissingExtraError("a figure", INSTALL) from None
    path, source = BUNDLED, "bundled"
    if script == "Latin":
        path, source = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", "matplotlib"
    fontManager.addfont(path)
    font = get_font(path)
    return FontFile(path, font.family_name, source, frozenset(font.get_charmap()))
