"""Fonts: Chinese is never boxes, whatever is installed, and what a font cannot draw is known before it is drawn."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the analysis extra is not installed")

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from h2htalk.analysis.figures.fonts import BUNDLED, find_font
from h2htalk.errors import ConfigError, MissingExtraError

PAPER = "我们一起今天回忆用户微笑轻轻特别分享准备早餐散步放松伙伴"


# --- The bundled font -------------------------------------------------------------------------------------------


def two_bytes(encoding: str, first: int, last: int) -> set[int]:
    """The characters that a two-byte encoding has between two leading bytes."""
    trails = [*range(0x40, 0x7F), *range(0xA1, 0xFF)]
    codes = (bytes([lead, trail]) for lead in range(first, last + 1) for trail in trails)
    return {ord(text) for code in codes if (text := code.decode(encoding, "ignore")) > "\x7f"}


def test_the_bundled_font_draws_everyday_chinese_of_both_kinds() -> None:
    font = find_font("zh")
    simplified, traditional = two_bytes("gb2312", 0xB0, 0xF7), two_bytes("big5", 0xA4, 0xC6)
    assert len(simplified & font.covers) == 6763
    assert len(traditional) >= 5401
    assert traditional <= font.covers
    assert font.missing("佢哋嘅事 㙘䴙𠅤 café ¿qué? Привет Ελλας，。！？「」《》…—々 あア") == frozenset()


def test_the_bundled_font_is_small_and_comes_with_its_licence() -> None:
    assert BUNDLED.stat().st_size < 4_000_000
    licence = (BUNDLED.parent / "OFL.txt").read_text(encoding="utf-8")
    assert licence.startswith("© 2014-2021 Adobe")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Noto Sans CJK SC" in " ".join((BUNDLED.parent / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
@pytest.mark.parametrize(("language", "text"), [("zh", PAPER), ("en", "café naïve Łódź дом ёлка")])
def test_no_box_in_any_format(tmp_path: Path, ending: str, language: str, text: str) -> None:
    figure = Figure()
    font = find_font(language)
    figure.text(0.1, 0.5, text, fontproperties=FontProperties(fname=str(font.path)))
    with warnings.catch_warnings(), matplotlib.rc_context({"pdf.fonttype": 42}):
        warnings.simplefilter("error")  # "Glyph 20170 missing from font"
        figure.savefig(tmp_path / f"page.{ending}")
    assert font.missing(text) == frozenset()


# --- Which font -------------------------------------------------------------------------------------------------


def test_a_language_has_one_font_everywhere_or_is_an_error() -> None:
    chinese, english = find_font("zh"), find_font("en")
    assert (chinese.path, chinese.name, chinese.source) == (BUNDLED, "H2HTalk Sans SC", "bundled")
    assert (english.name, english.source) == ("DejaVu Sans", "matplotlib")
    with pytest.raises(ConfigError, match="no language 'ja'"):
        find_font("ja")


def test_fonts_load_with_the_extra_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    find_font.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[analysis\]"'):
        find_font("zh")
