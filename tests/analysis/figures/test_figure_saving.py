"""A figure as SVG, PDF and PNG."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest
from figures_made import HOSTILE, made_groups, made_odds
from PIL import Image

from h2htalk.analysis.figures import draw_log_odds, draw_sunburst, save_figure
from h2htalk.analysis.verb_nouns.pairs import PairCount, top_verbs

pytestmark = pytest.mark.filterwarnings("error")


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


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, language: str) -> None:
    def written(folder: str) -> list[bytes]:
        paths = save_figure(draw_sunburst(made_groups(language)), tmp_path / folder, "rings")
        return [path.read_bytes() for path in paths]

    assert written("a") == written("b")


def test_the_svg_needs_no_font_and_nothing_from_elsewhere(saved: list[Path]) -> None:
    svg = saved[0].read_text(encoding="utf-8")
    assert not [element for element in ("<text", "font-family", "<image") if element in svg]
    assert set(re.findall(r'href="(.)', svg)) == {"#"}


def test_hostile_words_reach_no_markup(tmp_path: Path) -> None:
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    svg = save_figure(draw_sunburst(top_verbs(pairs)), tmp_path, "rings")[0].read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "--" not in "".join(re.findall(r"<!--(.*?)-->", svg))


def test_clip_paths_of_two_figures_on_one_page_have_different_ids(tmp_path: Path) -> None:
    def ids(name: str) -> set[str]:
        svg = save_figure(draw_log_odds(made_odds(), "a", "b"), tmp_path, name)[0].read_text(encoding="utf-8")
        return set(re.findall(r'<clipPath id="([^"]+)"', svg))

    assert ids("one")
    assert not ids("one") & ids("two")


def test_the_pdf_embeds_truetype_and_no_type_3(saved: list[Path]) -> None:
    pdf = saved[1].read_bytes()
    streams = [zlib.decompressobj().decompress(s) for s in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.S)]
    whole = pdf + b"".join(streams)
    assert b"/CIDFontType2" in whole
    assert b"/Type3" not in whole
