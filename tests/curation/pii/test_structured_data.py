"""What is found in a message, where exactly, and what is left alone."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.curation.pii import find_spans
from h2htalk.curation.pii.structured import find_structured

HERE = Path(__file__).parent


def found(text: str, language: str) -> list[tuple[str, str]]:
    return [(span.type, text[span.start : span.end]) for span in find_structured(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("妈妈电话13812345678转告她", "zh", [("PHONE_NUMBER", "13812345678")]),
        ("打1381-2345-678找我", "zh", [("PHONE_NUMBER", "1381-2345-678")]),
        ("号码幺三八 一二三四 五六七八啊", "zh", [("PHONE_NUMBER", "幺三八 一二三四 五六七八")]),
        ("我1\u200b38123\u200b45678", "zh", [("PHONE_NUMBER", "1\u200b38123\u200b45678")]),
        ("座机(0571)8765-4321", "zh", [("PHONE_NUMBER", "(0571)8765-4321")]),
        ("证件号110105 19491231 002X", "zh", [("NATIONAL_ID", "110105 19491231 002X")]),
        ("卡号6222021001112345678不对", "zh", []),
        ("扣扣9-8-8-7-1-2-3-4", "zh", [("QQ", "9-8-8-7-1-2-3-4")]),
        ("13812345678", "zh", [("PHONE_NUMBER", "13812345678")]),
        ("我的QQ号13812345678", "zh", [("QQ", "13812345678")]),
        ("微信lin_8899，电话13812345678", "zh", [("WECHAT", "lin_8899"), ("PHONE_NUMBER", "13812345678")]),
        ("微信同号13812345678", "zh", [("PHONE_NUMBER", "13812345678")]),
        ("我q122316912，备注树洞", "zh", [("QQ", "122316912")]),
        ("加好友 2210093847 备注树洞", "zh", [("QQ", "2210093847")]),
        ("报修打4693 0175，没人接", "zh", [("PHONE_NUMBER", "4693 0175")]),
        ("办公室010-65123344-8012", "zh", [("PHONE_NUMBER", "010-65123344-8012")]),
        ("订单写的收货人13812345678", "zh", [("PHONE_NUMBER", "13812345678")]),
        ("健身房卡号VIP022767", "zh", [("ACCOUNT_NUMBER", "VIP022767")]),
        ("群里有人发 222.18.5.66", "zh", [("IP_ADDRESS", "222.18.5.66")]),
        ("ipv6:2001:db8:85a3::8a2e:370:7334", "en", [("IP_ADDRESS", "2001:db8:85a3::8a2e:370:7334")]),
        ("8LBX204. remember it", "en", [("LICENSE_PLATE", "8LBX204")]),
        ("my old beetle, YJB 442K", "en", [("LICENSE_PLATE", "YJB 442K")]),
        ("pay it to 20-44-91 88213301", "en", [("ACCOUNT_NUMBER", "20-44-91 88213301")]),
        ("my passport number, over the phone, ten times, 888179068", "en", [("ACCOUNT_NUMBER", "888179068")]),
        ("i read my card out on a bus. 4117 0316 8364 5680", "en", [("CREDIT_CARD", "4117 0316 8364 5680")]),
        ("patient: 38291047", "en", [("ACCOUNT_NUMBER", "38291047")]),
        ("23333333笑死", "zh", []),
        ("1710500000123", "en", []),
        ("moved to Boise, ID 83704", "en", []),
        ("京A·12345一辆白车", "zh", [("LICENSE_PLATE", "京A·12345")]),
        ("医保卡号A12345678", "zh", [("ACCOUNT_NUMBER", "A12345678")]),
        ("邮箱是lin88@qq.com吧", "zh", [("EMAIL_ADDRESS", "lin88@qq.com")]),
        ("邮箱lin88艾特163点com", "zh", [("EMAIL_ADDRESS", "lin88艾特163点com")]),
        ("看https://a.cn/x，好不好", "zh", [("URL", "https://a.cn/x")]),
        ("it's (212) 555-0142 ok", "en", [("PHONE_NUMBER", "(212) 555-0142")]),
        ("ring 07700 900 461", "en", [("PHONE_NUMBER", "07700 900 461")]),
        ("text me two one two five five five oh one four two", "en", None),
        ("my ssn: 219-09-9999", "en", [("NATIONAL_ID", "219-09-9999")]),
        ("ni number AB 12 34 56 C", "en", [("NATIONAL_ID", "AB 12 34 56 C")]),
        ("IBAN GB29 NWBK 6016 1331 9268 19.", "en", [("ACCOUNT_NUMBER", "GB29 NWBK 6016 1331 9268 19")]),
        ("passport X12345678", "en", [("ACCOUNT_NUMBER", "X12345678")]),
        ("number plate bd51 smr", "en", [("LICENSE_PLATE", "bd51 smr")]),
        ("mike dot r at gmail dot com", "en", [("EMAIL_ADDRESS", "mike dot r at gmail dot com")]),
        ("amy@gmail.com.Thanks", "en", [("EMAIL_ADDRESS", "amy@gmail.com")]),
        ("ip 192[.]168[.]1[.]5", "en", [("IP_ADDRESS", "192[.]168[.]1[.]5")]),
        ("from 2600:1700:abcd:10::3f", "en", [("IP_ADDRESS", "2600:1700:abcd:10::3f")]),
    ],
)
def test_the_value_and_nothing_else(text: str, language: str, expected: list[tuple[str, str]] | None) -> None:
    if expected is None:
        expected = [("PHONE_NUMBER", text.removeprefix("text me "))]
    assert found(text, language) == expected


@pytest.mark.parametrize("text", ["打12356", "希望24热线400-161-9995", "北京热线010-82951332"])
def test_public_lines_stay_in_a_chinese_text(text: str) -> None:
    assert found(text, "zh") == []


@pytest.mark.parametrize(
    "text", ["call 988", "call 1-800-273-8255 now", "samaritans on 116 123", "text 741741"]
)
def test_public_lines_stay_in_an_english_text(text: str) -> None:
    assert found(text, "en") == []


@pytest.mark.parametrize(
    "text", ["sigh....so", "ok.thanks", "laugh at times. It helps", "v1.5.2.3", "10:30:45", "notes.txt"]
)
def test_slips_versions_times_and_files_are_nothing(text: str) -> None:
    assert found(text, "en") == []


def test_an_order_number_that_passes_the_check_of_an_id_is_none() -> None:
    assert found("订单号11010519491231002X", "zh") == []
    assert found("身份证11010519491231002X", "zh") == [("NATIONAL_ID", "11010519491231002X")]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_development_set(language: str) -> None:
    rows = [
        json.loads(line)
        for line in (HERE / f"dev_structured_{language}.jsonl").read_text("utf-8").splitlines()
    ]
    gold: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    wrong = []
    for row in rows:
        wanted = {(span["start"], span["end"], span["type"]) for span in row["spans"]}
        got = {(span.start, span.end, span.type) for span in find_structured(row["text"], language)}
        gold[row["form"]] += len(wanted)
        hit[row["form"]] += len(wanted & got)
        wrong += [
            row["text"] for a, b, kind in got if not any(kind == k and a < e and s < b for s, e, k in wanted)
        ]
    assert hit["plain"] >= 0.99 * gold["plain"]
    assert hit["hostile"] >= 0.97 * gold["hostile"]
    assert len(wrong) <= 0.01 * gold.total()


_PIECES = st.sampled_from(
    [
        *"0138一幺o@.-·:/ \n\u200b（）京A微信qv加号",
        "http://",
        " at ",
        " dot ",
        "电话",
        "wx",
        "plate ",
        "ssn ",
        "one ",
        "\ud800",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=60).map("".join), st.sampled_from(["en", "zh"]))
def test_spans_lie_in_the_text_in_its_order_and_never_overlap(text: str, language: str) -> None:
    spans = find_structured(text, language)
    assert all(a.end <= b.start for a, b in itertools.pairwise(spans))
    assert all(0 <= span.start < span.end <= len(text) and 0.5 <= span.score <= 1 for span in spans)


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "1 ",
        "一",
        "a.",
        "a@b.com,",
        " at ",
        "13812345678,",
        "a.com/",
        "京A",
        "微信a1 ",
        "plate a1 ",
        "a dot ",
        "-at-",
        ")",
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_time_grows_with_the_length_alone(piece: str, language: str) -> None:
    def seconds(size: int) -> float:
        text = "http://a.b/" + piece * (size // len(piece))
        start = time.process_time()
        find_structured(text, language)
        return time.process_time() - start

    seconds(1_000)
    assert seconds(160_000) < 10 * seconds(40_000) + 0.5


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_message_of_two_million_characters_passes(language: str) -> None:
    start = time.process_time()
    spans = find_structured("我电话是13812345678，call (212) 555-0142 好吗？ok " * 45_000, language)
    assert len(spans) >= 45_000
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    "number", ["13226078843", "172 0374 2447", "0898-8925688", "6217003829585911301", "017740095127"]
)
@pytest.mark.parametrize("carrier", ["快递写{}", "京东上填的{}", "红包提到{}了", "{}，快递放门口"])
def test_words_of_an_errand_say_nothing_of_what_has_a_form_of_its_own(carrier: str, number: str) -> None:
    text = carrier.format(number)
    wanted = "CREDIT_CARD" if len(number) == 19 else "PHONE_NUMBER"
    assert [span.type for span in find_spans(text, "zh") if text[span.start : span.end] == number] == [wanted]
    # Of what has none they say that it is nobody's.
    assert find_spans(carrier.format("73104482219"), "zh") == []


@pytest.mark.parametrize(
    "text",
    [
        "我台湾的手机0912-345-678",
        "打02-2345-6789到台北",
        "香港号码9123 4567",
        "852-91234567这个是我",
        "手机 0912 345 678",
    ],
)
def test_numbers_of_taiwan_and_hong_kong_are_found_as_they_are_dialled_there(text: str) -> None:
    assert [span.type for span in find_spans(text, "zh")] == ["PHONE_NUMBER"]


@pytest.mark.parametrize(
    "text", ["05 12 19 28 33", "双色球05 12 19 28 33", "2024-0912345", "9123 4567 这两个数", "比例0912:345"]
)
def test_rows_of_numbers_are_no_phones_of_taiwan_or_hong_kong(text: str) -> None:
    assert [span for span in find_spans(text, "zh") if span.type == "PHONE_NUMBER"] == []
