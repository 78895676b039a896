"""Fonts: Chinese is never boxes, whatever is installed, and what a font cannot draw is known before it is drawn."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="the analysis extra is not installed")

import matplotlib.font_manager
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from h2htalk.analysis import fonts
from h2htalk.analysis.fonts import BUNDLED, best_chinese, everyday_characters, find_font
from h2htalk.errors import ConfigError

PAPER = "我们一起今天回忆用户微笑轻轻特别分享准备早餐散步放松伙伴"


@pytest.fixture(autouse=True)
def _no_font_is_remembered() -> None:
    """Fonts are read once a file; here files change."""
    fonts._read.cache_clear()


def collection(path: Path, *families: str) -> Path:
    """A .ttc whose faces have these family names and the bundled font's characters A to Z, 今 and 天."""
    from fontTools import subset
    from fontTools.ttLib import TTCollection, TTFont

    faces = TTCollection()
    for family in families:
        font = TTFont(BUNDLED)
        options = subset.Options(name_IDs=["*"])
        subsetter = subset.Subsetter(options)
        subsetter.populate(text=f"ABCDEFGHIJKLMNOPQRSTUVWXYZ{'今天' if 'SC' in family.split() else ''}")
        subsetter.subset(font)
        font["name"].setName(family, 1, 3, 1, 0x409)
        faces.fonts.append(font)
    path.parent.mkdir(parents=True, exist_ok=True)
    faces.save(path)
    return path


# --- The bundled font -------------------------------------------------------------------------------------------


def two_bytes(encoding: str, first: int, last: int) -> set[int]:
    """The characters that a two-byte encoding has between two leading bytes."""
    trails = [*range(0x40, 0x7F), *range(0xA1, 0xFF)]
    codes = (bytes([lead, trail]) for lead in range(first, last + 1) for trail in trails)
    return {ord(text) for code in codes if (text := code.decode(encoding, "ignore")) > "\x7f"}


def test_the_bundled_font_draws_everyday_chinese_of_both_kinds() -> None:
    font = find_font("zh")
    simplified, traditional = two_bytes("gb2312", 0xB0, 0xF7), two_bytes("big5", 0xA4, 0xC6)
    assert (len(everyday_characters()), len(simplified & font.covers)) == (3755, 6763)
    assert len(traditional) >= 5401
    assert traditional <= font.covers
    assert font.missing("佢哋嘅事 㙘䴙𠅤 café ¿qué? Привет Ελλας，。！？「」《》…—々 あア") == frozenset()


def test_the_bundled_font_is_small_and_comes_with_its_licence() -> None:
    assert BUNDLED.stat().st_size < 4_000_000
    licence = (BUNDLED.parent / "OFL.txt").read_text(encoding="utf-8")
    assert licence.startswith("© 2014-2021 Adobe")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "Noto Sans CJK SC" in " ".join((BUNDLED.parent / "README.md").read_text(encoding="utf-8").split())


def test_the_bundled_font_says_itself_where_it_is_from() -> None:
    from fontTools.ttLib import TTFont

    with TTFont(BUNDLED) as font:
        names = {number: str(font["name"].getDebugName(number)) for number in (0, 1, 4, 10, 13)}
        assert font["OS/2"].fsType == 0  # may be embedded
        assert "glyf" in font  # TrueType: what publishers want in a PDF
    assert "Adobe" in names[0]
    assert names[1] == names[4] == "H2HTalk Sans SC"
    assert "Noto Sans CJK SC" in names[10]
    assert "fonts-noto-cjk" in names[10]
    assert "SIL Open Font License" in names[13]


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


def test_pillow_draws_each_character_differently() -> None:
    from PIL import ImageFont

    font = ImageFont.truetype(str(find_font("zh").path), 40)
    drawn = {bytes(font.getmask(character)) for character in set(PAPER)}
    assert len(drawn) == len(set(PAPER))  # boxes would all be one


# --- Which font -------------------------------------------------------------------------------------------------


def test_chinese_looks_the_same_everywhere_unless_asked_otherwise() -> None:
    font = find_font("zh")
    assert (font.path, font.name, font.source) == (BUNDLED, "H2HTalk Sans SC", "bundled")


def test_english_is_set_in_matplotlibs_own_font() -> None:
    font = find_font("en")
    assert (font.name, font.source) == ("DejaVu Sans", "matplotlib")
    assert find_font("en", "system") == font


def test_what_a_font_lacks_is_known() -> None:
    assert find_font("zh").missing("今天😀ok") == {"😀"}
    assert find_font("en").missing("ok 今天") == {"今", "天"}
    assert "covers" not in repr(find_font("zh"))


def test_a_language_without_a_font_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no font for language 'ja'"):
        find_font("ja")


def test_a_font_can_be_named() -> None:
    assert find_font("en", str(BUNDLED)).source == "named"
    assert find_font("en", str(BUNDLED)).name == "H2HTalk Sans SC"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file"),
        (b"", "not a font"),
        (b"ttcf", "not a font"),
        (b"%PDF-1.7" * 99, "not a font"),
        (b"\x00\x01\x00\x00\x00\x63" + b"\xff" * 400, "not a font"),
    ],
)
def test_a_named_file_that_is_no_font_is_one_error(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "my.ttf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"my\.ttf': {reason}.*name a \.ttf"):
        find_font("zh", str(file))


# --- Fonts of the system ----------------------------------------------------------------------------------------


def test_without_a_chinese_font_the_system_gives_the_bundled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matplotlib.font_manager, "findSystemFonts", list)
    assert find_font("zh", "system").source == "bundled"


def test_a_chinese_font_of_the_system_is_taken_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "NotoSansSC-Regular.ttf"
    installed.write_bytes(BUNDLED.read_bytes())
    monkeypatch.setattr(matplotlib.font_manager, "findSystemFonts", lambda: [str(installed)])
    font = find_font("zh", "system")
    assert (font.path, font.source) == (installed, "system")
    assert find_font("zh").source == "bundled"


def test_the_best_font_is_taken_in_any_order_and_unfit_ones_are_passed_by(tmp_path: Path) -> None:
    content = BUNDLED.read_bytes()
    good, better = tmp_path / "wqy-microhei.ttf", tmp_path / "SourceHanSansSC-Regular.ttf"
    for path in (good, better):
        path.write_bytes(content)
    thin, other, broken = (
        tmp_path / f"{n}.ttf" for n in ("NotoSansSC[wght]", "SomeSans-Regular", "PingFang")
    )
    thin.write_bytes(content)
    other.write_bytes(content)
    broken.write_bytes(b"no font")
    latin = collection(
        tmp_path / "NotoSansCJK-Regular.ttc", "Noto Sans CJK SC"
    )  # without everyday characters
    for paths in ([good, better, thin, other, broken, latin], [latin, broken, other, thin, better, good]):
        found = best_chinese(paths)
        assert found is not None
        assert found.path == better
    found = best_chinese([thin, good])
    assert found is not None
    assert found.path == good
    assert best_chinese([thin, other, broken, latin]) is None


def test_of_a_collection_the_face_of_mainland_china_is_taken(tmp_path: Path) -> None:
    path = collection(tmp_path / "many.ttc", "Some Sans JP", "Some Sans SC", "Some Sans TC")
    font = find_font("zh", str(path))
    assert font.name == "Some Sans SC"
    assert font.missing("ABC今天") == frozenset()
    # Pillow, as `wordcloud` uses it, reads the first face of a file: the file given has one.
    from PIL import ImageFont

    assert ImageFont.truetype(str(font.path), 20).getname()[0] == "Some Sans SC"
    fonts._read.cache_clear()
    assert find_font("zh", str(path)) == font


def test_a_collection_of_others_gives_its_first_face(tmp_path: Path) -> None:
    assert find_font("en", str(collection(tmp_path / "two.ttc", "First", "Second"))).name == "First"


def test_a_collection_without_a_place_to_keep_its_face_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = collection(tmp_path / "two.ttc", "First", "Second")
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("H2HTALK_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=r"cannot be kept.*set H2HTALK_CACHE to a folder of yours"):
        find_font("zh", str(path))


def test_fonts_load_with_the_extra_only(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    from h2htalk.errors import MissingExtraError

    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] in ("matplotlib", "fontTools"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for language, choice in (("en", "bundled"), ("zh", "bundled"), ("zh", "system")):
        with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[analysis\]"'):
            find_font(language, choice)
