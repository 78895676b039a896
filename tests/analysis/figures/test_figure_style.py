"""Style, fonts, labels and files of the figures."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import matplotlib as mpl
import pytest
from figures_made import HOSTILE, made_groups, made_lengths
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from h2htalk.analysis.figures.charts import draw_lengths, draw_sunburst
from h2htalk.analysis.figures.style import STAND_IN, find_font, label, save_figure, shortened, width_of
from h2htalk.analysis.verb_nouns.pairs import PairCount, top_verbs

pytestmark = pytest.mark.filterwarnings("error")  # matplotlib warns of a missing glyph


def test_a_readers_matplotlibrc_changes_nothing(tmp_path: Path) -> None:
    own = {"font.size": 30, "text.usetex": True, "axes.facecolor": "red", "svg.fonttype": "none", "savefig.dpi": 9}
    lengths = made_lengths()

    def files(folder: Path) -> list[bytes]:
        drawn = draw_lengths(lengths.histograms, lengths.summaries)
        return [path.read_bytes() for path in save_figure(drawn, folder, "lengths")]

    expected = files(tmp_path / "a")
    with mpl.rc_context(own):
        before = dict(mpl.rcParams)
        assert files(tmp_path / "b") == expected
        assert dict(mpl.rcParams) == before


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
    assert font.covers.issuperset(map(ord, "佢哋嘅事 㙘䴙𠅤 café ¿qué? Привет Ελλας，。！？「」《》…—々 あア"))


@given(st.text(max_size=60), st.floats(10, 120))
def test_every_character_of_a_label_has_a_glyph_and_a_shortened_label_fits(text: str, room: float) -> None:
    one = label(text)
    assert set(map(ord, one)) <= find_font("en").covers | find_font("zh").covers
    short = shortened(one, room, 7)
    if short != one:
        assert short.endswith("…")
        assert width_of(short, 7) <= room


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("茶🫖杯", f"茶{STAND_IN}杯"),
        ("a𓀀b", f"a{STAND_IN}b"),
        ("👩🏽\u200d🚀🫖", STAND_IN),
        ("a\nb\tc", "a b c"),
        ("\u202eevil", "\\u202eevil"),
    ],
)
def test_what_no_font_has_becomes_one_dot_and_controls_do_nothing(text: str, shown: str) -> None:
    assert label(text) == shown


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A sunburst in Chinese, in a folder that was not there."""
    return save_figure(draw_sunburst(made_groups("zh")), tmp_path_factory.mktemp("a") / "new" / "figures", "pairs_zh")


def test_three_files_name_neither_date_nor_versions(saved: list[Path]) -> None:
    assert [path.name for path in saved] == ["pairs_zh.svg", "pairs_zh.pdf", "pairs_zh.png"]
    for path in saved:
        assert not [word for word in (b"CreationDate", b"dc:date", b"Matplotlib v") if word in path.read_bytes()]
    with Image.open(saved[2]) as image:
        assert image.size == (1656, 1656)


def test_the_svg_needs_no_font_and_nothing_from_elsewhere(saved: list[Path]) -> None:
    svg = saved[0].read_text(encoding="utf-8")
    assert not [element for element in ("<text", "font-family", "<image") if element in svg]
    assert set(re.findall(r'href="(.)', svg)) == {"#"}


def test_hostile_words_reach_no_markup(tmp_path: Path) -> None:
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    svg = save_figure(draw_sunburst(top_verbs(pairs)), tmp_path, "rings")[0].read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "--" not in "".join(re.findall(r"<!--(.*?)-->", svg))


def test_the_pdf_embeds_truetype_and_no_type_3(saved: list[Path]) -> None:
    pdf = saved[1].read_bytes()
    streams = [zlib.decompressobj().decompress(s) for s in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.S)]
    whole = pdf + b"".join(streams)
    assert b"/CIDFontType2" in whole
    assert b"/Type3" not in whole
