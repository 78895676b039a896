"""The recognisers on hand-written cases (`sets/cases.jsonl`), on hostile texts and in time; normalised texts."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from h2htalk.curation.anonymize.chinese import recognizer as chinese
from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue, find_spans
from h2htalk.curation.anonymize.english import recognizer as english
from h2htalk.curation.anonymize.spans import TYPES, Span, normalize_text, plain, resolve_overlaps
from h2htalk.curation.anonymize.structured.reading import deobfuscate

CASTS = Path(chinese.__file__).parents[1] / "public_figures/casts"

# By what `by` of a case says; `all` is the whole of `find_spans`.
FINDERS: dict[str, Callable[[str, str], list[Span]]] = {
    "all": find_spans,
    "structured": find_spans,
    "english": lambda text, _: english.find_names([text], [()])[0],
    "chinese": lambda text, _: chinese.find_names([text], [()])[0],
}


def test_every_case_is_found_with_exact_edges_and_nothing_else() -> None:
    """A case with a `type` looks at spans of that type alone."""
    wrong = []
    for line in (Path(__file__).parent / "sets" / "cases.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        text = case["text"]
        spans = FINDERS[case["by"]](text, case["language"])
        kinds = (case["type"],) if case["type"] else TYPES[:-3] if case["by"] == "structured" else TYPES
        found = [[s.type, text[s.start : s.end]] for s in spans if s.type in kinds]
        if found != case["found"]:
            wrong.append((case["about"], text, found))
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        ("stardew valley got me through winter, i married sebastian obvs", "en", []),
        ("played stardew valley with my brother sebastian all night", "en", ["sebastian"]),
        ("i married sebastian obvs", "en", ["sebastian"]),
        ("is beck the cbt one or the act one", "en", []),
        ("my therapist dr Beck likes cbt", "en", ["dr Beck"]),
        ("someone at church gave me a leaflet", "en", []),
        ("ms hill called my mum", "en", ["ms hill"]),
        ("泰坦尼克号重映 杰克还是死了", "zh", []),
        ("我和杰克去看了泰坦尼克号", "zh", ["杰克"]),
        ("杰克还是没回我消息", "zh", ["杰克"]),
        ("孙颖莎4比1 莎莎太稳了", "zh", []),
        ("莎莎昨天没来上班", "zh", ["莎莎"]),
        ("Full house at Christmas: Jesse and Danny fight again", "en", ["Jesse", "Danny"]),
        ("我追繁花，宏庆要跟我离婚", "zh", ["宏庆"]),
        ("I love Taylor Swift. Travis broke up with me last night", "en", ["Travis"]),
        ("隔壁的猫叫吴佳怡睡不着", "zh", ["吴佳怡"]),
        ("我家狗叫旺财", "zh", []),
    ],
)
def test_a_name_is_public_where_its_text_says_of_what(text: str, language: str, names: list[str]) -> None:
    assert [text[span.start : span.end] for span in find_spans(text, language)] == names


def test_where_public_people_are_replaced_no_phrase_that_tells_of_a_cast_is() -> None:
    texts = ["Stardew Valley made me cry, and Carl Rogers too"]
    (found,) = find_in_dialogue(texts, "en", keep_public=False).spans
    assert [texts[0][span.start : span.end] for span in found] == ["Carl Rogers"]


def test_every_line_of_the_casts_has_phrases_that_tell_of_it_and_names() -> None:
    for file in sorted(CASTS.glob("*.txt")):
        lines = [line.split(": ") for line in file.read_text("utf-8").splitlines()]
        assert len(lines) > 600
        assert {len(line) for line in lines} == {2}
        told, names = ([part for line in lines for part in line[side].split("|")] for side in (0, 1))
        assert min(map(len, told)) > 1
        assert [part for part in told if part != part.strip().lower() or part.startswith("#")] == []
        assert all(name == name.strip() for name in names)


_PIECES = st.sampled_from(
    [*"0138一幺o@.-·:/ \n\u200b（）京A微信qv加号，《\ud800\0'\u202e🙂", "http://", " at ", " dot ", "电话",
     "wx", "plate ", "ssn ", "one ", "陈思琪", "小王", "我叫", " oh kevin ", "12号楼", "花园路", "医院", "Kevin",
     "I work at ", "my name is ", "Sarah", "12 Oak St", "Hospital", "'s", ", "]
)  # fmt: skip


@given(
    st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=30).map("".join),
    st.sampled_from(sorted(FINDERS)),
    st.sampled_from(["en", "zh"]),
)
def test_spans_lie_in_the_text_in_its_order_and_never_overlap(text: str, by: str, language: str) -> None:
    spans = FINDERS[by](text, language)
    assert all(0 <= s.start < s.end <= len(text) and 0.5 <= s.score <= 1 for s in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))


_REPEATED = {
    "structured": ["1", "1 ", "一", "a.", "a@b.com,", " at ", "13812345678,", "a.com/", "京A", "微信a1 ",
                   "plate a1 ", "a dot ", "-at-", ")", "1然后", "one ", "yao", "a b ", "1 ... ", "bravo 1 ",
                   "四个6", "l1O", "1冒号"],
    "english": ["Ab, ", "work at The A of the ", "one two ", "my shop, A ", "3 The ", "1 ", "12 Oak Street, ", "A ",
                "apt 4, ", "12 Xylo ", "St. ", "Hall ", "a",
                "Ann-", "Bo'", "o'-", "a--b"],
    "chinese": ["李", "花园路1号", "12", "大学", "老王，", "·阿", "《", "Li ", " ", "\u200b", "市一中在", "住东门",
                "4-2-701", "县乡村", "12号，", "在我住"],
    "all": ["@", "a_1 ", "抖音叫", "born 1/1/", "生日1月", "@名", "(", "《张", "我叫张伟，电话13812345678。"],
}  # fmt: skip


def cpu_seconds(by: str, text: str, language: str) -> float:
    start = time.process_time()
    FINDERS[by](text, language)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("by", _REPEATED)
def test_time_grows_with_the_length_alone(by: str) -> None:
    """Eight times the text, at most some twenty times the time, where a quadratic rule takes sixty-four."""
    slow = []
    for piece in _REPEATED[by]:
        spent = []
        for length in (2_500, 20_000):
            text = "手机 plate http://a.b/ " + piece * (length // len(piece))
            language = "zh" if by == "chinese" or not piece.isascii() else "en"
            spent.append(min(cpu_seconds(by, text, language) for _ in range(2)))
        if spent[1] > 20 * spent[0] + 0.5:
            slow.append((piece, spent))
    assert slow == []


SPANS = st.builds(
    lambda at, length, kind, score: Span(at, at + length, kind, score),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from(TYPES),
    st.sampled_from([0.5, 0.6, 0.9]),
)


@given(st.lists(SPANS, max_size=12), st.randoms(use_true_random=False))
def test_every_character_stays_marked_and_once_in_any_order_of_finding(found: list[Span], rng: random.Random) -> None:
    settled = resolve_overlaps(found)
    assert resolve_overlaps(rng.sample(found, len(found))) == settled
    marked = [at for span in settled for at in range(span.start, span.end)]
    assert sorted(marked) == sorted({at for span in found for at in range(span.start, span.end)})
    assert settled == sorted(settled)


def test_of_overlapping_spans_one_stays() -> None:
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "QQ", 0.9)]) == [Span(0, 5, "QQ", 0.9)]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 3, "ADDRESS", 0.6)]) == [Span(0, 5, "PERSON", 0.6)]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "ADDRESS", 0.6)]) == [Span(0, 5, "ADDRESS", 0.6)]
    # Names are not looked for in what was found before.
    text = "mail Sarah at sarah@x.example"
    taken = [Span(14, len(text), "EMAIL_ADDRESS", 1.0)]
    assert english.find_names([text], [taken]) == [[Span(5, 10, "PERSON", 0.8)]]
    text = "微信wangfang，户名何丽娟"
    (people,) = chinese.find_names([text], [[Span(2, 10, "WECHAT", 0.9)]])
    assert [text[s.start : s.end] for s in people] == ["何丽娟"]


def test_other_shapes_of_a_character_read_as_the_plain_one() -> None:
    for given_text, expected in table("curation", "shapes_of_characters"):
        assert plain(given_text) == expected

    for kept in ("一二三幺", "今天。好", "《活着》", "éß", "高兴😀", "\ud800\x00\u202e"):
        assert plain(kept) == kept


@given(st.text(alphabet=st.characters(codec=None)))
def test_all_strings_of_a_reading_have_one_length_and_places_lie_in_the_text(text: str) -> None:
    assert len(plain(text)) == len(text)
    reading = normalize_text(text)
    assert len({len(reading.visible), len(reading.text), len(reading.digits)}) == 1
    for place in range(len(reading.text)):
        start, end = reading.original_span(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert text[start] == reading.visible[place]


def test_unseen_characters_and_han_digits() -> None:
    reading = normalize_text("a1\u200b\ufe0f2\ufe0f\u20e3b")
    assert reading.text == "a12b"
    assert reading.original_span(1, 3) == (1, 7)
    # Han digits and lone letters O read as digits only for numbers.
    reading = normalize_text("幺三八 1o2O你")
    assert reading.text == "幺三八 1o2o你"
    assert reading.digits == "138 1020你"
    # A disguise reads as what it means.
    for text, language, meant in table("curation", "disguises"):
        found = deobfuscate(normalize_text(text), language)
        assert (found and found[0].text) == meant, text


_WORDS = ["然后", "不要", "四个6", "下划线", "bravo ", "one ", "double ", " then ", "yao ", "ab"]
_SIGNS = st.sampled_from([*"0138一幺洞两拐l oI~·、_.-😊", *_WORDS])


@given(st.lists(_SIGNS, max_size=40).map("".join), st.sampled_from(["en", "zh"]))
def test_every_character_of_what_is_meant_stands_for_a_place_of_the_text(text: str, language: str) -> None:
    normalized = normalize_text(text)
    found = deobfuscate(normalized, language)
    if found is not None:
        meant, signs = found
        assert meant.text == "".join(sign.text for sign in signs)
        assert all(0 <= sign.start < sign.end <= len(normalized.text) for sign in signs)
        assert signs == sorted(signs, key=lambda sign: sign.start)
