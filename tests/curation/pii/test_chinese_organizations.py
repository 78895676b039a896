"""Chinese organisations: by name, with or without a word that says what they are."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii.chinese import find_chinese


def firms(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_chinese(text) if span.type == "ORGANIZATION"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("我在杭州云帆科技有限公司做测试", "杭州云帆科技有限公司"),
        ("入职星河传媒三个月，我已经想跑了", "星河传媒"),
        ("我在鼎盛地产卖房子", "鼎盛地产"),
        ("我考上南昌大学了！！！", "南昌大学"),
        ("市一中竞争太激烈", "市一中"),
        ("我在市第三人民医院看的心理科", "市第三人民医院"),
        ("每周日去恩典堂做礼拜", "恩典堂"),
        ("我加入了追风跑团，每周三夜跑", "追风跑团"),
        ("我就职于山河智能，常年出差", "山河智能"),
        ("我在华为上班，天天加班", "华为"),
        ("东胜区人民法院的传票来了", "东胜区人民法院"),
    ],
)
def test_an_organisation_is_found_by_its_name(text: str, found: str) -> None:
    assert firms(text) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "我在一家互联网公司做运营",
        "医院人好多，排了三小时",
        "我在家上班，公司楼下有只流浪猫",
        "教会我怎么爱自己的是我奶奶",
        "心理咨询中心一般怎么收费",
        "从失败中学到很多",
        "一天十二小时，大学生好难",
        "我会学会接受教育",
    ],
)
def test_kinds_of_organisations_are_no_names(text: str) -> None:
    assert firms(text) == []
