"""What makes a raw conversation a dialogue."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.gather.formats import LONGEST_MESSAGE, RawDialogue, RefusedItem, breaks_off, clean, plain_text
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


def test_messages_in_a_row_become_one_and_control_characters_are_removed_and_counted() -> None:
    found = clean(raw((USER, "Hi "), (USER, "a\u202eb\u2066c\r\nd\re\x1b[2Jf"), (COMPANION, "Hello.\u200f")), "en")
    assert found.messages == (Turn("user", "Hi\nabc\nd\ne [2Jf"), Turn("companion", "Hello."))
    assert found.removed == {"control": 1, "direction": 3}
    # Zero-width characters stay for anonymize.
    assert clean(raw((USER, "1\u200b3\u200d8"), (COMPANION, "Yes.")), "en").messages[0].content == "1\u200b3\u200d8"


BEFORE = {"en": "I see. Tell me more.", "zh": "我明白。说说看。"}


@pytest.mark.parametrize(
    ("language", "text", "cut"),
    [
        ("en", "ok thanks so much :(", False),
        ("zh", "那好吧：（", False),
        ("en", "Take care! Yours, Dr. A", False),
        ("en", "I hope this helps.\n\nRobin, LPC", False),
        ("zh", "加油！(ง•̀_•́)ง", False),
        ("zh", "（微笑）我一直都在的哦😊", False),
        ("en", "I hear you, and I", True),
        ("en", "There are three things:", True),
        ("en", "He said (", True),
        ("zh", "首先，你可以试着每天早点睡，然后慢慢", True),
        ("zh", "我觉得，", True),
    ],
)
def test_complete_and_incomplete_endings(language: Language, text: str, cut: bool) -> None:
    said = [(USER, BEFORE[language]), (COMPANION, BEFORE[language]), (USER, BEFORE[language]), (COMPANION, text)]
    assert breaks_off([Turn(role, content) for role, content in said], language) == cut


def test_a_speaker_who_never_closes_sentences() -> None:
    free = [Turn("user", "hey"), Turn("companion", "how are you"), Turn("user", "Bad."), Turn("companion", "oh no")]
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
