"""What nobody sees in a text is no difference; quotes and widths are one in the folded form alone."""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from h2htalk.text.typography import folded_text, seen_text

LINES = (
    "\r\n",
    "\r",
    "\r\r\n",
    "\x0b",
    "\x0c",
    "\x1e",
    "\x85",
    "\u2028",
    "\u2029",
    " \n",
    "\t\n",
    "\u3000\r\n",
)
SPACES = (
    "\u00a0",
    "\u1680",
    "\u2002",
    "\u2009",
    "\u200a",
    "\u202f",
    "\u205f",
    "\u2800",
    "\u3000",
    "\t",
    "  ",
    " \t ",
)
INVISIBLE = (
    *(
        "\x00",
        "\x08",
        "\x1b",
        "\x7f",
        "\x9f",
        "\u00ad",
        "\u034f",
        "\u061c",
        "\u115f",
        "\u180e",
        "\u200b",
        "\u200c",
    ),
    *(
        "\u200d",
        "\u200e",
        "\u202e",
        "\u2060",
        "\u2064",
        "\u2069",
        "\u3164",
        "\ufe0f",
        "\ufeff",
        "\ufff9",
    ),
    *("\U000e0041", "\U000e0100"),
)


def code(sign: str) -> str:
    return "+".join(f"{ord(one):04x}" for one in sign)


TEXT = (
    "Oh no, the café's closed.\n\nStay with me — 我在这儿，别怕。\n- 深呼吸 and a well-worn word 🙂"
)


@pytest.mark.parametrize("end", LINES, ids=code)
def test_every_line_end_is_one(end: str) -> None:
    assert seen_text(TEXT.replace("\n", end)) == TEXT


@pytest.mark.parametrize("space", SPACES, ids=code)
def test_every_space_is_one(space: str) -> None:
    assert seen_text(TEXT.replace(" ", space)) == TEXT
    assert seen_text(f"{space}{TEXT}{space}\n") == TEXT


@pytest.mark.parametrize("sign", INVISIBLE, ids=code)
def test_invisible_characters_are_left_out_wherever_they_stand(sign: str) -> None:
    assert seen_text(sign.join(TEXT)) == TEXT
    assert seen_text(f"{sign}{TEXT} {sign}{sign}\n{sign}") == TEXT


def test_letters_are_composed_and_hyphens_that_look_alike_are_one() -> None:
    assert seen_text(unicodedata.normalize("NFD", TEXT)) == TEXT
    assert (
        seen_text("cafe\u200b\u0301 well\u2011worn well\u2010worn \u212b \uf9b4")
        == "café well-worn well-worn Å 領"
    )


def test_the_joiner_of_an_emoji_stays() -> None:
    """A family of two and two people are two pictures; elsewhere the joiner shows nothing."""
    assert seen_text("👩\u200d👧 a\u200db 👩\u200d\u200d\u200d") == "👩\u200d👧 ab 👩"


def test_what_a_reader_sees_stays() -> None:
    for text in (TEXT, "a\n\nb\n c", "“quoted” ‘so’ don’t", "ＡＢＣ，。", "1\u20445 … – —", "ﬁt"):
        assert seen_text(text) == text


def references(language: str) -> list[str]:
    return [
        scenario.reference
        for scenario in load_split("mini").scenarios
        if scenario.language == language
    ]


HALF = str.maketrans("，。！？；：（）“”‘’、", ",.!?;:()\"\"'',")
CURLY = str.maketrans({"'": "\u2019", '"': "\u201d"})
WIDE = {code: chr(code + 0xFEE0) for code in range(0x21, 0x7F)}
CHANGES: dict[str, Callable[[str], str]] = {
    "curly": lambda text: text.translate(CURLY),
    "straight": lambda text: re.sub("[“”]", '"', re.sub("[‘’]", "'", text)),
    "backtick": lambda text: re.sub("['‘’]", "`", text),
    "primes": lambda text: re.sub("['’]", "\u2032", text),
    "corners": lambda text: (
        text.replace("“", "「").replace("”", "」").replace("‘", "『").replace("’", "』")
    ),
    "angles": lambda text: text.replace("“", "«").replace("”", "»"),
    "half": lambda text: text.translate(HALF),
    "half with spaces": lambda text: re.sub(
        r"([,.!?;:])(?=[^\n0-9])", r"\1 ", text.translate(HALF)
    ),
    "full": lambda text: text.translate(WIDE),
    "dashes": lambda text: text.replace("——", "--").replace(" — ", "—"),
    "dots": lambda text: text.replace("……", "...").replace("…", "..."),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_reference_in_another_typography_is_the_same_folded(name: str) -> None:
    for language in ("en", "zh"):
        if (name, language) in (("half with spaces", "en"), ("backtick", "zh")):
            continue  # a space after each mark is seen between English words
        for text in references(language):
            other = CHANGES[name](text)
            assert folded_text(seen_text(other), language) == folded_text(
                seen_text(text), language
            ), other


PAIRS = [
    ("en", "It's “fine” — really…", 'It’s "fine" -- really...'),
    ("en", "a word—another word", "a word – another word"),
    ("en", "pages 3–5", "pages 3-5"),
    ("en", "Ｗｈｙ？ （ok）", "Why? (ok)"),
    ("en", "ﬁne. . . yes", "fine... yes"),
    ("zh", "他说：“好”，然后……走了。", '他说: "好", 然后...走了.'),
    ("zh", "他说：“好”，然后……走了。", "他说︓「好」，然后。。。走了。".replace("︓", "：")),
    ("zh", "我有 3 个 apple，花了 3.5 元", "我有3个apple,花了3.5元"),
    ("zh", "等等——别走（先坐下）", "等等--别走(先坐下)"),
    ("zh", "《背影》、《故乡》", "<背影>, <故乡>"),
    ("zh", "第３章～第５章", "第3章~第5章"),
]


@pytest.mark.parametrize(("language", "text", "other"), PAIRS)
def test_two_ways_to_write_are_one(language: str, text: str, other: str) -> None:
    assert seen_text(text) != seen_text(other)
    assert folded_text(seen_text(text), language) == folded_text(seen_text(other), language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Plain words, and a well-worn word."),
        ("zh", "别怕，我在。\n- 版本v1.2，看example.com，well-worn word"),
    ],
)
def test_folding_leaves_numbers_names_and_words_alone(language: str, text: str) -> None:
    folded = folded_text(text, language)
    for part in ("well-worn", "v1.2", "example.com", "Plain words, and a"):
        assert (part in folded) == (part in text)


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(ConfigError, match="xx"):
        folded_text("text", "xx")


SIGNS = st.text(
    st.sampled_from(
        [*"ab1我。，.,'\"“’-—… \n\r\t", "é", "e", "\u0301", "👩", *INVISIBLE, *SPACES[:10]]
    ),
    max_size=30,
)


@example(text="—\r1", language="en")
@example(text="a \u0301", language="zh")
@example(text="~.)….-", language="en")
@example(text="·.\t。\r·《", language="zh")
@given(text=SIGNS | st.text(max_size=60), language=st.sampled_from(["en", "zh"]))
def test_both_forms_are_their_own_form(text: str, language: str) -> None:
    seen = seen_text(text)
    assert seen_text(seen) == seen
    folded = folded_text(seen, language)
    assert folded_text(seen_text(folded), language) == folded


@pytest.mark.parametrize(
    "sign",
    ["\r", "\u200d", " ", "\n", ". ", "-", "—", "\u0301", "👩\u200d", "\u00a0\n", ".", "1 –"],
)
def test_time_is_linear_in_a_text_of_one_sign(sign: str) -> None:
    text = sign * 200_000
    start = time.process_time()
    for language in ("en", "zh"):
        folded_text(seen_text(text), language)
    assert time.process_time() - start < 10
