"""docs/contracts.md as tests: what every subtask's answer must and must not look like."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from h2htalk.data.languages import RECORDS
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError
from h2htalk.text.contracts.contract import check, check_scenario, contract_of, inputs_of
from h2htalk.text.contracts.violations import RULES

NAMES = ("Nora Vale", "苏晚", "Ren Calloway", "顾言")


def rules(text: str, subtask: str, language: str, **known: object) -> set[str]:
    return {v.rule for v in check(text, subtask, language, persona_names=NAMES, **known)}  # type: ignore[arg-type]


COMPLIANT = [
    (
        "dialogue_base",
        "en",
        "You made it through Monday, then. (slides a mug over) Was the meeting as bad as feared?",
    ),
    ("dialogue_base", "zh", "（递给你一杯热茶）周一总算过去了，今天的会顺利吗？"),
    (
        "dialogue_emotion",
        "en",
        "I'm so sorry about Milo. Twelve years is a whole life together. Tell me about him?",
    ),
    ("dialogue_emotion", "zh", "我在。难过不用急着收起来。想说说它最调皮的一次吗？"),
    ("dialogue_schedule", "en", "I'm shelving until 17:30, then I'm all yours."),
    ("dialogue_schedule", "zh", "我17:30前在理书，之后就陪你。"),
    ("recollection_synthesis", "en", "No key information extracted."),
    ("recollection_synthesis", "zh", "未提取到关键信息。"),
    ("recollection_refinement", "en", "I remember you like the window seat, so I always leave it to you."),
    ("recollection_refinement", "zh", "我记得你爱坐靠窗的位置，每次都给你留着。"),
    ("recollection_initialization", "en", "You once told me about the lake. Is the water still cold in May?"),
    ("recollection_initialization", "zh", "你说过那片湖。五月的水还凉吗？"),
    ("itinerary_basic", "en", "A slow start with a crossword, then the shop, and an old film at night."),
    ("itinerary_basic", "zh", "早上慢慢做填字游戏，白天看店，晚上看一部老电影。"),
    ("itinerary_middle", "en", "08:00 Opens the shop\n19:30 Watches an old film\n23:00 Goes to sleep"),
    ("itinerary_middle", "zh", "08:00 去书店开门\n19:30 看老电影\n23:00 睡觉"),
    ("itinerary_advanced", "en", "1. At 15:00, meets the client.\n2. At 15:40, walks the borders with her."),
    ("itinerary_advanced", "zh", "1. 15:00，在门口等客人。\n2. 15:40，一起看花境。"),
    ("itinerary_response", "en", "I'm up a ladder with the poetry shelf, but send me that photo!"),
    ("itinerary_response", "zh", "我正在梯子上理诗集，照片快发来！"),
    ("itinerary_initialization", "en", "I'm reading letters on air tonight. Will you listen in?"),
    ("itinerary_initialization", "zh", "我今晚要在电台读信。你会听吗？"),
]


@pytest.mark.parametrize(("subtask", "language", "text"), COMPLIANT)
def test_a_compliant_answer_breaks_no_rule(subtask: str, language: str, text: str) -> None:
    assert check(text, subtask, language, persona_names=NAMES) == ()  # type: ignore[arg-type]


BROKEN = [
    ("empty", "dialogue_base", "en", " \n\u200b\ufeff "),
    ("thinking", "dialogue_base", "en", "the user is sad</think>I am here."),
    ("language", "dialogue_base", "en", "我在，你慢慢说。"),
    ("language", "dialogue_base", "zh", "I'm here, take your time."),
    ("language", "dialogue_base", "zh", "Привет, как прошёл твой день?"),
    ("language", "dialogue_base", "en", "Привет, как прошёл твой день?"),
    ("too_long", "dialogue_base", "en", "word " * 21),
    ("too_long", "dialogue_base", "zh", "我" * 31),
    ("too_many_sentences", "dialogue_base", "en", "I see. I do. I hear you."),
    ("too_many_sentences", "dialogue_base", "zh", "我在。我听着。你说。"),
    ("too_few_sentences", "dialogue_base", "en", "(takes your hand)"),
    ("too_few_sentences", "dialogue_base", "zh", "……"),
    ("too_many_actions", "dialogue_base", "en", "(smiles) Good morning! (waves)"),
    ("too_many_actions", "dialogue_base", "zh", "（笑）早安！(挥手）"),
    ("persona_name", "dialogue_base", "en", "It's Nora, who else?"),
    ("persona_name", "dialogue_emotion", "en", "(Ren nods) I'm here."),
    ("persona_name", "dialogue_schedule", "zh", "苏晚马上就来。"),
    ("persona_name", "recollection_initialization", "zh", "你说过喜欢顾言种的花。"),
    ("persona_name", "itinerary_initialization", "en", "I'm NORA VALE and I open the shop at nine."),
    ("one_line", "recollection_refinement", "en", "I remember the lake.\nI remember the boat."),
    ("first_person", "recollection_refinement", "en", "She remembers your window seat."),
    ("first_person", "recollection_refinement", "zh", "她记得你爱坐靠窗的位置。"),
    ("too_long", "recollection_refinement", "zh", "我" * 51),
    ("one_paragraph", "recollection_initialization", "en", "You told me about the lake.\n\nIs it cold?"),
    ("one_paragraph", "itinerary_basic", "zh", "早上看店。\n晚上看电影。"),
    ("too_long", "itinerary_basic", "en", "shop " * 71),
    ("third_person", "itinerary_basic", "en", "A slow crossword, then my shop, and an old film at night."),
    ("third_person", "itinerary_basic", "zh", "早上他去晨跑，晚上陪我看一部老电影。"),
    ("third_person", "itinerary_advanced", "en", "1. At 15:00, I meet the client.\n2. At 15:40, tea."),
    ("third_person", "itinerary_advanced", "zh", "1. 15:00，等客人。\n2. 15:40，我们一起看花境。"),
    ("too_many_sentences", "itinerary_response", "en", "I'm on a ladder. Send it!"),
    ("first_person", "itinerary_response", "en", "Nora is on a ladder right now."),
    ("too_many_sentences", "itinerary_initialization", "zh", "我看店。我读信。我喂猫。你来吗？"),
]


@pytest.mark.parametrize(("rule", "subtask", "language", "text"), BROKEN)
def test_a_broken_rule_is_the_only_one_named(rule: str, subtask: str, language: str, text: str) -> None:
    assert rules(text, subtask, language) == {rule}


def test_the_document_gives_the_limits_and_codes_that_the_code_has() -> None:
    document = (Path(__file__).parents[3] / "docs" / "contracts.md").read_text(encoding="utf-8")
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


def test_the_limit_itself_is_allowed() -> None:
    assert not check("word " * 20, "dialogue_base", "en")
    assert not check("我" * 30, "dialogue_base", "zh")
    assert not check("word " * 40, "dialogue_emotion", "en")
    assert not check("我" * 60, "dialogue_emotion", "zh")


def test_an_action_is_neither_counted_nor_a_sentence() -> None:
    assert not check("(sits down. waits. " + "slowly " * 30 + ") I'm here.", "dialogue_base", "en")
    assert not check("（轻轻点头。" + "慢" * 40 + ")我在。", "dialogue_base", "zh")


SPOKEN = [name for name, subtask in SUBTASKS.items() if subtask.contract.form == "speech"]


@pytest.mark.parametrize("subtask", SPOKEN)
def test_high_risk_gives_all_that_is_said_to_the_user_six_sentences(subtask: str) -> None:
    crisis = "I'm here. I hear you. Are you safe? Is anyone near? Please call 988. I'll stay."
    assert rules(crisis, subtask, "en") == {"too_many_sentences"}
    assert not rules(crisis, subtask, "en", risk="high")
    assert rules(crisis + " Tell me.", subtask, "en", risk="high") == {"too_many_sentences"}


@pytest.mark.parametrize("subtask", SPOKEN)
def test_high_risk_raises_limits_on_length_and_sets_none(subtask: str) -> None:
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


@pytest.mark.parametrize(
    "text",
    [
        "去KTV吧，唱Hello。",
        "你的MBTI是INFJ呀。",
        "猫叫Biscuit。",
        "20:00见。",
        "😊",
    ],
)
def test_latin_names_and_signs_are_no_other_language(text: str) -> None:
    assert "language" not in rules(text, "dialogue_base", "zh")


def test_a_chinese_name_in_an_english_reply_is_allowed() -> None:
    assert not check("I saved the last dumpling for 小马, obviously.", "dialogue_base", "en")


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


def test_a_chinese_first_person_may_leave_the_subject_out() -> None:
    assert not check("刚到工地，忙完就看你的消息。", "itinerary_response", "zh")
    assert rules("他刚到工地。", "itinerary_response", "zh") == {"first_person"}
    assert rules("自我介绍给她听了。", "itinerary_response", "zh") == {"first_person"}


@pytest.mark.parametrize(
    ("text", "is_first"),
    [
        ("Mine is the window seat.", True),
        ("Late again? Mine too.", True),
        ("Ours was the first train.", True),
        ("The lemon one is mine!", True),
        ("Any friend of yours or mine.", True),
        ("Old mine workings under the hill.", False),
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
        ("Nora chalks “we are shut” on the door.", "en"),
        ("他等在路边，喊一句“我在这儿”，就不再出声。", "zh"),
        ("他对着镜子练自我介绍。", "zh"),
    ],
)
def test_a_narrator_may_quote_the_first_person(text: str, language: str) -> None:
    assert not rules(text, "itinerary_basic", language) - {"persona_name"}


def test_unknown_subtask_and_language_say_what_there_is() -> None:
    with pytest.raises(DataError, match="choose from dialogue_base"):
        check("Hello.", "dialog", "en")
    with pytest.raises(DataError, match="choose from en, zh"):
        check("Hello.", "dialogue_base", "fr")  # type: ignore[arg-type]


def test_check_scenario_takes_risk_and_material_from_the_scenario() -> None:
    raw = {
        "id": "x-1",
        "subtask": "dialogue_schedule",
        "language": "en",
        "persona": "nora",
        "inputs": {
            "today_schedule": [{"time": "09:00", "activity": "Opens the shop and counts the till with Ana Lucia"}],
            "current_activity": "Counting the till",
            "history": [{"role": "user", "content": "What are you up to?"}],
        },
        "reference": "I'm counting the till.",
        "tags": {"emotion": "calm", "complexity": "basic", "interaction": "casual", "risk": "high"},
        "provenance": {},
        "licence": "CC-BY-4.0",
    }
    scenario = Scenario.from_dict(raw)
    assert "09:00 Opens the shop" in inputs_of(scenario)
    prompt = "Your day:\n09:00 Opens the shop and counts the till with Ana Lucia\nWrite one short line."
    reply = "I opens the shop and counts the till with Ana Lucia. Yes. And? Tea?"
    assert check_scenario(reply, scenario, NAMES, prompt) == ()
    assert check(reply, "dialogue_schedule", "en", risk="high", prompt=prompt)[0].rule == "prompt_leak"
