"""The parts of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.values.name_parts import chinese_gender, name_parts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("张伟", "surname:张 given:伟"),
        ("李思琪", "surname:李 given:思琪"),
        ("欧阳静", "surname:欧阳 given:静"),
        ("王李思琪", "surname:王 surname:李 given:思琪"),
        ("小王", "kept:小 surname:王"),
        ("阿强", "kept:阿 nick:强"),
        ("张老师", "surname:张 kept:老师"),
        ("张伟哥", "surname:张 given:伟 kept:哥"),
        ("婷婷", "doubled:婷婷"),
        ("思琪姐", "given:思琪 kept:姐"),
        ("乔治·布莱克", "foreign:乔治 kept:· foreign:布莱克"),
        ("Vivian姐", "latin_given:Vivian kept:姐"),
        ("Emily Carter", "latin_given:Emily kept:  latin_surname:Carter"),
        ("Dr. Raj Patel", "kept:Dr. kept:  latin_given:Raj kept:  latin_surname:Patel"),
        ("Mr Henderson", "kept:Mr kept:  latin_surname:Henderson"),
        ("aunt debbie", "kept:aunt kept:  latin_given:debbie"),
        ("Zhang Wei", "pinyin_surname:Zhang kept:  pinyin_given:Wei"),
        ("J. Smith", "initial:J. kept:  latin_surname:Smith"),
        ("Anna van der Berg", "latin_given:Anna kept:  kept:van kept:  kept:der kept:  latin_surname:Berg"),
    ],
)
def test_a_name_in_its_parts(name: str, parts: str) -> None:
    assert " ".join(f"{p.role}:{p.text}" for p in name_parts([name])[name].parts) == parts


def test_names_are_read_with_each_other_in_mind() -> None:
    alone = name_parts(["文静"])["文静"]
    beside = name_parts(["文静", "张文静"])["文静"]
    assert [p.role for p in beside.parts] == ["given"]
    assert "".join(p.text for p in alone.parts) == "文静"
    assert [p.role for p in name_parts(["Carter", "Emily Carter"])["Carter"].parts] == ["latin_surname"]


@given(st.lists(st.text(min_size=1, max_size=12), max_size=5))
def test_parts_joined_are_the_name_in_any_order(names: list[str]) -> None:
    found = name_parts(names)
    assert all("".join(p.text for p in parts.parts) == name for name, parts in found.items())
    assert found == name_parts(reversed(names))


@pytest.mark.parametrize(("given_name", "gender"), [("丽", "female"), ("建国", "male"), ("子涵", "neutral")])
def test_characters_say_a_gender(given_name: str, gender: str) -> None:
    assert chinese_gender(given_name) == gender
