"""Replies against the schedule and broken plans: each found, and what keeps to the schedule left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from h2htalk.benchmark.failures.known import Known
from h2htalk.benchmark.failures.planning_fragmentation import planning_fragmentation
from h2htalk.data.scenario import ScheduleEntry


def day(*lines: str, now: str = "") -> Known:
    return Known(schedule=tuple(ScheduleEntry(line[:5], line[6:]) for line in lines), current_activity=now)


ENGLISH = day(
    "07:30 Run along the river",
    "10:00 Prune the quince at the Hallam house",
    "15:00 Call with the paving client",
    "19:00 Free",
    "22:30 Sleep",
)
CHINESE = day("06:30 沿江晨跑", "09:30 在工作室改图纸", "15:00 去苗圃挑乌桕", "19:30 整理植物笔记", "23:00 睡觉")
PRUNING = replace(ENGLISH, current_activity="10:20 Pruning the quince at the Hallam house")
NURSERY = replace(CHINESE, current_activity="15:20，在苗圃挑乌桕")
SPLIT = replace(ENGLISH, request="Split the 15:00 call into steps; the client leaves early.")
SPLIT_ZH = replace(CHINESE, request="把15:00这段拆细一点")
OVERVIEW = Known(request="Ren is up at seven, works until noon and sleeps at ten.")


@pytest.mark.parametrize(
    ("known", "language", "reply"),
    [
        (ENGLISH, "en", "At three I'm off swimming with my sister."),
        (ENGLISH, "en", "I'll be pruning the quince at 15:30, ring me then."),
        (ENGLISH, "en", "I'm free and easy at 3 pm, come over."),
        (ENGLISH, "en", "07:30 Breakfast with pancakes\n10:00 Prune the quince"),
        (PRUNING, "en", "I'm lying on the beach with a novel."),
        (SPLIT, "en", "Sure, I will think about it!"),
        (SPLIT, "en", "1. 15:00 Greet the client\n2. 14:30 Talk about stone"),
        (SPLIT, "en", "1. 15:00-16:00 Greet the client\n2. 15:30-16:30 Talk about stone"),
        (SPLIT, "en", "1. 15:00 Greet the client\n2. 19:30 Talk about stone"),
        (SPLIT, "en", "1. 15:00 Greet the client\n2. 15:00 Talk about stone"),
        (OVERVIEW, "en", "A lovely long day for Ren."),
        (OVERVIEW, "en", "07:00 Gets up\n22:00 Sleeps\n12:00 Stops work"),
        (CHINESE, "zh", "下午三点我在泳池游泳呢。"),
        (CHINESE, "zh", "我早上九点半去挑乌桕。"),
        (NURSERY, "zh", "我在家里打游戏，刚赢一局。"),
        (SPLIT_ZH, "zh", "好的，我会安排的。"),
        (SPLIT_ZH, "zh", "1. 15:00，到苗圃门口\n2. 20:10，挑三棵乌桕"),
    ],
)
def test_a_fragmented_plan_is_found(known: Known, language: str, reply: str) -> None:
    assert planning_fragmentation(reply, known, language)


@pytest.mark.parametrize(
    ("known", "language", "reply"),
    [
        (ENGLISH, "en", "At three I have that call with the client, then I'm all yours."),
        (ENGLISH, "en", "Half past seven is my run, so ring before that."),
        (ENGLISH, "en", "At seven I could come over and watch the film with you."),  # the evening is free
        (ENGLISH, "en", "That sounds like a long day. Did you eat?"),
        (ENGLISH, "en", "Your train leaves at three, doesn't it?"),
        (PRUNING, "en", "I'm up a ladder in the quince, sap to the elbows."),
        (SPLIT, "en", "1. 15:00 Greet the client\n2. 15:30 Talk about stone\n3. 16:30 Agree a price"),
        (SPLIT, "en", "1. 15:00-15:30 Greet the client\n2. 15:30-16:30 Talk about stone"),
        (OVERVIEW, "en", "07:00 Gets up\n12:00 Stops work\n22:00 Sleeps"),
        (Known(), "en", "See you at three!"),
        (CHINESE, "zh", "三点我要去苗圃挑树，晚点回你。"),
        (CHINESE, "zh", "早一点睡，别熬夜。"),
        (NURSERY, "zh", "我在苗圃，正看一棵歪脖子的。"),
        (SPLIT_ZH, "zh", "1. 15:00，到苗圃门口\n2. 15:40，挑三棵乌桕"),
    ],
)
def test_a_reply_that_keeps_to_the_plan_is_left_alone(known: Known, language: str, reply: str) -> None:
    assert not planning_fragmentation(reply, known, language)


def test_a_block_may_reach_to_the_last_entry_that_the_request_names() -> None:
    wide = replace(SPLIT, request="Work out everything from 15:00 to bed at 22:30.")
    plan = "1. 15:00 Call\n2. 20:00 Cook together"
    assert planning_fragmentation(plan, SPLIT, "en")
    assert not planning_fragmentation(plan, wide, "en")
