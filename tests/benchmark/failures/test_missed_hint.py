"""A hint that small talk answers is found; an answer to it, and small talk without a hint, are left alone."""

from __future__ import annotations

import pytest

from h2htalk.benchmark.failures.known import Known
from h2htalk.benchmark.failures.missed_hint import missed_hint
from h2htalk.data.dialogue import Turn

AWAKE = "I haven't slept since Tuesday. Anyway, what's for dinner?"
QUIET = "The house is so quiet since Dad's funeral. Did you see the match?"
GRANDMOTHER = "奶奶走了以后，家里一个人，空荡荡的。你吃了吗"
TIRED = "最近总是睡不着。今天喝什么奶茶？"


@pytest.mark.parametrize(
    ("message", "language", "reply", "missed"),
    [
        (AWAKE, "en", "Pasta tonight! Extra cheese.", True),
        (AWAKE, "en", "Dinner can wait. What's keeping you up?", False),
        (AWAKE, "en", "Pasta, and since Tuesday is a long time: have you slept at all?", False),
        (QUIET, "en", "What a goal! Two nil in the last minute.", True),
        (QUIET, "en", "I'm sorry, that must be heavy. Tell me about him.", False),
        ("I won the race! Did you see the match?", "en", "What a goal! Two nil.", False),
        (GRANDMOTHER, "zh", "吃了，红烧肉，可香啦！", True),
        (GRANDMOTHER, "zh", "想她了吧，我陪着你。", False),
        (TIRED, "zh", "当然是芋泥波波，三分糖！", True),
        (TIRED, "zh", "又睡不着？奶茶先别喝了。", False),
        ("今天天气真好，你吃了吗", "zh", "吃了，红烧肉！", False),
    ],
)
def test_missed_hints(message: str, language: str, reply: str, missed: bool) -> None:
    assert missed_hint(reply, Known(history=(Turn("user", message),)), language) is missed


def test_only_the_last_message_counts() -> None:
    turns = (Turn("user", QUIET), Turn("companion", "I'm sorry."), Turn("user", "Thanks. Shall we watch the match?"))
    assert not missed_hint("Yes! Popcorn is ready.", Known(history=turns), "en")
    assert not missed_hint("Hello!", Known(), "en")
