"""Names that no list of words shows: parents by their child, elders by their number, names called out."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii.chinese import find_chinese


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("果果妈又来接孩子", "果果妈"),
        ("房东陈太涨租", "陈太"),
        ("村里的赵老四走了", "赵老四"),
        ("糖糖发烧了", "糖糖"),
        ("小满不理我", "小满"),
        ("“念真，起床啦”", "念真"),
        ("跟阿Sam分手了", "阿Sam"),
        ("经理Linda姐骂我", "Linda姐"),
        ("José请我吃饭", "José"),
    ],
)
def test_finds_the_name(text: str, name: str) -> None:
    assert [text[s.start : s.end] for s in find_chinese(text) if s.type == "PERSON"] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "多陪陪妈妈吧",
        "常常妈妈不在家",
        "小时候妈妈打我",
        "谢谢奶奶",
        "小雨下了一夜",
        "我太累了",
        "王老大不小了",
    ],
)
def test_words_of_every_day_are_no_names(text: str) -> None:
    assert [text[s.start : s.end] for s in find_chinese(text) if s.type == "PERSON"] == []
