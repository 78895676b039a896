"""Surrogates: of the same kind, the same within a dialogue, others in every other, and never one of its own values."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.surrogates.alike_names import (
    given_list,
    latin_gender,
    latin_group,
    other_latin,
    renamed,
    word_lists,
)
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import (
    Surrogates,
    birth_date,
    has_valid_check_digit,
    keyed_random,
    normalized_value,
    number,
)
from h2htalk.curation.anonymize.surrogates.operators import replace_values
from h2htalk.detect.personal.engine.analyzer import find_in_dialogue
from h2htalk.detect.personal.spans import TYPES, Span
from h2htalk.detect.personal.values.dialogue_values import (
    DialogueData,
    KnownValues,
    home_number,
    name_parts,
)
from support.tables import table

KEY = b"k" * 32


def written(surrogates: Surrogates, text: str, spans: Sequence[Span]) -> str:
    return replace_values([text], [spans], surrogates, {}, KEY)[0][0]


def replaced(language: str, *texts: str, key: bytes = KEY) -> list[str]:
    data = find_in_dialogue(texts, language)
    made = Surrogates(key, texts, data)
    return [written(made, text, spans) for text, spans in zip(texts, data.spans, strict=True)]


def made_for(
    spans: Sequence[Span], text: str, language: str = "zh", key: bytes = KEY
) -> dict[tuple[str, str], str]:
    """The surrogate of each span's type and value in a dialogue of one text."""
    surrogates = Surrogates(
        key, [text], DialogueData((tuple(spans),), KnownValues([]), language, ())
    )
    return {
        (s.type, text[s.start : s.end]): surrogates.of(s.type, text[s.start : s.end]) for s in spans
    }


def stand_in(value: str, kind: str, language: str = "zh", key: bytes = KEY) -> str:
    return made_for([Span(0, len(value), kind, 0.9)], value, language, key)[kind, value]


def test_names_keep_their_links_forms_and_case() -> None:
    texts = replaced("zh", "我叫张伟", "小张你好", "张老师好", "张伟哥也好")
    surname = texts[0][2]
    given_name = texts[0][3:]
    assert surname != "张"
    assert "伟" not in given_name
    assert texts[1:] == [f"小{surname}你好", f"{surname}老师好", f"{surname}{given_name}哥也好"]
    # English names keep their link, their case and what hangs on them.
    said = (
        "my name is Emily Carter",
        "emily's here",
        "EMILY!",
        "Mr. Carter called",
        "Dr Emily Carter's dog",
    )
    texts = replaced("en", *said)
    first, last = texts[0].removeprefix("my name is ").split(" ")
    assert texts[1:4] == [f"{first.lower()}'s here", f"{first.upper()}!", f"Mr. {last} called"]
    assert texts[4] == f"Dr {first} {last}'s dog"
    # Two spellings of one name never came to an end.
    first, second = replaced("en", "I'm dating Emily O'Brien. I'm dating Emily O’Brien.")[0].split(
        ". "
    )
    assert first + "." == second


@pytest.mark.parametrize(("name", "family", "gender"), table("curation", "given_names"))
def test_given_names_keep_their_gender_and_chinese_ones_their_length(
    name: str, family: int, gender: str
) -> None:
    made = {stand_in(name, "PERSON", "en", key=bytes([n] * 32)) for n in range(20)}
    assert len(made) > 5
    if name.isascii():
        assert {latin_gender(other.lower()) for other in made} == {gender}
        assert {latin_group(other.lower())[1:5] for other in made} == {
            latin_group(name.lower())[1:5]
        }
    else:
        assert {len(other) for other in made} == {len(name)}
        assert {given_list(other[family:], "neutral")[6] for other in made} == {gender[0]}


def test_what_is_made_of_a_name_follows_it() -> None:
    said = "沈若楠 楠楠 tamara tamara_bakes"
    names = ("沈若楠", "楠楠", "tamara", "tamara_bakes")
    spans = [
        Span(said.rindex(n), said.rindex(n) + len(n), "HANDLE" if "_" in n else "PERSON", 0.9)
        for n in names
    ]
    spans[2] = Span(7, 13, "PERSON", 0.9)
    full, doubled, given_name, account = (
        made_for(spans, said)[s.type, said[s.start : s.end]] for s in spans
    )
    assert doubled == full[-1] * 2
    assert account.startswith(f"{given_name}_")


@pytest.mark.parametrize(
    ("value", "kind", "form"),
    [
        ("Little Acorns of Penhallow nursery", "ORGANIZATION", "[A-Z][a-z]+ nursery"),
        ("the Bank of Quillmore", "ORGANIZATION", "the Bank of [A-Z][a-z]+"),
        ("小橡树口腔诊所", "ORGANIZATION", "[^小橡树]{3}口腔诊所"),
        (
            "17 Tannery Brae, Port Skerrin",
            "ADDRESS",
            "[0-9]{2} [A-Z][a-z]+ Brae, [A-Z][a-z]+ [A-Z][a-z]+",
        ),
        ("Tanner's Row", "ADDRESS", "[A-Z][a-z]+'s Row"),
        ("LS1 4AB, Penhallow", "ADDRESS", "[A-Z]+[0-9] [0-9][A-Z]{2}, [A-Z][a-z]+"),
        ("美发店", "ORGANIZATION", "[\u4e00-\u9fff]{2}店"),
        ("南桥镇卫生院", "ORGANIZATION", "[\u4e00-\u9fff]{2}镇卫生院"),
        ("Penhallow School and Wexcombe Nursery", "ORGANIZATION", "[A-Z][a-z]+ School and Nursery"),
        ("wxid_q8f7a6b5c4d3e2f9h1j3k5", "WECHAT", "wxid_[a-z][0-9].{20}"),
        ("@support", "HANDLE", "@(?:WORD)"),
        ("王小林", "PERSON", "[\u4e00-\u9fff]{3}"),
        ("noodlebby_41", "HANDLE", "(?:WORD)_[0-9]{2}"),
        (
            "https://space.bilibili.com/99081726354417",
            "URL",
            "https://space.bilibili.com/[0-9]{14}",
        ),
        ("Cousin Dwayne", "PERSON", "Cousin [A-Z][a-z]+"),
        ("古丽娜尔", "PERSON", "(?!克莉丝汀).*[古丽娜尔].*"),
        (
            "呼延",
            "PERSON",
            "欧阳|司马|上官|诸葛|司徒|东方|皇甫|尉迟|公孙|慕容|令狐|长孙|宇文|夏侯|南宫|端木|独孤",
        ),
        ("ty", "PERSON", "[a-z]{3,}"),
        ("汤圆", "PERSON", "PET"),
        (
            "oh seven seven double oh, nine hundred, one two fifteen",
            "PHONE_NUMBER",
            "(?:[a-z]+ ){3}double [a-z]+, [a-z]{3,5} hundred, [a-z]{3,5} [a-z]{3,5} (?:ten|eleven|twelve|[a-z]+teen)",
        ),
    ],
)
def test_a_surrogate_is_of_the_same_build(value: str, kind: str, form: str) -> None:
    """Handles were a name and letters at random, "Little Acorns of Penhallow nursery" became "Oakwood of nursery".

    "nine hundred" became "two nktohxv".
    """
    lists = word_lists()
    pattern = form.replace("WORD", "|".join(lists["handle_en"])).replace(
        "PET", "|".join(lists["given_pet"])
    )
    language = "zh" if re.search("[\u4e00-\u9fff]|bilibili", value) else "en"
    for key in (b"1" * 32, b"2" * 32, b"3" * 32):
        made = stand_in(value, kind, language, key)
        assert re.fullmatch(pattern, made), made
        assert made != value


@pytest.mark.parametrize(
    ("name", "surname", "origin"),
    [("priyanka", False, "in"), ("venkataraman", True, "in"), ("mehmet", False, "tr"), ("giancarlo", False, "it"),
     ("kwabena", False, "ng"), ("saoirse", False, "ie"), ("petrillo", True, "it"), ("emily", False, "en"),
     ("baumgardner", True, "de"), ("nguyen", True, "as")],
)  # fmt: skip
def test_names_have_the_origin_that_lists_and_their_spelling_tell(
    name: str, surname: bool, origin: str
) -> None:
    assert latin_group(name, surname=surname)[1:3] == origin
    other = other_latin(random.Random(1), name, "neutral", surname=surname)
    assert latin_group(other.lower(), surname=surname)[1:3] == origin


def test_both_parts_of_a_hyphenated_given_name_are_given_names_of_its_origin() -> None:
    for seed in range(5):
        parts = other_latin(random.Random(seed), "hyun-woo", "male").lower().split("-")
        assert [latin_group(part)[1:3] for part in parts] == ["as", "as"]
        assert all(latin_group(part)[0] in "mn" for part in parts)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_surrogates_are_of_the_dialogue_and_the_key_alone(language: str) -> None:
    texts = ["my name is Emily Carter, 415-555-2671, a.b@gmail.com", "我叫张伟，电话13812345678"]
    once = replaced(language, *texts)
    assert once == replaced(language, *texts)
    assert not set(once) & set(replaced(language, *texts, key=b"j" * 32))
    assert once[0] != replaced(language, texts[0], "another dialogue")[0]


def test_a_telephone_number_or_an_address_in_several_formats_got_several_surrogates() -> None:
    for language, numbers in table("curation", "telephone_formats"):
        made = [
            text.removeprefix("phone ")
            for text in replaced(language, *(f"phone {number}" for number in numbers))
        ]
        assert len({home_number(number) for number in made}) == 1
        assert home_number(made[0]) != home_number(numbers[0])
        for given_number, other in zip(numbers[1:], made[1:], strict=True):
            if given_number.isascii():
                assert re.sub("[0-9]", "0", other) == re.sub("[0-9]", "0", given_number)
    texts = replaced(
        "en",
        "at 12 Maple Street",
        "at 12 Maple St",
        "at 12, Maple Street",
        "at 12 Maple Street, Boston",
    )
    road = texts[0].removesuffix("Street")
    assert "Maple" not in road
    assert texts[1:3] == [f"{road}St", texts[0].replace(" ", ", ", 2).replace(",", "", 1)]
    assert texts[3].startswith(f"{texts[0]}, ")
    full, spaced, short = replaced(
        "zh", "我住清泉路18号2单元301", "我住清泉路 18号 2单元 301", "我住清泉路１８号"
    )
    assert spaced.replace(" ", "") == full
    assert full.startswith(short)
    # An address of kinds alone became a placeholder.
    assert re.fullmatch("at [0-9]{2} [A-Z][a-z]+ Road", replaced("en", "at 12 Hill Road")[0])


KINDS = [kind for kind in TYPES if kind not in ("PERSON", "HANDLE", "DATE_OF_BIRTH")]
NAMES = st.sampled_from(
    ["张伟", "张丽", "小张", "张老师", "李思琪", "思琪", "王芳", "小王", "婷婷", "李姐", "欧阳静", "王", "Emily Carter",
     "Emily", "emily", "Carter", "Mr Carter", "Brian", "Bo", "Zhang Wei", "Grace Lee", "安娜·卡特", "阿强", "建国"]
)  # fmt: skip
OTHERS = st.tuples(
    st.sampled_from(KINDS),
    st.one_of(
        st.text("0123456789", min_size=4, max_size=19),
        st.from_regex(r"[a-z]{3,8}@[a-z]{3,6}\.com", fullmatch=True),
        st.sampled_from(
            [
                "清泉路18号",
                "14 Maple Street",
                "阳光小区3栋",
                "Acme Inc",
                "北京一中",
                "10.0.0.1",
                "京A12345",
            ]
        ),
    ),
)


@given(
    names=st.lists(NAMES, max_size=12), others=st.lists(OTHERS, max_size=12), seed=st.integers(0, 5)
)
def test_no_two_values_share_a_surrogate(
    names: list[str], others: list[tuple[str, str]], seed: int
) -> None:
    said = [("PERSON", name) for name in names] + others
    text = " ".join(value for _, value in said)
    spans, at = [], 0
    for kind, value in said:
        spans.append(Span(at, at + len(value), kind, 0.9))
        at += len(value) + 1
    made = made_for(spans, text)
    again = list(dict.fromkeys(spans))
    random.Random(seed).shuffle(again)
    assert made == made_for(again, text)
    by_value: dict[str, str] = {}
    for (kind, value), surrogate in made.items():
        assert normalized_value(kind, surrogate) not in {normalized_value(k, v) for k, v in said}
        assert by_value.setdefault(
            normalized_value(kind, surrogate), normalized_value(kind, value)
        ) == normalized_value(kind, value)


def test_a_dialogue_full_of_names_still_gets_a_surrogate_each() -> None:
    surnames = "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛奚范彭郎"
    names = [
        f"{surname}{given_name}"
        for surname in surnames
        for given_name in ("建国", "伟", "丽", "芳", "思琪")
    ]
    text = "，".join(names)
    spans = [Span(text.index(name), text.index(name) + len(name), "PERSON", 0.9) for name in names]
    others = set(made_for(spans, text).values())
    assert len(others) == len(names)
    assert not others & set(names)


def test_surrogates_are_written_as_their_values_were_and_belong_to_nobody() -> None:
    """Each line: a value, and the expression that every surrogate of it matches."""
    wrong = []
    for line in (
        (Path(__file__).parent / "sets" / "surrogates.jsonl").read_text("utf-8").splitlines()
    ):
        row = json.loads(line)
        for n in range(10):
            made = stand_in(row["value"], row["type"], row["language"], key=bytes([n] * 32))
            checked = row["type"] in (
                "NATIONAL_ID",
                "CREDIT_CARD",
                "ACCOUNT_NUMBER",
            ) and has_valid_check_digit(made)
            if made == row["value"] or checked or not re.fullmatch(row["surrogate"], made):
                wrong.append((row, made))
    assert wrong == []


def test_a_date_becomes_another_one_in_its_format_and_no_number_is_in_use() -> None:
    def shape(text: str) -> str:
        text = re.sub(r"[0-9]{1,2}(?:st|nd|rd|th)?(?![0-9])", "N", re.sub(r"[0-9]{4,8}", "Y", text))
        return re.sub(
            r"初?[正一二三四五六七八九十冬腊]{1,3}", "H", re.sub(r"(?i)[a-z]{3,9}", "M", text)
        )

    for value in (
        "04/11/1987",
        "8th of May 1990",
        "OCT 19",
        "1995年8月2号",
        "农历正月初九",
        "2/29/96",
    ):
        others = {birth_date(keyed_random(b"key", value, str(n)), value) for n in range(20)}
        assert {shape(each) for each in others} == {shape(value)}
        assert others - {value}
        years = [
            int(year)
            for each in others
            for year in re.findall("(?:19|20)[0-9]{2}", each)
            if len(each) > 4
        ]
        assert all(abs(year - 1990) < 12 for year in years)
    # No part of a date stays.
    made = [birth_date(keyed_random(b"key", str(n)), "third of January 2001") for n in range(30)]
    assert all("2001" not in each for each in made)
    assert sum(each.startswith("third") for each in made) < 5
    # No Chinese surrogate is a number in use.
    for n in range(500):  # 161 was among the prefixes, and 1610 is given out
        parsed = phonenumbers.parse(
            number("PHONE_NUMBER", keyed_random(n.to_bytes(2), "x"), "13812345678", "zh"), "CN"
        )
        assert not phonenumbers.is_valid_number(parsed)


def test_names_are_read_with_each_other_in_mind() -> None:
    beside = name_parts(["文静", "张文静"])["文静"]
    assert [p.role for p in beside.parts] == ["given"]
    assert [p.role for p in name_parts(["Carter", "Emily Carter"])["Carter"].parts] == [
        "latin_surname"
    ]


@given(st.lists(st.text(min_size=1, max_size=12), max_size=5))
def test_parts_joined_are_the_name_in_any_order(names: list[str]) -> None:
    found = name_parts(names)
    assert all("".join(p.text for p in parts.parts) == name for name, parts in found.items())
    assert found == name_parts(reversed(names))


def test_an_address_that_a_surname_with_an_apostrophe_stands_in_is_found_again_as_a_whole() -> None:
    made = renamed(random.Random(0), "mary_walsh", {"mary": "nora", "walsh": "o'connor"}, "en")
    assert made == "nora_oconnor"
    for value in ("eileen.murphy@yahoo.com", "sean.kelly@yahoo.com", "brian_walsh@gmail.com"):
        for key in range(60):
            address = stand_in(value, "EMAIL_ADDRESS", "en", key.to_bytes(32, "big"))
            assert re.fullmatch("[a-z0-9._-]+@gmail[.]com", address), address
