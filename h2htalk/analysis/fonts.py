"""The fonts of the pictures: one for each language, never one that draws Chinese as boxes."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from h2htalk.errors import ConfigError, MissingExtraError, quoted
from h2htalk.text.cache_folder import cache_folder

INSTALL_ANALYSIS = 'pip install "h2htalk[analysis]"'
BUNDLED = Path(__file__).parent / "chinese_font" / "H2HTalkSansSC-Regular.ttf"
Source = Literal["bundled", "matplotlib", "system", "named"]

# Chinese sans serifs in their book weight, by the letters of the file name, the best for print first. Variable fonts
# (`VF`, `wght`) are none of them: opened without more ado they show their thinnest weight.
_PREFERRED = (
    "notosanscjk",
    "notosans",
    "sourcehansans",
    "pingfang",
    "msyh",  # Microsoft YaHei
    "hiraginosansgb",
    "wqymicrohei",
    "wqyzenhei",
    "droidsansfallback",
    "simhei",
)
_ENDINGS = r"(?:sc|cn)?(?:regular|full)?"
# The face of a collection that draws characters as mainland China does, as a word of its name.
_FACE = "SC"


@dataclass(frozen=True, slots=True)
class FontFile:
    """A font of one face that matplotlib, Pillow and `wordcloud` all read.

    Attributes:
        name: of its family, as a figure's legend or a summary names it.
        source: where it is from; a choice of `system` that finds nothing gives `bundled`.
        covers: the code points that it can draw.
    """

    path: Path
    name: str
    source: Source
    covers: frozenset[int] = field(repr=False)

    def missing(self, text: str) -> frozenset[str]:
        """The characters of a text that the font would draw as boxes."""
        return frozenset(character for character in text if ord(character) not in self.covers)


def find_font(language: str, choice: str = "bundled") -> FontFile:
    """The font for words of a language.

    Chinese: the bundled font, unless another is asked for. It is not the other way round, because then the same split
    would give one picture here and another there, by what a user once installed; and a font of the system is hardly
    better: most that could be found draw the characters of the bundled one, or look worse in print. `system` is for
    texts with characters that the bundled font lacks, and for a house style; so is a named file.

    English: matplotlib's DejaVu Sans, which has all of Latin, Greek and Cyrillic; `bundled` and `system` make no
    difference.

    Args:
        language: `en` or `zh`.
        choice: `bundled`, `system` (the best Chinese font installed, else the bundled one), or a font file.

    Raises:
        ConfigError: another language; a named file that is not there or is no font.
        MissingExtraError: matplotlib is not installed.
    """
    if language not in ("en", "zh"):
        raise ConfigError(f"no font for language {language!r}; choose from en, zh")
    if choice not in ("bundled", "system"):
        return _named(Path(os.path.expanduser(choice)))
    if language == "en":
        return _dejavu()
    found = _system_font() if choice == "system" else None
    return found or _read(BUNDLED, "bundled")


def _dejavu() -> FontFile:
    try:
        from matplotlib import get_data_path
    except ImportError:
        raise MissingExtraError("a picture", INSTALL_ANALYSIS) from None
    return _read(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", "matplotlib")


def _named(path: Path) -> FontFile:
    try:
        return _read(path, "named")
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise ConfigError(
            f"font {quoted(str(path))}: {reason}; name a .ttf, .otf or .ttc file, `system` or `bundled`"
        ) from error


def _system_font() -> FontFile | None:
    """The first preferred font that is installed, can be read and has the characters of everyday Chinese."""
    try:
        from matplotlib.font_manager import findSystemFonts
    except ImportError:
        raise MissingExtraError("a picture", INSTALL_ANALYSIS) from None
    return best_chinese(sorted(map(Path, findSystemFonts())))


def best_chinese(paths: list[Path]) -> FontFile | None:
    """The best Chinese font among files, by the order of preference; None where none covers Chinese."""
    for name in _PREFERRED:
        for path in paths:
            if not re.fullmatch(name + _ENDINGS, re.sub(r"[^a-z]", "", path.stem.lower())):
                continue
            try:
                font = _read(path, "system")
            except (OSError, ValueError):
                continue  # not a font that can be read: the next one, at last the bundled one, is taken
            if everyday_characters() <= font.covers:
                return font
    return None


@cache
def everyday_characters() -> frozenset[int]:
    """The 3,755 code points of GB 2312's first level: what any Chinese text is made of."""
    codes = (bytes([lead, trail]) for lead in range(0xB0, 0xD8) for trail in range(0xA1, 0xFF))
    return frozenset(ord(text) for code in codes if (text := code.decode("gb2312", "ignore")))


@cache
def _read(path: Path, source: Source) -> FontFile:
    """A font file's name and characters; of a collection the Chinese face, else the first, in a file of its own.

    OSError: the file cannot be read; ValueError: it is no font, or one without outlines.
    """
    try:
        from fontTools.ttLib import TTFont, TTLibError
    except ImportError:
        raise MissingExtraError("a picture", INSTALL_ANALYSIS) from None
    try:
        number = _face_number(path)
        with TTFont(path, fontNumber=number, lazy=True, recalcBBoxes=False) as font:
            if not {"glyf", "CFF ", "CFF2"} & set(font.keys()):
                raise ValueError("it has no outlines")
            covers, name = frozenset(font.getBestCmap() or ()), str(font["name"].getDebugName(1))
            own = path if number < 0 else _own_file(path, number, font)
    except (TTLibError, KeyError, struct.error, AssertionError) as error:
        raise ValueError(f"not a font that can be read: {error}") from error
    return FontFile(own, name, source, covers)


def _face_number(path: Path) -> int:
    """Which face of a collection is the mainland Chinese one, else 0; -1: the file is no collection."""
    from fontTools.ttLib import TTCollection

    with path.open("rb") as stream:
        if stream.read(4) != b"ttcf":
            return -1
    with TTCollection(path, lazy=True) as faces:
        names = [str(font["name"].getDebugName(1)).split() for font in faces.fonts]
    return next((number for number, words in enumerate(names) if _FACE in words), 0)


def _own_file(path: Path, number: int, font: Any) -> Path:
    """A face of a collection in the cache folder: `wordcloud` reads the first face only, which may be Japanese."""
    status = path.stat()
    key = f"{path.resolve()}\0{number}\0{status.st_size}\0{status.st_mtime_ns}"
    try:
        own = cache_folder() / "fonts" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.ttf"
        if not own.is_file():
            own.parent.mkdir(parents=True, exist_ok=True)
            unfinished = own.with_suffix(f".{os.getpid()}")
            font.save(unfinished, reorderTables=None)
            unfinished.replace(own)
    except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home folder
        raise ValueError(
            f"its face cannot be kept: {error}; set H2HTALK_CACHE to a folder of yours"
        ) from error
    return own
