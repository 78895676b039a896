"""Word lists as weak evidence, the bundled classifiers (figures: tools/eval_safety.py), and folded spellings."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.detect import hashed
from h2htalk.detect.hashed import load_classifier
from h2htalk.detect.safety import crisis, lexicons
from h2htalk.detect.safety.text_folding import (
    fold,
    fold_spelling,
    original_places,
    spelling_place,
)
from support.safety_tables import HERE, rows
from support.tables import table

DATA = Path(lexicons.__file__).parent / "safety_data"


def categories(text: str, language: Language, least: float = 0.4) -> set[str]:
    return {
        piece.category for piece in lexicons.find_listed(text, language) if piece.score >= least
    }


@pytest.mark.parametrize(("language", "text", "category"), table("curation", "listed_words"))
def test_listed_words_and_ordinary_text(
    language: Language, text: str, category: str | None
) -> None:
    found = categories(text, language)
    assert category in found if category else not found


def test_what_lists_and_classifiers_do_not_decide_alone() -> None:
    """Only the second may be removed by itself: a hard category precedes a crisis."""
    assert "sexual.minors" not in categories(
        "When I was 9 he molested me. He wanted nudes.", "en", 0.8
    )
    assert "sexual.minors" not in categories(
        "小时候我十二岁，被邻居猥亵，他给我看裸照，我报警了。", "zh", 0.8
    )
    assert "sexual.minors" not in categories(
        "My 15 years old daughter asked me about sex and condoms.", "en", 0.5
    )
    assert "sexual.minors" in categories(
        "The schoolgirl, horny as ever, sent more nudes.", "en", 0.8
    )
    # Because of long kind replies more than half of a source's dialogues needed a decision by people.
    text = "If you don't vote blue this year you're part of the problem"
    assert lexicons.find_political(text, "en") is not None
    assert lexicons.find_political(text, "en", seeker=False) is None
    assert (
        lexicons.find_political("The government must be overthrown", "en", seeker=False) is not None
    )
    assert (
        lexicons.find_political("We met at the summit", "en", frozenset({"summit"}), seeker=False)
        is not None
    )


def hidden_entry(word: str) -> str:
    """The entry of a hidden word: `crc32 modulo 4096:hash:length`; length 0 where whole words are compared."""
    folded = lexicons.bare(fold(word))
    return f"{crc32(folded.encode()) % 4096}:{lexicons.hashed(folded)}:{0 if folded.isascii() else len(folded)}"


def test_disguised_words_listed_and_hidden() -> None:
    for disguise in ("你这个废 物", "你这个廢物", "你这个废*物", "你这个废\u200b物"):
        found = lexicons.find_listed(said := f"喂，{disguise}！", "zh")
        assert [said[p.start : p.end] for p in found if p.category == "offensive.abuse"] == [
            disguise
        ]
    hidden = [hidden_entry(word) for word in ("Blorp", "blorps", "glim plurk", "卜噜噜")]
    lexicon = lexicons.compile_lexicon(
        {"words": {"swearing": ["x"]}, "hidden": {"slur": hidden}, "rules": []}
    )
    english = ("blorps", "b l o r p", "bl0rp", "bl*rp", "blorrrp", "BLÓRP", "glim plurk")
    for text in (*english, "卜噜噜来了", "卜 噜噜", "卜*噜.噜"):
        assert "slur" in lexicon.hits(fold(text)), text


PIECES = ["you", "idiot", "废物", "微信", " ", "\u200b", "刷单", "+1 555 010 9999", "\ud800", "㎏"]


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_spans_are_in_the_text_and_in_order(pieces: list[str]) -> None:
    text = "".join(pieces)
    for language in LANGUAGES:
        found = lexicons.find_listed(text, language)
        assert all(0 <= piece.start < piece.end <= len(text) for piece in found)
        assert found == sorted(found, key=lambda piece: (piece.start, piece.end))


def test_files_are_small_licensed_and_show_no_slur() -> None:
    assert (DATA / "LICENSE.md").exists()
    assert (DATA / "ATTRIBUTION.md").exists()
    for language in LANGUAGES:
        text = (DATA / f"lexicon_{language}.toml").read_text(encoding="utf-8")
        hidden = text.split("[hidden]")[1].split("[[rules]]")[0]
        entries = re.findall(r'"([^"]+)"', hidden)
        assert len(entries) > 400
        assert all(re.fullmatch(r"\d{1,4}:[0-9a-f]{24}:\d", entry) for entry in entries)
    # Weights are small, and nothing is pickled.
    package = Path(crisis.__file__).parents[1]
    found = [path for folder in FOLDERS for path in (package / folder).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in found if path.suffix == ".weights") <= 1_800_000
    assert {path.suffix for path in found} <= {".weights", ".json", ".toml", ".md", ".txt"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_political_statements_are_found_and_mentions_of_the_same_words_are_not(
    language: Language,
) -> None:
    shares = dict[str, list[bool]]()
    for row in rows(HERE / f"dev_political_{language}.jsonl"):
        shares.setdefault(row["kind"], []).append(
            lexicons.find_political(row["text"], language) is not None
        )
    assert sum(shares["sensitive"]) / len(shares["sensitive"]) >= 0.85
    assert sum(shares["harmless"]) / len(shares["harmless"]) <= 0.2


def test_terms_and_signs_are_folded_and_kindness_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "terms.txt"
    path.write_text("# ours\nBlue Lagoon\n\n", encoding="utf-8")
    assert lexicons.read_terms(str(path), "en") == {"blue lagoon"}
    assert lexicons.read_terms("", "en") == frozenset()
    for written, folded in table("curation", "folded_spellings"):
        assert fold(written) == folded
    # Signs between letters are removed.
    assert fold_spelling("I  don’t\nknow…", "en") == "i dont.know..."
    assert fold_spelling("我 不*想 活了\n是", "zh") == "我不想活了.是"
    # A long kind message does not hide a short cruel one.
    kind, cruel = (
        "今天天气很好，我们去公园散步吧。",
        "你就是个没用的废物，长得又丑又蠢，谁看见你都恶心，滚远点，贱人。",
    )
    assert lexicons.offence(kind * 200, "zh") < load_classifier(lexicons.OFFENSIVE, "zh").low()
    assert lexicons.offence(kind * 200 + cruel * 4 + kind * 200, "zh") > 0.5


FOLDERS = (lexicons.OFFENSIVE, crisis.DATA, lexicons.POLITICAL_DATA)


@given(st.lists(st.text(st.characters(codec=None), max_size=60), min_size=1, max_size=8))
def test_a_score_depends_on_its_text_alone(texts: list[str]) -> None:
    for language in LANGUAGES:
        model = load_classifier(lexicons.POLITICAL_DATA, language)
        found = [model.score(text) for text in texts]
        hashed._READ.clear()
        hashed.read_together(texts[::-1], model.features)
        assert found[::-1] == [model.score(text) for text in texts[::-1]]
        for text, (score, start, end) in zip(texts, found, strict=True):
            assert 0 <= score <= 1
            assert 0 <= start <= end <= len(text)
            assert bool(score) == bool(text)


def test_scoring_needs_neither_scikit_learn_nor_scipy() -> None:
    code = (
        "import sys; from h2htalk.detect.safety.lexicons import offence; offence('a', 'zh'); "
        "print([name for name in ('sklearn', 'scipy', 'spacy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@given(st.text(st.characters(codec=None), max_size=40))
def test_folding_works_character_by_character(text: str) -> None:
    assert fold(text) == "".join(fold(character) for character in text)
    assert not any(
        unicodedata.category(character) in ("Cc", "Cs", "Cf") for character in fold(text)
    )


@given(st.text(max_size=30), st.sampled_from(["废物", "idiot"]), st.text(max_size=30))
def test_places_are_mapped_back(before: str, word: str, after: str) -> None:
    text = before + word + after
    start = len(fold(before))
    assert original_places(text, [(start, start + len(word))]) == [
        (len(before), len(before) + len(word))
    ]
    for language in LANGUAGES:
        first, end = spelling_place(text, language, 0, len(fold_spelling(text, language)))
        assert 0 <= first <= end <= len(text)
