"""What makes a raw conversation a dialogue."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.gather.cleaning import LONGEST_MESSAGE, breaks_off, clean
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, plain_text
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Role, Turn

USER, COMPANION = "user", "companion"


def raw(*messages: tuple[Role, str]) -> RawDialogue:
    return RawDialogue(messages)


def refused(dialogue: RawDialogue) -> tuple[str, dict[str, int]]:
    with pytest.raises(RefusedItem) as caught:
        clean(dialogue, "en")
    return caught.value.reason, caught.value.evidence


@pytest.mark.parametrize(
    ("dialogue", "reason"),
    [
        (raw(), "empty"),
        (raw((USER, "Hi"), (COMPANION, " \n ")), "empty"),
        (raw((USER, "Hi"), (COMPANION, "\u202e\u2066")), "empty"),
        (raw((USER, "Hi"), (USER, "Anyone?")), "one_speaker"),
        (raw((USER, "Hi"), (COMPANION, "Hel\x00lo")), "control"),
        (raw((USER, "Hi \ud83d"), (COMPANION, "Hello")), "encoding"),
        (raw((USER, "Hi"), (COMPANION, "I know, and the")), "truncated"),
    ],
)
def test_refused_conversations(dialogue: RawDialogue, reason: str) -> None:
    assert refused(dialogue)[0] == reason


def test_the_longest_message() -> None:
    assert clean(raw((USER, "x" * LONGEST_MESSAGE), (COMPANION, "Hello")), "en").messages[1].content == "Hello"
    half = "x" * (LONGEST_MESSAGE // 2)
    assert refused(raw((USER, half), (USER, half), (COMPANION, "Hello")))[0] == "too_long"
    two_megabytes = raw((USER, "x" * 2_000_000), (COMPANION, "Hello"))
    assert refused(two_megabytes) == ("too_long", {"message": 1, "characters": 2_000_000})


def test_messages_in_a_row_become_one() -> None:
    found = clean(raw((USER, "Hi "), (USER, "there"), (COMPANION, "Hello.")), "en")
    assert found.messages == (Turn("user", "Hi\nthere"), Turn("companion", "Hello."))


def test_control_characters_are_removed_and_counted() -> None:
    found = clean(raw((USER, "a\u202eb\u2066c\r\nd\re\x1b[2Jf"), (COMPANION, "Hello.\u200f")), "en")
    assert found.messages[0].content == "abc\nd\ne [2Jf"
    assert found.removed == {"control": 1, "direction": 3}


def test_zero_width_characters_stay_for_anonymize() -> None:
    assert clean(raw((USER, "1\u200b3\u200d8"), (COMPANION, "Yes.")), "en").messages[0].content == "1\u200b3\u200d8"


WHOLE = [
    ("en", "Thank you, bye"),
    ("en", "ok thanks so much :("),
    ("zh", "那好吧：（"),
    ("en", "Take care! Yours, Dr. A"),
    ("en", "I hope this helps.\n\nRobin, LPC"),
    ("en", "See https://example.com/page"),
    ("zh", "好的谢谢"),
    ("zh", "加油！(ง•̀_•́)ง"),
    ("zh", "（微笑）我一直都在的哦😊"),
]
CUT = [
    ("en", "I hear you, and I"),
    ("en", "We could look at your"),
    ("en", "There are three things:"),
    ("en", "He said ("),
    ("zh", "首先，你可以试着每天早点睡，然后慢慢"),
    ("zh", "我觉得，"),
    ("zh", "你可以先告诉我：“"),
]
BEFORE = {"en": "I see. Tell me more.", "zh": "我明白。说说看。"}


def ended(language: Language, text: str) -> list[Turn]:
    before = BEFORE[language]
    return [Turn("user", before), Turn("companion", before), Turn("user", before), Turn("companion", text)]


@pytest.mark.parametrize(("language", "text"), WHOLE)
def test_complete_endings(language: Language, text: str) -> None:
    assert not breaks_off(ended(language, text), language)


@pytest.mark.parametrize(("language", "text"), CUT)
def test_incomplete_endings(language: Language, text: str) -> None:
    assert breaks_off(ended(language, text), language)


def test_a_speaker_who_never_closes_sentences() -> None:
    free = [
        Turn("user", "hey"),
        Turn("companion", "how are you"),
        Turn("user", "Not well."),
        Turn("companion", "oh no"),
    ]
    for text in ("that is what I was afraid of", "i know,"):
        assert not breaks_off([*free, Turn("user", "x."), Turn("companion", text)], "en")
    talk = [Turn("companion", "在的呀怎么了"), Turn("user", "我今天一个人去看了一场很好看的电影")]
    assert not breaks_off([Turn("user", "我想你了亲爱的朋友"), *talk], "zh")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("<p>One.</p><p>Two&#8217;s</p>", "One.\n\nTwo’s"),
        ("a<br/>b<BR>c", "a\nb\nc"),
        ("<b>bold</b> &lt;b&gt;", "bold <b>"),
        ("x<script>alert(1)</script>y<!-- no -->z", "xyz"),
        ("a <b>b</b> \ud800", "a <b>b</b> \ud800"),
        ("I <3 you, 1 < 2 > 0", "I <3 you, 1 < 2 > 0"),
        ("see <https://example.com>", "see <https://example.com>"),
        ('<a href="x">İstanbul</a><style>p{}</style>!', "İstanbul!"),
    ],
)
def test_plain_text_of_html(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@pytest.mark.parametrize("piece", ["<", "<!--", "<script>", "&", "\n "])
def test_hostile_html_takes_linear_time(piece: str) -> None:
    start = time.process_time()
    plain_text("<" + piece * (1_000_000 // len(piece)))
    assert time.process_time() - start < 3
