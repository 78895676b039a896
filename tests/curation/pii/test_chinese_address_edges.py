"""Chinese addresses from their first word to their last."""

from __future__ import annotations

import time

import pytest

from h2htalk.curation.pii.chinese import find_chinese


def found(text: str, kind: str) -> list[str]:
    return [text[span.start : span.end] for span in find_chinese(text) if span.type == kind]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("老家在恩施州利川市谋道镇鱼木寨12号", "恩施州利川市谋道镇鱼木寨12号"),
        ("上门的话走和谐家园北区后门，好停车", "和谐家园北区后门"),
        ("他家住新北市板橋區文化路二段182巷3弄5號4樓", "新北市板橋區文化路二段182巷3弄5號4樓"),
        ("我租在城北村三组47号二楼右手第三间", "城北村三组47号二楼右手第三间"),
        ("住在东风路127号附3号", "东风路127号附3号"),
        ("快递写天府三街69号新希望国际A座2301就行", "天府三街69号新希望国际A座2301"),
        ("幸福路12号，3号楼，2单元，501", "幸福路12号，3号楼，2单元，501"),
        ("新家云锦东方4-2-701", "云锦东方4-2-701"),
        ("住临江门12-8的那年", "临江门12-8"),
        ("来接我，云山路77号，我喝多了", "云山路77号"),
    ],
)
def test_an_address_reaches_to_the_door(text: str, address: str) -> None:
    assert found(text, "ADDRESS") == [address]


@pytest.mark.parametrize(
    "text", ["我住5楼，你呢", "体重110-120斤", "她家在农村", "在人民公园南门等你", "比分3-100"]
)
def test_what_leads_to_no_door_stays(text: str) -> None:
    assert found(text, "ADDRESS") == []


@pytest.mark.parametrize("piece", ["住东门", "4-2-701", "县乡村", "12号，", "在我住"])
def test_a_long_text_takes_linear_time(piece: str) -> None:
    """Ten times the text, at most some twenty times the time."""
    spent = []
    for length in (4_000, 40_000):
        text = (piece * length)[:length]
        start = time.process_time()
        find_chinese(text)
        spent.append(time.process_time() - start)
    assert spent[1] < 25 * spent[0] + 0.5
