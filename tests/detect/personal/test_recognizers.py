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

from h2htalk.data.languages import Language
from h2htalk.detect.personal.chinese import recognizer as chinese
from h2htalk.detect.personal.engine.analyzer import find_in_dialogue, find_spans
from h2htalk.detect.personal.english import recognizer as english
from h2htalk.detect.personal.spans import TYPES, Span, normalize_text, plain, resolve_overlaps
from h2htalk.detect.personal.structured.reading import deobfuscate
from support.tables import table

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
        if case["type"]:
            kinds = (case["type"],)
        elif case["by"] == "structured":
            kinds = TYPES[:-3]
        else:
            kinds = TYPES
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
def test_a_name_is_public_where_its_text_says_of_what(
    text: str, language: str, names: list[str]
) -> None:
    assert [text[span.start : span.end] for span in find_spans(text, language)] == names


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("我身份证是110105199003074513", "110105199003074513"),  # check digit
        ("我妈的身份证号：32010619650412001X", "32010619650412001X"),
        ("身份证号我记得是 110105 19900307 4513 对吧", "110105 19900307 4513"),
        ("身份证号 11010519491231002 ,帮我看看", "11010519491231002"),  # a digit lacks
        ("身份证号写成1101051990030745133了", "1101051990030745133"),  # a digit twice
        ("我的身份证号码是440305199802301234你记一下", "440305199802301234"),  # a 30th of February
        ("身分證號碼 440305199802301235", "440305199802301235"),
        ("sfz 440305199802301235", "440305199802301235"),
        ("身份证后四位1234", None),
        ("身份证复印件要两份，快递单号是123456789012345678", None),
        ("身份证要办，预约编号202403151234567", None),
        ("这个订单号110105199003074513", None),  # no word for an id
        ("打印出来是110105199003074513", None),
    ],
)
def test_a_mistyped_resident_id_is_found_beside_a_word_for_one_alone(
    text: str, number: str | None
) -> None:
    ids = [
        text[span.start : span.end] for span in find_spans(text, "zh") if span.type == "NATIONAL_ID"
    ]
    assert ids == ([] if number is None else [number])


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        # A letter's end.
        (
            "I can't do this any more.\n\nBest,\nMara Oduya\nSent from my iPhone",
            "en",
            ["Mara Oduya"],
        ),
        ("see you\n\nCheers\ntilda", "en", ["tilda"]),
        ("Love,\nYour anxious friend", "en", []),
        ("Yours sincerely,\nThe Whole Team", "en", []),
        ("the list:\n\nBest\nWorst\nMiddle", "en", []),
        ("Thanks,\nlol", "en", []),
        # A mail that is quoted.
        (
            "> On 3 May Tobias Feldmann <t.feldmann@web.de> wrote:\n> you are too much",
            "en",
            ["Tobias Feldmann"],
        ),
        ("On 3 May 2021, at 10:12, Ines Calloway wrote:\n> hi", "en", ["Ines Calloway"]),
        ("On 3 May Amnesty International <news@amnesty.org> wrote:\n> sign", "en", []),
        ("From: Support Team <support@web.de>", "en", []),
        # Markdown.
        ("Her name is **Mara** _Oduya_ and she is my best friend.", "en", ["Mara** _Oduya"]),
        ("my sister __Tilda__ called", "en", ["Tilda"]),
        ("_sigh_ I _really_ hate _Mondays_", "en", []),
        ("open my_mara_file and snake_case", "en", []),
        # A web address that holds a name.
        ("Mara Oduya at maraoduya.com", "en", ["Mara Oduya", "maraoduya"]),
        ("mara oduya (oduya.com)", "en", ["mara oduya", "oduya"]),
        ("my wife Amelia has a page, ameliabakes.com", "en", ["Amelia", "amelia"]),
        ("Ford ford.com", "en", []),
        ("Etsy etsy.com", "en", []),
        # Plants.
        ("Rosemary is dying on the sill", "en", []),
        ("Rosemary is dead :( forgot to water it", "en", []),
        ("Rosemary is dying in hospice", "en", ["Rosemary"]),
        ("my aunt Ivy repotted the fern, so much soil everywhere", "en", ["aunt Ivy"]),
        # People of a school, and what is done there.
        ("问问学长学姐", "zh", []),
        ("张学长和李学姐都说好", "zh", ["张学长", "李学姐"]),
        ("我更想去面对面咨询中心", "zh", []),
        ("把孩子送回幼儿园", "zh", []),
        ("孩子在送回幼儿园的路上哭", "zh", []),
    ],
)
def test_a_name_is_found_by_the_form_of_a_text_and_words_like_it_stay(
    text: str, language: str, names: list[str]
) -> None:
    spans = [s for s in find_spans(text, language) if s.type in ("PERSON", "ORGANIZATION")]
    assert [text[span.start : span.end] for span in spans] == names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "my number: oh-seven-seven-oh-oh nine-hundred one-two-three",
            "oh-seven-seven-oh-oh nine-hundred one-two-three",
        ),
        (
            "my account number is eight eight one two three four five six",
            "eight eight one two three four five six",
        ),
        ("plus four four seven seven zero zero nine zero zero one two three", None),
        ("I live at forty two Linden Street", "forty two Linden Street"),
        ("we live at number nine, Elm Grove", "number nine, Elm Grove"),
        ("i counted one two three four five six seven eight nine ten and breathed", ""),
        ("two plus four is six and two plus two is four", ""),
        ("we walked two long blocks down Main Street", ""),
        ("one Wall Street guy", ""),
    ],
)
def test_numbers_in_english_words_are_personal_where_their_figures_would_be(
    text: str, value: str | None
) -> None:
    """None: all of the text is one."""
    expected = text if value is None else value
    assert [text[span.start : span.end] for span in find_spans(text, "en")] == (
        [expected] if expected else []
    )


@pytest.mark.parametrize(
    ("text", "language", "kind"),
    [
        ("call me on oh seven seven double zero, nine hundred one two three", "en", "PHONE_NUMBER"),
        (
            "my card is four one one one, one one one one, one one one one, one one one one",
            "en",
            "CREDIT_CARD",
        ),
        ("I was born on the third of May nineteen eighty five", "en", "DATE_OF_BIRTH"),
        ("我的手机号是一三八零零一三八零零零", "zh", "PHONE_NUMBER"),
        ("打我电话 幺三八，零零幺三，八零零零", "zh", "PHONE_NUMBER"),
        ("我电话是壹叁捌零零壹叁捌零零零", "zh", "PHONE_NUMBER"),
        ("我的QQ是三五七八二九一四六", "zh", "QQ"),
        # What the page says that stays.
        ("my zip is nine four one one zero", "en", None),
        ("the pin is one nine eight four", "en", None),
        ("my flat is twenty-two B", "en", None),
        ("我数一二三四五六七八九十", "zh", None),
    ],
)
def test_numbers_in_words_are_what_the_page_says(
    text: str, language: Language, kind: str | None
) -> None:
    assert [span.type for span in find_spans(text, language)] == ([kind] if kind else [])


def test_where_public_people_are_replaced_no_phrase_that_tells_of_a_cast_is() -> None:
    texts = ["Stardew Valley made me cry, and Carl Rogers too"]
    (found,) = find_in_dialogue(texts, "en", keep_public=False).spans
    assert [texts[0][span.start : span.end] for span in found] == ["Carl Rogers"]


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        # A frame is enough where people talk of themselves.
        ("so i finally blocked dmitri. felt good for like ten minutes", "en", ["dmitri"]),
        (
            "u remember when i told u about that girl shanelle? yeah shes pregnant",
            "en",
            ["shanelle"],
        ),
        ("we named her Clementine after all. 7 lb 2 oz, everybody fine", "en", ["Clementine"]),
        ("mr. fitzwilliam my old piano teacher died today", "en", ["mr. fitzwilliam"]),
        ("ok let introduce my self jim roger from ca", "en", ["jim roger"]),
        ("别叫我全名赖芷若啦，听着像要挨骂", "zh", ["赖芷若"]),
        # A name that is a word too, where neither a verb nor an object can stand.
        ("lady at church named sue", "en", ["sue"]),
        ("my sister joy is coming", "en", ["sister joy"]),
        ("My boss, will, is mean", "en", ["will"]),
        ("make my sister happy, I gave my sister hope", "en", []),
        ("My boss, will you listen, is mean. My brother will help", "en", []),
        ("You bake your nan's cake in a lazy oven, you live with Tom, you laugh", "en", ["Tom"]),
        # What a thing is named by, and an abbreviation.
        ("I cried when the ship named Hope went down", "en", []),
        ("a boat called Grace", "en", []),
        ("the man I'm seeing is named Grace, he laughs about it", "en", ["Grace"]),
        ("I told HR about it. HR called me in again", "en", []),
        ("my best friend CJ called me", "en", ["CJ"]),
        # None is one by itself beside things, works and animals.
        ("my hamster sir nibbles died this morning", "en", []),
        ("the roomba is named dave and he's stuck under the couch", "en", []),
        ("frodo had sam and i have you lol", "en", []),
        ("My waist trainer, my lashes, my wig, my landlord: everything is too tight", "en", []),
        ("my friend will call me when my sister may come", "en", []),
        (
            "deshpande aunty locks the gate, sister rings on sundays, his father downstairs",
            "en",
            [],
        ),
        ("我养了只仓鼠，名字叫年糕，跑轮能跑一晚上", "zh", []),
        ("have you thought about what the name will be", "en", []),
        ("my name is will btw", "en", ["will"]),
    ],
)
def test_a_frame_makes_a_name_private_in_personal_talk(
    text: str, language: str, names: list[str]
) -> None:
    spans = find_in_dialogue([text], language, talk="personal").spans[0]
    assert [text[span.start : span.end] for span in spans if span.type == "PERSON"] == names


def test_what_a_dialogue_writes_small_behind_an_article_is_no_name() -> None:
    """A word of no list opened a sentence, and was then replaced in every message."""
    texts = [
        "Wool for the hat, bleed the radiators.",
        "Radiators and Ms Adeyemi, then.",
        "The radiators?",
    ]
    spans = find_in_dialogue(texts, "en").spans
    named = spans[1][0]
    assert list(map(len, spans)) == [0, 1, 0]
    assert texts[1][named.start : named.end] == "Ms Adeyemi"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pitch the tent at 3, coast path in the evening light", []),
        ("i live at 12, coast path", [("ADDRESS", "12, coast path")]),
        ("we sat at 3, Coast Path", [("ADDRESS", "3, Coast Path")]),
        ("Inventory day at Harlow & Finch so no mercy", [("ORGANIZATION", "Harlow & Finch")]),
    ],
)
def test_what_stands_behind_at_is_a_street_or_a_firm_by_its_form(
    text: str, expected: list[tuple[str, str]]
) -> None:
    (spans,) = find_in_dialogue([text], "en").spans
    assert [(span.type, text[span.start : span.end]) for span in spans] == expected


def test_a_hospital_is_found_where_somebody_has_an_interview_there() -> None:
    """Beside messages that lower the classifier's vote; in public talk it needs that vote."""
    texts = [
        "got the job interview!!! Thursday 10:30 at Bristol Royal Infirmary, ward clerk",
        "Daniel, that's wonderful! You sent that application in the rain, remember?",
        "haha yes, soaked. Can you help me plan the day? train from Bath takes 15 min but they're always late",
        "Let's count back: 10:30 interview, be at reception by 10:15, so arrive 9:40 at the latest.",
    ]
    personal = find_in_dialogue(texts, "en").spans[0]
    public = find_in_dialogue(texts, "en", talk="public").spans[0]
    assert [texts[0][span.start : span.end] for span in personal] == ["Bristol Royal Infirmary"]
    assert public == ()


@pytest.mark.parametrize(
    ("text", "language", "personal", "public"),
    [
        ("my wife Sara left me last week", "en", 1, 1),  # both votes
        (
            "so i finally blocked dmitri. felt good for like ten minutes",
            "en",
            1,
            0,
        ),  # a frame alone
        ("Ralph was so kind to us when the house burned down", "en", 1, 0),  # the classifier alone
        ("我男朋友叫李思琪", "zh", 1, 1),
        ("别叫我全名赖芷若啦，听着像要挨骂", "zh", 1, 0),
    ],
)
def test_public_talk_needs_both_votes_and_personal_talk_either(
    text: str, language: str, personal: int, public: int
) -> None:
    assert len(find_in_dialogue([text], language).spans[0]) == personal  # the default
    assert len(find_in_dialogue([text], language, talk="public").spans[0]) == public


@pytest.mark.parametrize(
    ("text", "language", "names"),
    [
        ("Good evening. I cried when Robin Williams died", "en", ["Robin Williams"]),
        ("the book is on the wall in the kitchen, and hey jude came on", "en", []),
        ("john lewis sofa, fleetwood mac and one direction", "en", []),
        ("freud would have a field day, and so would Mr Rogers", "en", ["freud", "Mr Rogers"]),
        ("can i call childline or the samaritans", "en", []),
        ("周杰伦的新歌我循环了一晚上", "zh", ["周杰伦"]),
        ("弗洛伊德说梦是愿望的满足", "zh", ["弗洛伊德"]),
        ("汉密尔顿量表24分，我不懂什么意思", "zh", []),
        ("五月天的歌，甄嬛传我看了八遍，养了只仓鼠和哈士奇", "zh", []),
    ],
)
def test_of_what_everybody_knows_names_of_people_alone_are_replaced(
    text: str, language: str, names: list[str]
) -> None:
    (found,) = find_in_dialogue([text], language, keep_public=False).spans
    assert [text[span.start : span.end] for span in found] == names
    (kept,) = find_in_dialogue([text], language).spans
    assert kept == ()


def test_every_line_of_the_casts_has_phrases_that_tell_of_it_and_names() -> None:
    for file in sorted(CASTS.glob("*.txt")):
        lines = [line.split(": ") for line in file.read_text("utf-8").splitlines()]
        assert len(lines) > 600
        assert {len(line) for line in lines} == {2}
        told, names = (
            [part for line in lines for part in line[side].split("|")] for side in (0, 1)
        )
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
def test_spans_lie_in_the_text_in_its_order_and_never_overlap(
    text: str, by: str, language: str
) -> None:
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
        language = "zh" if by == "chinese" or not piece.isascii() else "en"
        short, long = (
            "手机 plate http://a.b/ " + piece * (length // len(piece)) for length in (2_500, 20_000)
        )
        most = 20 * min(cpu_seconds(by, short, language) for _ in range(2)) + 0.5
        spent = cpu_seconds(by, long, language)
        if spent > most:  # the machine may have been at other work
            spent = min(spent, cpu_seconds(by, long, language))
        if spent > most:
            slow.append((piece, spent, most))
    assert slow == []


SPANS = st.builds(
    lambda at, length, kind, score: Span(at, at + length, kind, score),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from(TYPES),
    st.sampled_from([0.5, 0.6, 0.9]),
)


@given(st.lists(SPANS, max_size=12), st.randoms(use_true_random=False))
def test_every_character_stays_marked_and_once_in_any_order_of_finding(
    found: list[Span], rng: random.Random
) -> None:
    settled = resolve_overlaps(found)
    assert resolve_overlaps(rng.sample(found, len(found))) == settled
    marked = [at for span in settled for at in range(span.start, span.end)]
    assert sorted(marked) == sorted({at for span in found for at in range(span.start, span.end)})
    assert settled == sorted(settled)


def test_of_overlapping_spans_one_stays() -> None:
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "QQ", 0.9)]) == [
        Span(0, 5, "QQ", 0.9)
    ]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 3, "ADDRESS", 0.6)]) == [
        Span(0, 5, "PERSON", 0.6)
    ]
    assert resolve_overlaps([Span(0, 5, "PERSON", 0.6), Span(0, 5, "ADDRESS", 0.6)]) == [
        Span(0, 5, "ADDRESS", 0.6)
    ]
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
def test_every_character_of_what_is_meant_stands_for_a_place_of_the_text(
    text: str, language: str
) -> None:
    normalized = normalize_text(text)
    found = deobfuscate(normalized, language)
    if found is not None:
        meant, signs = found
        assert meant.text == "".join(sign.text for sign in signs)
        assert all(0 <= sign.start < sign.end <= len(normalized.text) for sign in signs)
        assert signs == sorted(signs, key=lambda sign: sign.start)


@pytest.mark.parametrize(
    ("language", "text", "value", "kind"),
    [
        ("en", "i park at 61.40317, -7.55102 every night", "61.40317, -7.55102", "ACCOUNT_NUMBER"),
        ("zh", "我就在东经101.0417 北纬29.9055这里", "东经101.0417 北纬29.9055", "ACCOUNT_NUMBER"),
        ("en", "grid ref SX 214 907, come get me", "SX 214 907", "ACCOUNT_NUMBER"),
        ("zh", "案号(2023)青塘民初3172号，还没开庭", "(2023)青塘民初3172号", "ACCOUNT_NUMBER"),
        ("zh", "我的学号2020Q0318814", "2020Q0318814", "ACCOUNT_NUMBER"),
        ("zh", "单号ZT88000312Q4431一直没动", "ZT88000312Q4431", "ACCOUNT_NUMBER"),
        ("en", "hospital number's TK7 0031 442B", "TK7 0031 442B", "ACCOUNT_NUMBER"),
        ("en", "Case no M-3172/23-CIV they said", "M-3172/23-CIV", "ACCOUNT_NUMBER"),
        ("en", "parcel number is H4471 2039 56", "H4471 2039 56", "ACCOUNT_NUMBER"),
        (
            "en",
            "my landline is five five five oh two eight three",
            "five five five oh two eight three",
            "PHONE_NUMBER",
        ),
        ("zh", "扣扣号还是那个 402211987653", "402211987653", "QQ"),
        ("zh", "楼下那辆车是苏Q·6K3I2", "苏Q·6K3I2", "LICENSE_PLATE"),
        ("en", "discord is Moss Cat#4417", "Moss Cat#4417", "HANDLE"),
    ],
)
def test_a_code_beside_a_word_for_it_is_found_whole(
    language: str, text: str, value: str, kind: str
) -> None:
    found = [(text[span.start : span.end], span.type) for span in find_spans(text, language)]
    assert found == [(value, kind)]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "ping 127.0.0.1 or 192.168.1.1 on the router"),
        ("zh", "路由器192.168.1.1进不去"),
        ("en", "pi is 3.14159, 2.71828 is e"),
        ("en", "order no. 42 please, haha"),
        ("en", "a case number of five digits is long"),
        ("zh", "快递单号能查吗"),
        ("zh", "快递单号YT7712093348211到哪了"),
        ("en", "48.858222, 2.294500"),
    ],
)
def test_numbers_that_are_nobodys_stay(language: str, text: str) -> None:
    assert find_spans(text, language) == []
