"""A figure as SVG, PDF and PNG."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import pytest
from figures_made import HOSTILE, made_groups, made_pairs
from PIL import Image

from h2htalk.analysis.figures import draw_pairs_bars, draw_sunburst, save_figure
from h2htalk.analysis.verb_nouns.pairs import PairCount

pytestmark = pytest.mark.filterwarnings("error")


def test_three_files_are_written_into_a_folder_that_need_not_be_there(tmp_path: Path) -> None:
    paths = save_figure(draw_sunburst(made_groups()), tmp_path / "new" / "figures", "pairs_en")
    assert [path.name for path in paths] == ["pairs_en.svg", "pairs_en.pdf", "pairs_en.png"]
    assert paths[1].read_bytes().startswith(b"%PDF")
    with Image.open(paths[2]) as image:
        assert image.size == (1380, 1380)  # 6.9 in at 200 pixels an inch


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_same_data_gives_the_same_bytes(tmp_path: Path, language: str) -> None:
    def written(folder: str) -> list[bytes]:
        paths = save_figure(draw_pairs_bars(made_pairs(language)), tmp_path / folder, "bars")
        return [path.read_bytes() for path in paths]

    assert written("a") == written("b")


def test_a_file_names_neither_date_nor_versions(tmp_path: Path) -> None:
    for path in save_figure(draw_sunburst(made_groups()), tmp_path, "pairs"):
        text = path.read_bytes()
        assert b"CreationDate" not in text
        assert b"dc:date" not in text
        assert b"Matplotlib v" not in text


def test_the_svg_needs_no_font_and_nothing_from_elsewhere(tmp_path: Path) -> None:
    svg = save_figure(draw_sunburst(made_groups("zh")), tmp_path, "pairs")[0].read_text(encoding="utf-8")
    assert "<text" not in svg
    assert "font-family" not in svg
    assert set(re.findall(r'href="(.)', svg)) == {"#"}
    assert "<image" not in svg


def test_hostile_words_reach_no_markup(tmp_path: Path) -> None:
    pairs = [PairCount(word, word, 9) for word in HOSTILE]
    svg = save_figure(draw_pairs_bars(pairs), tmp_path, "bars")[0].read_text(encoding="utf-8")
    assert "<script" not in svg
    assert "--" not in "".join(re.findall(r"<!--(.*?)-->", svg))


def test_clip_paths_of_two_figures_on_one_page_have_different_ids(tmp_path: Path) -> None:
    def ids(name: str) -> set[str]:
        svg = save_figure(draw_pairs_bars(made_pairs()), tmp_path, name)[0].read_text(encoding="utf-8")
        return set(re.findall(r'<clipPath id="([^"]+)"', svg))

    assert ids("one")
    assert not ids("one") & ids("two")


def test_the_pdf_embeds_truetype_and_no_type_3(tmp_path: Path) -> None:
    pdf = save_figure(draw_sunburst(made_groups("zh")), tmp_path, "pairs")[1].read_bytes()
    streams = [zlib.decompressobj().decompress(s) for s in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.S)]
    whole = pdf + b"".join(streams)
    assert b"/CIDFontType2" in whole
    assert b"/Type3" not in whole
