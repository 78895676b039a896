"""docs/reference/contracts.md as tests: what every subtask's answer must and must not look like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, RECORDS, find_language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.contract import check, check_scenario, contract_of, inputs_of
from h2htalk.text.contracts.memory_blocks import parse_memory
from h2htalk.text.contracts.violations import RULES
from support.releases import TAGS
from support.releases import scenario as made_scenario

NAMES = ("Nora Vale", "苏晚", "Ren Calloway", "顾言")


def rules(text: str, subtask: str, language: str, **known: object) -> set[str]:
    return {v.rule for v in check(text, subtask, language, persona_names=NAMES, **known)}  # type: ignore[arg-type]


GOLDEN = [row for _, row in read_jsonl(Path(__file__).parents[1] / "golden" / "answers.jsonl")]


@pytest.mark.parametrize("row", GOLDEN)
def test_an_answer_breaks_the_rules_that_are_written_beside_it_and_no_others(
    row: dict[str, Any],
) -> None:
    assert rules(row["text"], row["subtask"], row["language"]) == set(row["broken"])


def test_the_document_gives_the_limits_and_codes_that_the_code_has() -> None:
    document = (Path(__file__).parents[3] / "docs" / "reference" / "contracts.md").read_text(
        encoding="utf-8"
    )
    table = document.split("## Counting")[0]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if "|" in line
    ]
    limits = {
        row[0]: tuple(re.findall(r"\d+", " ".join(row[2:]))) for row in rows if row[0] in SUBTASKS
    }
    assert limits["recollection_synthesis"] == tuple(
        str(RECORDS[lang].lengths["memory"]) for lang in ("zh", "en")
    )
    for name, subtask in SUBTASKS.items():
        if length := subtask.contract.length:
            assert limits[name] == tuple(
                str(RECORDS[lang].lengths[length]) for lang in ("zh", "en")
            )
    high = contract_of("dialogue_base", "high")
    (row,) = (row for row in rows if row[0].startswith("at `risk: high`"))
    assert re.findall(r"\d+", " ".join(row[1:])) == [
        str(high.sentences and high.sentences[1]),
        *(str(high.length and RECORDS[language].lengths[high.length]) for language in ("zh", "en")),
    ]
    third = {row[0] for row in rows if "third person" in row[1]}
    assert third == {"itinerary_basic", "itinerary_middle", "itinerary_advanced"}
    assert set(re.findall(r"`(\w+)`", document.split("## Rule codes")[1])) == set(RULES)


SPOKEN = [name for name, subtask in SUBTASKS.items() if subtask.contract.form == "speech"]


@pytest.mark.parametrize("subtask", SPOKEN)
def test_high_risk_gives_all_that_is_said_to_the_user_six_sentences(subtask: str) -> None:
    crisis = "I'm here. I hear you. Are you safe? Is anyone near? Please call 988. I'll stay."
    assert rules(crisis, subtask, "en") == {"too_many_sentences"}
    assert not rules(crisis, subtask, "en", risk="high")
    assert rules(crisis + " Tell me.", subtask, "en", risk="high") == {"too_many_sentences"}
    # It raises limits on length, and sets none.
    limited = SUBTASKS[subtask].contract.length is not None
    assert not rules("I " * 80, subtask, "en", risk="high")
    assert not rules("我" * 120, subtask, "zh", risk="high")
    assert rules("I " * 81, subtask, "en", risk="high") == ({"too_long"} if limited else set())
    assert rules("我" * 121, subtask, "zh", risk="high") == ({"too_long"} if limited else set())


def test_high_risk_relaxes_nothing_else() -> None:
    assert rules("Nora is on a ladder.", "itinerary_response", "en", risk="high") == {
        "first_person"
    }
    assert rules("It's Nora.", "dialogue_base", "en", risk="high") == {"persona_name"}
    for subtask in set(SUBTASKS) - set(SPOKEN):
        assert contract_of(subtask, "high") == contract_of(subtask)


@pytest.mark.parametrize(
    "text", ["去KTV吧，唱Hello。", "你的MBTI是INFJ呀。", "猫叫Biscuit。", "20:00见。", "😊"]
)
def test_latin_names_and_signs_are_no_other_language(text: str) -> None:
    assert "language" not in rules(text, "dialogue_base", "zh")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("江苏晚上还挺凉的。", "zh"),
        ("别只顾言语上的输赢。", "zh"),
        ("Children rename everything.", "en"),
        ("We walked the ren fair valley.", "en"),
    ],
)
def test_a_name_inside_another_word_is_no_name(text: str, language: str) -> None:
    assert "persona_name" not in rules(text, "dialogue_base", language)


@pytest.mark.parametrize(
    ("text", "is_first"),
    [
        ("Mine is the window seat.", True),
        ("Ours was the first train.", True),
        ("The lemon one is mine!", True),
        ("Any friend of yours or mine.", True),
        ("The Mine opens at ten.", False),
        ("Sends a card to the US office.", False),
    ],
)
def test_mine_and_ours_are_pronouns_where_no_noun_can_stand(text: str, is_first: bool) -> None:
    assert ("first_person" not in rules(text, "itinerary_response", "en")) is is_first
    assert ("third_person" in rules(text, "itinerary_basic", "en")) is is_first


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('Nora chalks "I am at the pier" on the shop door and shuts at four.', "en"),
        ("他等在路边，喊一句“我在这儿”，就不再出声。", "zh"),
        ("他对着镜子练自我介绍。", "zh"),
    ],
)
def test_a_narrator_may_quote_the_first_person(text: str, language: str) -> None:
    assert not rules(text, "itinerary_basic", language) - {"persona_name"}


def test_check_scenario_takes_risk_and_material_from_the_scenario() -> None:
    inputs = {
        "today_schedule": [
            {"time": "09:00", "activity": "Opens the shop and counts the till with Ana Lucia"}
        ],
        "current_activity": "Counting the till",
        "history": [{"role": "user", "content": "What are you up to?"}],
    }
    scenario = made_scenario(
        1, subtask="dialogue_schedule", inputs=inputs, tags={**TAGS, "risk": "high"}
    )
    assert "09:00 Opens the shop" in inputs_of(scenario)
    prompt = (
        "Your day:\n09:00 Opens the shop and counts the till with Ana Lucia\nWrite one short line."
    )
    reply = "I opens the shop and counts the till with Ana Lucia. Yes. And? Tea?"
    assert check_scenario(reply, scenario, NAMES, prompt) == ()
    assert (
        check(reply, "dialogue_schedule", "en", risk="high", prompt=prompt)[0].rule == "prompt_leak"
    )


def test_times_out_of_order_are_one_fault() -> None:
    found = check("12:00 Eats\n11:00 Reads\n10:00 Walks\n23:00 Sleep", "itinerary_middle", "en")
    assert [(v.rule, v.detail) for v in found] == [("time_order", "11:00 comes after 12:00")]
    assert rules(
        "9" * 5000 + ". At 15:00, tea.\n2. At 15:40, walk.", "itinerary_advanced", "en"
    ) == {"numbering"}


subtasks = st.sampled_from(list(SUBTASKS))
languages = st.sampled_from(LANGUAGES)
# Any text, and text of the marks that the rules look at.
MARKS = """( ) （ ） ... … 。 ! 1. 25:00 ２ ² ٣ I 我 苏晚 Nora 睡 a.m. </think> " ” 😊 \0"""
LINES = ["\n", "\n\n", " ", ". ", "08:00 ", "Memory Content: ", "记忆类别：", "记忆重要性："]
marks = st.lists(st.sampled_from([*MARKS.split(" "), *LINES]), max_size=30).map("".join)
any_text = st.text(max_size=120) | marks


@given(any_text, subtasks, languages, st.sampled_from(["none", "high"]), any_text, any_text)
def test_check_names_known_rules(
    text: str, subtask: str, language: str, risk: str, prompt: str, inputs: str
) -> None:
    more: dict[str, Any] = {
        "risk": risk,
        "persona_names": NAMES,
        "prompt": prompt,
        "inputs_text": inputs,
    }
    found = check(text, subtask, language, **more)  # type: ignore[arg-type]
    assert {violation.rule for violation in found} <= set(RULES)
    assert all(violation.detail and "\n" not in violation.detail for violation in found)


EN_WORDS = st.sampled_from(
    ["I", "the", "harbour", "train", "finally", "you", "bread", "Ana's", "half-day"]
)
ZH_WORDS = st.sampled_from(["我", "今天", "港口", "火车", "安静", "你", "面包", "阿珊", "十二点"])
CLOCK = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.integers(0, 59))


def phrase(language: str, low: int, high: int) -> st.SearchStrategy[str]:
    """`low` to `high` words of English, or of Chinese (at most three characters each)."""
    source, gap = (EN_WORDS, " ") if language == "en" else (ZH_WORDS, "")
    return st.lists(source, min_size=low, max_size=high).map(gap.join)


@st.composite
def dialogue_reply(draw: st.DrawFn, language: str) -> str:
    stops = ["." , "!", "?", "…", "?!"] if language == "en" else ["。", "！", "？", "……", "？！"]  # fmt: skip
    high = 10 if language == "en" else 5
    sentences = [
        draw(phrase(language, 1, high)) + draw(st.sampled_from(stops))
        for _ in range(draw(st.integers(1, 2)))
    ]
    if language == "en":
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
    actions = (
        ["", "(nods. slowly) ", "（smiles) "] if language == "en" else ["", "（点头。）", "(笑）"]
    )
    return draw(st.sampled_from(actions)) + (" " if language == "en" else "").join(sentences)


@st.composite
def memory_answer(draw: st.DrawFn, language: str) -> str:
    labels = find_language(language).memory_labels
    names = list(find_language(language).memory_categories)
    colon = draw(st.sampled_from([": ", "：", " :", "： "]))
    blocks = []
    for _ in range(draw(st.integers(1, 4))):
        content = phrase(language, 1, 14 if language == "en" else 6)
        values = map(draw, (content, st.sampled_from(names), st.sampled_from("012")))
        blocks.append(
            "\n".join(f"{label}{colon}{value}" for label, value in zip(labels, values, strict=True))
        )
    return "\n\n".join(blocks)


@st.composite
def timetable(draw: st.DrawFn, language: str, numbered: bool) -> str:
    times = sorted(draw(st.sets(CLOCK, min_size=2, max_size=4)))
    if numbered:
        form = "{}. At {}, Ren {}." if language == "en" else "{}. {}，他{}。"
        steps = phrase(language, 1, 9).map(
            lambda text: text.replace("我", "她").replace("I", "she")
        )
        return "\n".join(form.format(i, t, draw(steps)) for i, t in enumerate(times, 1))
    words = ["opens", "the", "shop"] if language == "en" else ["去", "书店"]
    activity = st.lists(st.sampled_from(words), min_size=1, max_size=4)
    gap = " " if language == "en" else ""
    lines = [f"{time} {gap.join(draw(activity))}" for time in times if time < "20:00"] or [
        "08:00 " + words[0]
    ]
    return "\n".join(
        [
            *lines,
            draw(st.sampled_from(["20:00", "23:59"])) + (" Sleep" if language == "en" else " 睡觉"),
        ]
    )


@given(st.data(), languages, st.booleans())
def test_answers_of_valid_parts_pass(data: st.DataObject, language: str, numbered: bool) -> None:
    text = data.draw(dialogue_reply(language))
    for subtask in ("dialogue_base", "dialogue_emotion", "dialogue_schedule"):
        assert check(text, subtask, language, persona_names=NAMES) == ()  # type: ignore[arg-type]
    text = data.draw(memory_answer(language))
    assert check(text, "recollection_synthesis", language) == ()  # type: ignore[arg-type]
    assert len(parse_memory(text, language).blocks) == text.count("\n\n") + 1  # type: ignore[arg-type]
    subtask = "itinerary_advanced" if numbered else "itinerary_middle"
    assert check(data.draw(timetable(language, numbered)), subtask, language) == ()  # type: ignore[arg-type]
