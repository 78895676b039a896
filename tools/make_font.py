"""Make the bundled Chinese font again: a part of Noto Sans CJK SC, as TrueType, small enough to travel along.

    apt-get download fonts-noto-cjk=1:20220127+repack1-1 unicode-data=15.0.0-1
    for package in *.deb; do dpkg -x "$package" unpacked; done
    python tools/make_font.py unpacked/usr/share [--out FOLDER]

In it: the 8,105 characters of the Table of General Standard Chinese Characters (2013; field kTGH of Unihan), GB 2312,
the 5,401 common traditional characters of Big5, everyday Cantonese, kana, and of Latin, Greek, Cyrillic and
punctuation what Noto Sans CJK has. Outlines are converted from cubic to quadratic curves within a thousandth of an
em, because publishers want TrueType in a PDF. The same input gives the same bytes (fontTools 4.68).
"""

from __future__ import annotations

import argparse
import bz2
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SOURCE_PACKAGE = "fonts-noto-cjk 1:20220127+repack1-1 (Debian 12)"
SOURCE_FONT = Path("fonts/opentype/noto/NotoSansCJK-Regular.ttc")
UNIHAN = Path("unicode/Unihan_OtherMappings.txt.bz2")
FAMILY, FILE = "H2HTalk Sans SC", "H2HTalkSansSC-Regular.ttf"
FOLDER = Path(__file__).parents[1] / "h2htalk" / "analysis" / "figures" / "chinese_font"
SIMPLIFIED = 2  # the face of the collection
TOLERANCE = 1.0  # of 1,000 units an em
CANTONESE = "佢哋嘅咗啲嚟喺冇咁啱嗰嘢噉睇攞瞓諗唔乜嘥掂嬲搵揾冧攰黐孖"
BLOCKS = (
    (0x20, 0x250),  # Latin
    (0x370, 0x530),  # Greek, Cyrillic
    (0x1E00, 0x1F00),  # Latin with two accents
    (0x2000, 0x2070),  # punctuation
    (0x20A0, 0x20C0),  # currencies
    (0x2100, 0x2150),  # ℃, №, ™
    (0x3000, 0x3100),  # Chinese punctuation, kana
    (0xFF00, 0xFFF0),  # full width
)


def wanted(unihan: Path) -> set[int]:
    """The code points that the font shall have, as far as its source has them."""
    standard = set()
    with bz2.open(unihan, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split("\t")
            if len(fields) == 3 and fields[1] == "kTGH":
                standard.add(int(fields[0].removeprefix("U+"), 16))
    if len(standard) != 8105:
        raise SystemExit(f"error: {unihan}: {len(standard)} standard characters, not 8,105")
    simplified = _double_bytes("gb2312", range(0xA1, 0xF8), range(0xA1, 0xFF))
    traditional = _double_bytes("big5", range(0xA1, 0xC7), [*range(0x40, 0x7F), *range(0xA1, 0xFF)])
    return (
        standard
        | simplified
        | traditional
        | {*map(ord, CANTONESE)}
        | {c for one in BLOCKS for c in range(*one)}
    )


def _double_bytes(encoding: str, leads: Iterable[int], trails: Iterable[int]) -> set[int]:
    trails = list(trails)
    texts = (bytes([lead, trail]).decode(encoding, "ignore") for lead in leads for trail in trails)
    return {ord(text) for text in texts if len(text) == 1}


def make_font(share: Path, out: Path) -> Path:
    """Write the font; `share` is the unpacked packages' `usr/share`."""
    from fontTools import subset
    from fontTools.ttLib import TTFont

    font = TTFont(share / SOURCE_FONT, fontNumber=SIMPLIFIED, recalcTimestamp=False)
    options = subset.Options(
        hinting=False, notdef_outline=True, layout_features=[], name_IDs=["*"], glyph_names=False
    )
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "BASE", "VORG", "vhea", "vmtx"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=wanted(share / UNIHAN) & set(font.getBestCmap()))
    subsetter.subset(font)
    use_quadratic_curves(font)
    rename(font)
    out.mkdir(parents=True, exist_ok=True)
    font.save(out / FILE)
    return out / FILE


def use_quadratic_curves(font: Any) -> None:
    """Replace the outlines (CFF, cubic) by TrueType's."""
    from fontTools.pens.cu2quPen import Cu2QuPen
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from fontTools.ttLib import newTable

    outlines = font.getGlyphSet()
    order = font.getGlyphOrder()
    glyf = font["glyf"] = newTable("glyf")
    glyf.glyphOrder, glyf.glyphs = order, {}
    for name in order:
        pen = TTGlyphPen(None)
        # TrueType fills outlines that run the other way round.
        outlines[name].draw(Cu2QuPen(pen, TOLERANCE, reverse_direction=True))
        glyph = glyf.glyphs[name] = pen.glyph()
        glyph.recalcBounds(glyf)
        font["hmtx"].metrics[name] = (font["hmtx"].metrics[name][0], getattr(glyph, "xMin", 0))
    font["loca"] = newTable("loca")
    del font["CFF "]
    profile = font["maxp"] = newTable("maxp")
    profile.tableVersion, profile.numGlyphs, profile.maxZones = 0x00010000, len(order), 1
    for field in ("TwilightPoints", "Storage", "FunctionDefs", "InstructionDefs", "StackElements"):
        setattr(profile, f"max{field}", 0)
    for field in (
        "Points",
        "Contours",
        "CompositePoints",
        "CompositeContours",
        "ComponentElements",
    ):
        setattr(profile, f"max{field}", 0)  # filled in when the font is saved
    profile.maxSizeOfInstructions = profile.maxComponentDepth = 0
    font["post"].formatType = 3.0
    font.sfntVersion = "\x00\x01\x00\x00"


def rename(font: Any) -> None:
    """A name of its own: the licence asks that a changed font be told from the original, and so do programs."""
    names = font["name"]
    old = {number: str(names.getDebugName(number)) for number in (0, 5, 7, 13, 14)}
    note = f"A part of Noto Sans CJK SC ({old[5]}) from {SOURCE_PACKAGE}, outlines converted to TrueType."
    own = {
        1: FAMILY,
        2: "Regular",
        3: FILE,
        4: FAMILY,
        5: "Version 1.000",
        6: FILE.removesuffix(".ttf"),
        10: note,
    }
    names.names = []
    texts = dict(sorted((old | own).items()))
    for number, text in texts.items():
        names.setName(text, number, 3, 1, 0x409)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("share", type=Path, help="usr/share of both packages, unpacked")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    for file in (SOURCE_FONT, UNIHAN):
        if not (arguments.share / file).is_file():
            print(
                f"error: {arguments.share / file}: not there; see the top of this file",
                file=sys.stderr,
            )
            sys.exit(2)
    path = make_font(arguments.share, arguments.out)
    print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
