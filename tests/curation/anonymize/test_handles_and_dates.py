"""Names of accounts and dates of birth: what is found, what stays, and the surrogates."""

from __future__ import annotations

import re
import time

import pytest

from h2htalk.curation.anonymize.engine.analyzer import find_spans
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import birth_date
from h2htalk.curation.anonymize.surrogates.numbers import keyed_random


def found(text: str, language: str, kind: str) -> list[str]:
    return [text[s.start : s.end] for s in find_spans(text, language) if s.type == kind]


@pytest.mark.parametrize(
    ("language", "text", "handles"),
    [
        ("en", "follow @quiet.heron_9 if you like birds", ["@quiet.heron_9"]),
        ("en", "I post as u/rainy_tuesday on there", ["u/rainy_tuesday"]),
        ("en", "discord: mothwing#0042", ["mothwing#0042"]),
        ("en", "she is mossy_lane77 on snapchat now", ["mossy_lane77"]),
        ("en", "@everyone dinner is at 7.30 on Instagram live", []),
        ("en", "mail me @ home", []),
        ("en", "Instagram makes me sad.Also the self-care posts", []),
        ("en", "did you see @rihanna at the super bowl", []),
        ("zh", "我的抖音号是heron_2210，欢迎关注", ["heron_2210"]),
        ("zh", "微博昵称叫爱睡觉的鲸鱼，你搜一下", ["爱睡觉的鲸鱼"]),
        ("zh", "刚关注了博主 @山里的风铃 ，很治愈", ["@山里的风铃"]),
        ("zh", "@你要先爱自己，别人才会爱你", []),
        ("zh", "抖音上有首歌叫孤勇者，我循环了一天", []),
        ("zh", "你在抖音叫什么，我忘了", []),
        ("en", "why did @dre.on.film like my story", ["@dre.on.film"]),
    ],
)
def test_handles(language: str, text: str, handles: list[str]) -> None:
    assert found(text, language, "HANDLE") == handles


@pytest.mark.parametrize(
    ("language", "text", "dates"),
    [
        ("en", "DOB: 04/11/1987", ["04/11/1987"]),
        ("en", "I was born on the 8th of May 1990 in Leeds", ["8th of May 1990"]),
        ("en", "my birthday is october 19", ["october 19"]),
        ("en", "she turns 30 on 2 June", ["2 June"]),
        ("en", "the exam is on 12 March 2024 and I was born to fail", []),
        ("en", "i was born the third of january 2001", ["third of january 2001"]),
        ("en", "b'day 30/10, now you know", ["30/10"]),
        ("en", "Rent is due on 01/02/2024.", []),
        ("en", "the form is due on march 3, 2025", []),
        ("en", "my son's june 5 2024 graduation", []),
        ("en", "my birthday is in two weeks, i work 24/7", []),
        ("zh", "我生日是3月14日", ["3月14日"]),
        ("zh", "1995年8月2号出生的", ["1995年8月2号"]),
        ("zh", "我爸农历正月初九生日", ["农历正月初九"]),
        ("zh", "2023年6月7日高考，我紧张得睡不着", []),
        ("zh", "2024年5月1日，男朋友跟我求婚了", []),
        ("zh", "2019年11月11日，手机坏了", []),
        ("zh", "今天是5月20日，他没有回我消息", []),
    ],
)
def test_dates_of_birth(language: str, text: str, dates: list[str]) -> None:
    assert found(text, language, "DATE_OF_BIRTH") == dates


@pytest.mark.parametrize(
    "value",
    [
        "04/11/1987",
        "05/06/88",
        "8th of May 1990",
        "OCT 19",
        "3月14日",
        "1995年8月2号",
        "农历正月初九",
        "19950802",
        "2/29/96",
    ],
)
def test_a_date_becomes_another_one_in_its_format(value: str) -> None:
    def shape(text: str) -> str:
        text = re.sub(r"[0-9]{1,2}(?:st|nd|rd|th)?(?![0-9])", "N", re.sub(r"[0-9]{4,8}", "Y", text))
        return re.sub(r"初?[正一二三四五六七八九十冬腊]{1,3}", "H", re.sub(r"(?i)[a-z]{3,9}", "M", text))

    made = {birth_date(keyed_random(b"key", value, str(n)), value) for n in range(20)}
    assert {shape(each) for each in made} == {shape(value)}
    assert made - {value}
    years = [int(year) for each in made for year in re.findall("(?:19|20)[0-9]{2}", each) if len(each) > 4]
    assert all(abs(year - 1990) < 12 for year in years)


def test_no_part_of_a_date_stays() -> None:
    made = [birth_date(keyed_random(b"key", str(n)), "third of January 2001") for n in range(30)]
    assert all("2001" not in each for each in made)
    assert sum(each.startswith("third") for each in made) < 5


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["@", "a_1 ", "insta ", "抖音叫", "born 1/1/", "生日1月", "@名", "a.", "月1"])
def test_time_is_proportional_to_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        start = time.process_time()
        find_spans(text, "zh")
        return time.process_time() - start

    seconds(1000)
    short, long = (min(seconds(n) for _ in range(2)) for n in (5_000, 18_000))
    assert long < 3.6 * 3 * short + 0.3
