"""Chinese addresses: from the first word of an address to its last; a city alone is none."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii.chinese import find_chinese


def places(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_chinese(text) if span.type == "ADDRESS"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "我住在北京市朝阳区望京街道花家地南里12号楼3单元602，一个人住",
            "北京市朝阳区望京街道花家地南里12号楼3单元602",
        ),
        ("我住和平里小区6栋176，晚上一个人害怕", "和平里小区6栋176"),
        ("快递放翠湖名苑11幢1204门口就好", "翠湖名苑11幢1204"),
        ("我就在郑州市金水区花园路39号楼下等你", "郑州市金水区花园路39号"),
        ("住小河村四队，出门就是麦地", "小河村四队"),
        ("他要把我送回青山镇红旗村二组", "青山镇红旗村二组"),
        ("你要是难受就来观澜湖5栋，我一直在", "观澜湖5栋"),
        ("新华小区二十栋三单元四零一，别跑错了", "新华小区二十栋三单元四零一"),
        ("俺家住北 京 市 海 淀 区 学 院 路 3 7 号", "北 京 市 海 淀 区 学 院 路 3 7 号"),
        ("半夜十二点我坐在长江路与淮河路交叉口哭", "长江路与淮河路交叉口"),
        ("四川绵阳涪城区临园路东段72号，家里没人", "四川绵阳涪城区临园路东段72号"),
    ],
)
def test_an_address_has_exact_edges(text: str, found: str) -> None:
    assert places(text) == [found]


@pytest.mark.parametrize(
    "text",
    [
        "想去上海玩三天",
        "我在北京工作，压力好大",
        "海淀区房价太高了",
        "住在城中村，隔音很差",
        "我住三楼，楼上很吵",
        "知道8号要考试吗",
        "我在马路上走了3号线那么远",
        "看不到出路，心里很苦",
        "小区门口新开了奶茶店",
    ],
)
def test_cities_floors_and_words_that_end_alike_are_none(text: str) -> None:
    assert places(text) == []
