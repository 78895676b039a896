"""People in Chinese chat: found by their whole form of address, told from ordinary words and public figures."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii.chinese import find_chinese
from h2htalk.curation.pii.spans import Span


def people(text: str, taken: tuple[Span, ...] = ()) -> list[str]:
    return [text[span.start : span.end] for span in find_chinese(text, taken) if span.type == "PERSON"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("我叫陈思琪，今年二十四", ["陈思琪"]),
        ("刘建国昨天又跟我吵了一架", ["刘建国"]),
        ("我跟马晓东、曹雪还有邓家豪合租", ["马晓东", "曹雪", "邓家豪"]),
        ("欧阳静说她周末也来", ["欧阳静"]),
        ("小王今天又请假了", ["小王"]),
        ("阿强你知道的，就我发小", ["阿强"]),
        ("李姐今天又在背后说我坏话", ["李姐"]),
        ("昨天张老师给我妈打电话了", ["张老师"]),
        ("建国叔给我爸送了两条鱼", ["建国叔"]),
        ("我女儿糖糖不肯去幼儿园", ["糖糖"]),
        ("跟Linda聊了一下午", ["Linda"]),
        ("我老板David Chen特别爱画饼", ["David Chen"]),
        ("我同学liu yang抄我作业", ["liu yang"]),
        ("玛丽亚今天过生日", ["玛丽亚"]),
        ("在日本认识的田中惠子给我寄了明信片", ["田中惠子"]),
        ("我姓温，最近睡不好", ["温"]),
    ],
)
def test_a_person_is_found_by_the_whole_form_of_address(text: str, found: list[str]) -> None:
    assert people(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "今天好高兴啊，终于考完了",
        "我只想安静地待一会儿",
        "老师说我再这样就叫家长",
        "老公又没回来吃饭",
        "妈妈，我好累",
        "刷小红书刷到三点",
        "向老师请教一下，对于妈妈来说太难了",
        "或许姐姐是对的，照顾弟弟太累",
        "周杰伦的歌陪我度过高中三年",
        "你看过《林小雨传》吗",
        "心理学家罗明远的理论很有意思",
        "谢谢您，祝您一切都好",
        "hello，iPhone又卡了",
    ],
)
def test_words_titles_and_public_figures_are_no_persons(text: str) -> None:
    assert people(text) == []


def test_a_public_name_that_is_introduced_is_a_private_person() -> None:
    assert people("我叫邓超，和那个演员同名") == ["邓超"]


def test_nothing_is_found_where_something_was_found_before() -> None:
    text = "微信wangfang，户名何丽娟"
    assert people(text, (Span(2, 10, "WECHAT", 0.9),)) == ["何丽娟"]


def test_characters_that_nobody_sees_do_not_hide_a_name() -> None:
    text = "我叫陈\u200b思琪，你呢"
    assert people(text) == ["陈\u200b思琪"]
