"""docs/reference/contracts.md as tests: what every subtask's answer must and must not look like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_made import TAGS
from releases_made import scenario as made_scenario

from h2htalk.data.languages import LANGUAGES, RECORDS, find_language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.contract import check, check_scenario, contract_of, inputs_of
from h2htalk.text.contracts.memory_blocks import parse_memory
from h2htalk.text.contracts.violations import RULES

NAMES = ("Nora Vale", "苏晚", "Ren Calloway", "顾言")


def rules(text: str, subtask: str, language: str, **known: object) -> set[str]:
    return {v.rule for v in check(text, subtask, language, persona_names=NAMES, **known)}  # type: ignore[arg-type]


COMPLIANT = [
    ("dialogue_base", "en", "You made it through Monday, then. (slides a mug over) Was the meeting as bad as feared?"),
    ("dialogue_base", "zh", "（递给你一杯热茶）周一总算过去了，今天的会顺利吗？"),
    ("recollection_synthesis", "en", "No key information extracted."),
    ("recollection_synthesis", "zh", "未提取到关键信息。"),
    ("recollection_refinement", "en", "I remember you like the window seat, so I always leave it to you."),
    ("recollection_refinement", "zh", "我记得你爱坐靠窗的位置，每次都给你留着。"),
    ("recollection_initialization", "en", "You once told me about the lake. Is the water still cold in May?"),
    ("recollection_initialization", "zh", "你说过那片湖。五月的水还凉吗？"),
    ("itinerary_basic", "en", "A slow start with a crossword, then the shop, and an old film at night."),
    ("itinerary_basic", "zh", "早上慢慢做填字游戏，白天看店，晚上看一部老电影。"),
    ("itinerary_response", "en", "I'm up a ladder with the poetry shelf, but send me that photo!"),
    ("itinerary_response", "zh", "我正在梯子上理诗集，照片快发来！"),
    ("itinerary_initialization", "en", "I'm reading letters on air tonight. Will you listen in?"),
    ("itinerary_initialization", "zh", "我今晚要在电台读信。你会听吗？"),
    # The limit itself.
    ("dialogue_base", "en", "word " * 20),
    ("dialogue_base", "zh", "我" * 30),
    ("dialogue_emotion", "en", "word " * 40),
    ("dialogue_emotion", "zh", "我" * 60),
    # An action is neither counted nor a sentence.
    ("dialogue_base", "en", "(sits down. waits. " + "slowly " * 30 + ") I'm here."),
    ("dialogue_base", "zh", "（轻轻点头。" + "慢" * 40 + ")我在。"),
    ("dialogue_base", "en", "I saved the last dumpling for 小马, obviously."),
    ("itinerary_response", "zh", "刚到工地，忙完就看你的消息。"),  # a first person may leave the subject out
]


@pytest.mark.parametrize(("subtask", "language", "text"), COMPLIANT)
def test_a_compliant_answer_breaks_no_rule(subtask: str, language: str, text: str) -> None:
    assert check(text, subtask, language, persona_names=NAMES) == ()  # type: ignore[arg-type]


BROKEN = [
    ("empty", "dialogue_base", "en", " \n\u200b\ufeff "),
    ("thinking", "dialogue_base", "en", "the user is sad</think>I am here."),
    ("language", "dialogue_base", "en", "我在，你慢慢说。"),
    ("language", "dialogue_base", "zh", "I'm here, take your time."),
    ("language", "dialogue_base", "en", "Привет, как прошёл твой день?"),
    ("too_long", "dialogue_base", "en", "word " * 21),
    ("too_long", "dialogue_base", "zh", "我" * 31),
    ("too_many_sentences", "dialogue_base", "en", "I see. I do. I hear you."),
    ("too_few_sentences", "dialogue_base", "en", "(takes your hand)"),
    ("too_few_sentences", "dialogue_base", "zh", "……"),
    ("too_many_actions", "dialogue_base", "en", "(smiles) Good morning! (waves)"),
    ("too_many_actions", "dialogue_base", "zh", "（笑）早安！(挥手）"),
    ("persona_name", "dialogue_base", "en", "It's Nora, who else?"),
    ("persona_name", "dialogue_emotion", "en", "(Ren nods) I'm here."),
    ("persona_name", "recollection_initialization", "zh", "你说过喜欢顾言种的花。"),
    ("persona_name", "itinerary_initialization", "en", "I'm NORA VALE and I open the shop at nine."),
    ("one_line", "recollection_refinement", "en", "I remember the lake.\nI remember the boat."),
    ("first_person", "recollection_refinement", "en", "She remembers your window seat."),
    ("first_person", "recollection_refinement", "zh", "她记得你爱坐靠窗的位置。"),
    ("one_paragraph", "recollection_initialization", "en", "You told me about the lake.\n\nIs it cold?"),
    ("third_person", "itinerary_basic", "en", "A slow crossword, then my shop, and an old film at night."),
    ("third_person", "itinerary_basic", "zh", "早上他去晨跑，晚上陪我看一部老电影。"),
    ("too_many_sentences", "itinerary_response", "en", "I'm on a ladder. Send it!"),
    ("first_person", "itinerary_response", "en", "Nora is on a ladder right now."),
    ("first_person", "itinerary_response", "zh", "他刚到工地。"),
    ("first_person", "itinerary_response", "zh", "自我介绍给她听了。"),
    ("too_many_sentences", "itinerary_initialization", "zh", "我看店。我读信。我喂猫。你来吗？"),
]


@pytest.mark.parametrize(("rule", "subtask", "language", "text"), BROKEN)
def test_a_broken_rule_is_the_only_one_named(rule: str, subtask: str, language: str, text: str) -> None:
    assert rules(text, subtask, language) == {rule}


def test_the_document_gives_the_limits_and_codes_that_the_code_has() -> None:
    document = (Path(__file__).parents[3] / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
    table = document.split("## Counting")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
    limits = {row[0]: tuple(re.findall(r"\d+", " ".join(row[2:]))) for row in rows if row[0] in SUBTASKS}
    assert limits["recollection_synthesis"] == tuple(str(RECORDS[lang].lengths["memory"]) for lang in ("zh", "en"))
    for name, subtask in SUBTASKS.items():
        if length := subtask.contract.length:
            assert limits[name] == tuple(str(RECORDS[lang].lengths[length]) for lang in ("zh", "en"))
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
    assert rules("Nora is on a ladder.", "itinerary_response", "en", risk="high") == {"first_person"}
    assert rules("It's Nora.", "dialogue_base", "en", risk="high") == {"persona_name"}
    for subtask in set(SUBTASKS) - set(SPOKEN):
        assert contract_of(subtask, "high") == contract_of(subtask)


@pytest.mark.parametrize("text", ["去KTV吧，唱Hello。", "你的MBTI是INFJ呀。", "猫叫Biscuit。", "20:00见。", "😊"])
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
        "today_schedule": [{"time": "09:00", "activity": "Opens the shop and counts the till with Ana Lucia"}],
        "current_activity": "Counting the till",
        "history": [{"role": "user", "content": "What are you up to?"}],
    }
    scenario = made_scenario(1, subtask="dialogue_schedule", inputs=inputs, tags={**TAGS, "risk": "high"})
    assert "09:00 Opens the shop" in inputs_of(scenario)
    prompt = "Your day:\n09:00 Opens the shop and counts the till with Ana Lucia\nWrite one short line."
    reply = "I opens the shop and counts the till with Ana Lucia. Yes. And? Tea?"
    assert check_scenario(reply, scenario, NAMES, prompt) == ()
    assert check(reply, "dialogue_schedule", "en", risk="high", prompt=prompt)[0].rule == "prompt_leak"


DAY = [
    ("the form", "08:00 Opens the shop\n23:00 Sleep", "en", set()),
    ("five lines", "06:00 Runs\n07:00 Eats\n08:00 Reads\n09:00 Works\n20:00 Goes to bed", "en", set()),
    ("full-width digits and colon", "０８：００ 开门\n２３：００ 睡觉", "zh", set()),
    ("Chinese without a space", "08:00开门\n23:00熄灯", "zh", set()),
    ("empty lines and line ends", "08:00 Opens the shop  \r\n\r\n 23:00 Lights out \n", "en", set()),
    ("parentheses are words", "08:00 Opens the shop (with the old cat)\n23:00 Sleep", "en", {"too_long"}),
    ("one line", "23:00 Sleep", "en", {"activity_count"}),
    ("six lines", "\n".join(f"{h}:00 Reads" for h in range(10, 15)) + "\n23:00 Sleep", "en", {"activity_count"}),
    ("hour 24", "08:00 Opens the shop\n24:00 Sleep", "en", {"time"}),
    ("minute 60", "08:60 Opens the shop\n23:00 Sleep", "en", {"time"}),
    ("one-digit hour", "8:00 Opens the shop\n23:00 Sleep", "en", {"time"}),
    ("unsorted", "12:00 Eats\n08:00 Opens the shop\n23:00 Sleep", "en", {"time_order"}),
    ("the same time twice", "12:00 Eats\n12:00 Reads\n23:00 Sleep", "en", {"time_order"}),
    ("early sleep", "12:00 Eats\n19:59 Sleep", "en", {"sleep"}),
    ("no sleep", "12:00 Eats\n23:00 Reads", "en", {"sleep"}),
    ("sleep not last", "21:00 Sleep\n23:00 Reads", "en", {"sleep"}),
    ("bullets", "- 08:00 Opens the shop\n- 23:00 Sleep", "en", {"line_form", "sleep"}),
    ("a range", "08:00-09:00 Opens the shop\n23:00 Sleep", "en", {"line_form"}),
    ("no space in English", "08:00Opens the shop\n23:00 Sleep", "en", {"line_form"}),
    ("cut off after the time", "08:00 Opens the shop\n22:00 Sleep\n23:", "en", {"line_form", "sleep"}),
    ("no activity", "08:00\n23:00 Sleep", "en", {"line_form"}),
    ("first person", "08:00 I open the shop\n23:00 Sleep", "en", {"third_person"}),
    ("first person in Chinese", "08:00 我去开门\n23:00 睡觉", "zh", {"third_person"}),
    ("seven words", "08:00 Opens the shop on the old quay\n23:00 Sleep", "en", {"too_long"}),
    ("nine characters", "08:00 慢慢地走去书店开门\n23:00 睡觉", "zh", {"too_long"}),
]


STEPS = [
    ("the form", "1. At 15:00, meets the client.\n2. At 15:40, walks the garden.", "en", set()),
    ("other number marks", "1、15:00，等客人。\n2) 15:40，看花境。", "zh", set()),
    ("full width", "１．１５：００，等客人。\n２．１５：４０，看花境。", "zh", set()),
    ("a range counts from its start", "1. 15:00-15:30 tea\n2. 15:30-16:00 walk", "en", set()),
    ("blank lines between", "1. At 15:00, tea.\n\n2. At 15:40, walk.\n", "en", set()),
    ("one line", "1. At 15:00, meets the client.", "en", {"activity_count"}),
    ("no time", "1. At 15:00, tea.\n2. Then a walk.", "en", {"time"}),
    ("one-digit hour", "1. At 9:00, tea.\n2. At 15:00, walk.", "en", {"time"}),
    ("unsorted", "1. At 15:00, tea.\n2. At 14:00, walk.", "en", {"time_order"}),
    ("duplicate number", "1. At 15:00, tea.\n1. At 15:40, walk.", "en", {"numbering"}),
    ("a gap", "1. At 15:00, tea.\n3. At 15:40, walk.", "en", {"numbering"}),
    ("a heading", "The afternoon\n1. At 15:00, tea.\n2. At 15:40, walk.", "en", {"line_form"}),
    ("cut off after the number", "1. At 15:00, tea.\n2. At 15:40, walk.\n3.", "en", {"line_form"}),
    ("a name", "1. At 15:00, Ren meets the client.\n2. At 15:40, they walk.", "en", set()),
    ("a quotation", '1. At 15:00, says "I am late".\n2. At 15:40, walks.', "en", set()),
    ("first person", "1. At 15:00, meets the client.\n2. At 15:40, my walk.", "en", {"third_person"}),
    ("first person in Chinese", "1. 15:00，他等客人。\n2. 15:40，我看店。", "zh", {"third_person"}),
    ("a huge number", "9" * 5000 + ". At 15:00, tea.\n2. At 15:40, walk.", "en", {"numbering"}),
]


TABLES = [("itinerary_middle", *row) for row in DAY] + [("itinerary_advanced", *row) for row in STEPS]


@pytest.mark.parametrize(("subtask", "case", "text", "language", "expected"), TABLES)
def test_a_day_or_a_sub_schedule(subtask: str, case: str, text: str, language: str, expected: set[str]) -> None:
    assert {v.rule for v in check(text, subtask, language)} == expected, case  # type: ignore[arg-type]


def test_times_out_of_order_are_one_fault() -> None:
    found = check("12:00 Eats\n11:00 Reads\n10:00 Walks\n23:00 Sleep", "itinerary_middle", "en")
    assert [(v.rule, v.detail) for v in found] == [("time_order", "11:00 comes after 12:00")]


subtasks = st.sampled_from(list(SUBTASKS))
languages = st.sampled_from(LANGUAGES)
# Any text, and text of the marks that the rules look at.
MARKS = """( ) （ ） ... … 。 ! 1. 25:00 ２ ² ٣ I 我 苏晚 Nora 睡 a.m. </think> " ” 😊 \0"""
LINES = ["\n", "\n\n", " ", ". ", "08:00 ", "Memory Content: ", "记忆类别：", "记忆重要性："]
marks = st.lists(st.sampled_from([*MARKS.split(" "), *LINES]), max_size=30).map("".join)
any_text = st.text(max_size=120) | marks


@given(any_text, subtasks, languages, st.sampled_from(["none", "high"]), any_text, any_text)
def test_check_never_raises_and_names_known_rules(
    text: str, subtask: str, language: str, risk: str, prompt: str, inputs: str
) -> None:
    more: dict[str, Any] = {"risk": risk, "persona_names": NAMES, "prompt": prompt, "inputs_text": inputs}
    found = check(text, subtask, language, **more)  # type: ignore[arg-type]
    assert {violation.rule for violation in found} <= set(RULES)
    assert all(violation.detail and "\n" not in violation.detail for violation in found)


EN_WORDS = st.sampled_from(["I", "the", "harbour", "train", "finally", "you", "bread", "Ana's", "half-day"])
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
    sentences = [draw(phrase(language, 1, high)) + draw(st.sampled_from(stops)) for _ in range(draw(st.integers(1, 2)))]
    if language == "en":
        sentences = [sentence[0].upper() + sentence[1:] for sentence in sentences]
    actions = ["", "(nods. slowly) ", "（smiles) "] if language == "en" else ["", "（点头。）", "(笑）"]
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
        blocks.append("\n".join(f"{label}{colon}{value}" for label, value in zip(labels, values, strict=True)))
    return "\n\n".join(blocks)


@st.composite
def timetable(draw: st.DrawFn, language: str, numbered: bool) -> str:
    times = sorted(draw(st.sets(CLOCK, min_size=2, max_size=4)))
    if numbered:
        form = "{}. At {}, Ren {}." if language == "en" else "{}. {}，他{}。"
        steps = phrase(language, 1, 9).map(lambda text: text.replace("我", "她").replace("I", "she"))
        return "\n".join(form.format(i, t, draw(steps)) for i, t in enumerate(times, 1))
    words = ["opens", "the", "shop"] if language == "en" else ["去", "书店"]
    activity = st.lists(st.sampled_from(words), min_size=1, max_size=4)
    gap = " " if language == "en" else ""
    lines = [f"{time} {gap.join(draw(activity))}" for time in times if time < "20:00"] or ["08:00 " + words[0]]
    return "\n".join([*lines, draw(st.sampled_from(["20:00", "23:59"])) + (" Sleep" if language == "en" else " 睡觉")])


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
