"""Loops, repeated replies, and replies as if nothing had been said: each found, and what resembles it left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from h2htalk.benchmark.failures.known import Known
from h2htalk.benchmark.failures.memory_collapse import memory_collapse
from h2htalk.data.dialogue import Turn


def talk(*contents: str) -> Known:
    """A conversation that the user begins."""
    return Known(history=tuple(Turn("companion" if n % 2 else "user", one) for n, one in enumerate(contents)))


SISTER = talk("My sister Ana got the job!", "That is wonderful news about your sister, truly.", "She screamed.")
BAKER = talk("My name is Jo, I work nights at the bakery.", "Flour to the elbows then.", "Always.")
NIGHT = talk("我叫小周，在医院上夜班", "夜班辛苦了，记得喝热水呀。", "嗯嗯")
CLINT = Known(memories=("The user keeps a sourdough starter called Clint.",))
ORCHID = Known(memories=("用户在阳台养了一盆兰花，叫小白",))


@pytest.mark.parametrize(
    ("known", "language", "reply"),
    [
        (SISTER, "en", "I miss you so much. I miss you so much. I miss you so much."),
        (SISTER, "en", "always here for you and always here for you and always here for you and"),
        (SISTER, "en", "That is wonderful news about your sister, really."),
        (SISTER, "en", "That is wonderful news about your sister, truly. Good night!"),
        (SISTER, "en", "Hello! Nice to meet you, how can I help you today?"),
        (BAKER, "en", "Always is a long time. What do you do for work?"),
        (CLINT, "en", "The mountains were lovely this morning, snow on every ridge and a fox by the gate."),
        (NIGHT, "zh", "我一直都会陪着你的，我一直都会陪着你的，我一直都会陪着你的。"),
        (NIGHT, "zh", "夜班辛苦啦，记得喝热水呀。"),
        (NIGHT, "zh", "你叫什么名字呀？"),
        (NIGHT, "zh", "初次见面，很高兴认识你！"),
        (ORCHID, "zh", "今天楼下超市打折，我买了三斤苹果和半只烤鸭，路上还遇见邻居遛狗。"),
    ],
)
def test_collapse_is_found(known: Known, language: str, reply: str) -> None:
    assert memory_collapse(reply, known, language)


@pytest.mark.parametrize(
    ("known", "language", "reply"),
    [
        (SISTER, "en", "Screamed! Then tonight you scream with her."),
        (SISTER, "en", "Good night, sleep well."),
        (SISTER, "en", "You are not alone in this, and you are not a burden, to her or to me."),
        (talk("Hi", "Good night, sleep well.", "You too"), "en", "Good night, sleep well."),
        (CLINT, "en", "How is Clint, has the starter forgiven you for the cold kitchen?"),
        (talk("Hello there!"), "en", "Nice to meet you! What is your name?"),
        (NIGHT, "zh", "哈哈哈哈哈哈哈，夜班快下了吧？"),
        (ORCHID, "zh", "小白开花了没有？我总惦记你阳台上那盆兰花。"),
        (talk("你好"), "zh", "初次见面，怎么称呼你呀？"),
    ],
)
def test_what_resembles_it_is_left_alone(known: Known, language: str, reply: str) -> None:
    assert not memory_collapse(reply, known, language)


@pytest.mark.parametrize(
    ("language", "ask", "said"),
    [
        ("en", "Sorry, what did you say?", "That is wonderful news about your sister, truly."),
        ("zh", "没听清，再说一遍？", "夜班辛苦了，记得喝热水呀。"),
    ],
)
def test_a_reply_may_be_repeated_when_the_user_asks(language: str, ask: str, said: str) -> None:
    assert memory_collapse(said, talk("Ana! 夜班!", said, "Oh. 哦。"), language)
    assert not memory_collapse(said, talk("Ana! 夜班!", said, ask), language)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_few_replies_of_real_conversations_are_found(language: str) -> None:
    """MemoryBank's replies know their conversation: at most one in twenty may be a false alarm."""
    if "H2HTALK_DATA" not in os.environ:
        pytest.skip("H2HTALK_DATA is not set")
    path = Path(os.environ["H2HTALK_DATA"]) / "raw" / f"memorybank_{language}.json"
    found, replies = 0, 0
    for person in json.loads(path.read_text(encoding="utf-8")).values():
        for day in person["history"].values():
            turns: list[Turn] = []
            for exchange in day:
                turns.append(Turn("user", exchange["query"]))
                found += memory_collapse(exchange["response"], Known(history=tuple(turns)), language)
                turns.append(Turn("companion", exchange["response"]))
                replies += 1
    assert replies > 300
    assert found / replies < 0.05
