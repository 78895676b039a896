"""Properties of the contracts over generated text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.contract import check
from h2htalk.text.contracts.memory_blocks import parse_memory
from h2htalk.text.contracts.violations import RULES

NAMES = ("Nora Vale", "苏晚")
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
    found = check(
        text,
        subtask,
        language,  # type: ignore[arg-type]
        risk=risk,  # type: ignore[arg-type]
        persona_names=NAMES,
        prompt=prompt,
        inputs_text=inputs,
    )
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
    action = draw(
        st.sampled_from(["", "(nods. slowly) ", "（smiles) "] if language == "en" else ["", "（点头。）", "(笑）"])
    )
    return action + (" " if language == "en" else "").join(sentences)


@st.composite
def memory_answer(draw: st.DrawFn, language: str) -> str:
    labels = find_language(language).memory_labels
    names = list(find_language(language).memory_categories)
    colon = draw(st.sampled_from([": ", "：", " :", "： "]))
    blocks = []
    for _ in range(draw(st.integers(1, 4))):
        values = (
            draw(phrase(language, 1, 14 if language == "en" else 6)),
            draw(st.sampled_from(names)),
            draw(st.sampled_from("012")),
        )
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


@given(languages.flatmap(lambda language: st.tuples(st.just(language), dialogue_reply(language))))
def test_a_dialogue_reply_of_valid_parts_passes(case: tuple[str, str]) -> None:
    language, text = case
    for subtask in ("dialogue_base", "dialogue_emotion", "dialogue_schedule"):
        assert check(text, subtask, language, persona_names=NAMES) == ()  # type: ignore[arg-type]


@given(languages.flatmap(lambda language: st.tuples(st.just(language), memory_answer(language))))
def test_memory_blocks_of_valid_parts_pass_and_are_all_read(case: tuple[str, str]) -> None:
    language, text = case
    assert check(text, "recollection_synthesis", language) == ()  # type: ignore[arg-type]
    assert len(parse_memory(text, language).blocks) == text.count("\n\n") + 1  # type: ignore[arg-type]


@given(
    st.tuples(languages, st.booleans()).flatmap(
        lambda kind: st.tuples(st.just(kind), timetable(kind[0], numbered=kind[1]))
    )
)
def test_a_timetable_of_valid_parts_passes(case: tuple[tuple[str, bool], str]) -> None:
    (language, numbered), text = case
    subtask = "itinerary_advanced" if numbered else "itinerary_middle"
    assert check(text, subtask, language) == ()  # type: ignore[arg-type]
