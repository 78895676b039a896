"""What a disguised text means, and where each of its characters came from."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.pii.disguise import unveil
from h2htalk.curation.pii.normalize import read
from h2htalk.curation.pii.structured import find_structured

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("text", "language", "meant"),
    [
        ("138然后2736后面是4512", "zh", "138 2736 4512"),
        ("138哈2736哈4512", "zh", "138 2736 4512"),
        ("幺三八洞两七三六六四勾", "zh", "13802736649"),
        ("yao san ba 2736 4512", "zh", "1 3 8 2736 4512"),
        ("29再接813四个6", "zh", "29 8136666"),
        ("lin下划线88", "zh", "lin_88"),
        ("I38O", "en", "1380"),
        ("two double five, oh nine", "en", "255, 09"),
        ("bravo delta five one sierra mike romeo", "en", "bd51smr"),
        ("B as in boy, D for dog, 5 1", "en", "bd51"),
        ("205 and then 555", "en", "205 555"),
        ("p l a t e", "en", "plate"),
        ("404 ... 555 ... 0100", "en", "404 555 0100"),
        ("what a lovely day", "en", None),
        ("今天好累", "zh", None),
        ("one two three four five breathe", "en", None),
    ],
)
def test_a_disguise_reads_as_what_it_means(text: str, language: str, meant: str | None) -> None:
    found = unveil(read(text), language)
    if meant is None:
        assert found is None
    else:
        assert found is not None
        assert found.reading.text == meant


_PIECES = st.sampled_from(
    [
        *"0138一幺洞两拐l oI~·、_.-😊",
        "然后",
        "不要",
        "四个6",
        "下划线",
        "bravo ",
        "one ",
        "double ",
        " then ",
        "yao ",
        "ab",
    ]
)


@given(st.lists(_PIECES, max_size=40).map("".join), st.sampled_from(["en", "zh"]))
def test_every_character_of_what_is_meant_stands_for_a_place_of_the_text(text: str, language: str) -> None:
    reading = read(text)
    found = unveil(reading, language)
    if found is not None:
        size = len(found.reading.text)
        assert len(found.starts) == len(found.ends) == len(found.edited) == size
        assert all(0 <= a < b <= len(reading.text) for a, b in zip(found.starts, found.ends, strict=True))
        assert list(found.starts) == sorted(found.starts)


@pytest.mark.parametrize(
    "piece", ["1然后", "哈1", "one ", "yao", "a b ", "1 ... ", "a~", "bravo 1 ", "四个6", "l1O", "1冒号"]
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_row_of_disguises_takes_time_in_proportion_to_its_length(piece: str, language: str) -> None:
    def seconds(length: int) -> float:
        text = "手机 plate " + piece * (length // len(piece))
        start = time.process_time()
        spans = find_structured(text, language)
        taken = time.process_time() - start
        assert all(0 <= a.start < a.end <= len(text) for a in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))
        return taken

    seconds(500)
    # Four times as long, and room for a busy machine: a quadratic rule takes sixteen times.
    assert seconds(9_000) < 4 * 2 * seconds(2_250) + 0.3


@pytest.mark.parametrize("language", ["en", "zh"])
def test_numbers_that_are_nobodys_stay(language: str) -> None:
    rows = [
        json.loads(line)
        for line in (HERE / f"negatives_structured_{language}.jsonl").read_text("utf-8").splitlines()
    ]
    marked = [row["text"] for row in rows if find_structured(row["text"], language)]
    assert len(marked) <= 0.02 * len(rows), marked


@pytest.mark.parametrize(
    ("text", "language", "kind", "value"),
    [
        ("你微信搜不到我？奇怪，lin_8899，再试试", "zh", "WECHAT", "lin_8899"),
        ("小号2751131034大号665992992，都是我的Q", "zh", "QQ", "2751131034"),
        ("护照丢了，补办的新号是E06511168", "zh", "ACCOUNT_NUMBER", "E06511168"),
        ("陕~A~6~H~8~L~3，面包车", "zh", "LICENSE_PLATE", "陕~A~6~H~8~L~3"),
        ("外婆家的电话我还会背，6715680", "zh", "PHONE_NUMBER", "6715680"),
        ("someone clipped me in the car park, W792 XLN", "en", "LICENSE_PLATE", "W792 XLN"),
        ("callthehouse6175343866notmycell", "en", "PHONE_NUMBER", "6175343866"),
        ("the clerk says social? 2 1 9 then 09 then 9987", "en", "NATIONAL_ID", "2 1 9 then 09 then 9987"),
        ("my ip: 81 dot 2 dot 69 dot one forty two", "en", "IP_ADDRESS", "81 dot 2 dot 69 dot one forty two"),
    ],
)
def test_a_cue_may_stand_clauses_away(text: str, language: str, kind: str, value: str) -> None:
    found = [(span.type, text[span.start : span.end]) for span in find_structured(text, language)]
    assert (kind, value) in found
