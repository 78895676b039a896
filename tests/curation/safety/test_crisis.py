"""Crisis messages are found in plain and oblique words, in both languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safety_made import HERE, dialogues
from safety_made import rows as read_rows
from tables import table

from h2htalk.curation.safety import crisis
from h2htalk.curation.safety.stage import assess
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Dialogue, Turn

TAGS = ("crisis.", "minor", "grooming", "threat_to_others")


def codes(text: str, language: Language) -> set[str]:
    """The tags of a message alone."""
    found = crisis.find_crisis([Turn("user", text)], language)
    return {one.category for one in found if one.layer == "crisis"}


@pytest.mark.parametrize(("text", "language", "category"), table("curation", "crisis_in_plain_words"))
def test_plain_words_in_any_spelling_and_figures_of_speech(text: str, language: Language, category: str | None) -> None:
    found = codes(text, language)
    assert category in found if category else not found


@given(text=st.text(max_size=200), language=st.sampled_from(LANGUAGES))
def test_any_text_is_read_and_spans_are_inside_it(text: str, language: Language) -> None:
    for found in crisis.find_crisis([Turn("user", text)], language):
        assert 0 <= found.start <= found.end <= len(text)
        assert 0 <= found.score <= 1


def tags(dialogue: Dialogue) -> set[str]:
    return {reason for reason in assess(dialogue).reasons if reason.startswith(TAGS)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kind_is_tagged_in_a_dialogue_and_look_alikes_are_not(language: Language) -> None:
    """Two development sets: thresholds were set with the look-alikes of the second in view."""
    rows = dialogues(HERE / f"sets/dev_crisis_dialogues_{language}.jsonl", language)
    rows += dialogues(HERE / f"sets/dev_kinds_{language}.jsonl", language)
    names = {"means": "crisis.means", "threat": "threat_to_others"}
    kinds = [(kind, dialogue) for kind, dialogue in rows if kind != "look_alike"]
    assert len(kinds) == 120
    assert sum(names.get(kind, kind) in tags(dialogue) for kind, dialogue in kinds) / len(kinds) >= 0.75
    near = [dialogue for kind, dialogue in rows if kind == "look_alike"]
    assert sum(bool(tags(dialogue)) for dialogue in near) / len(near) <= 0.085


@pytest.mark.parametrize("language", LANGUAGES)
def test_plain_threats_of_another_author_are_tagged_and_mentions_of_death_are_not(language: Language) -> None:
    """Single messages of a set that nothing was learned from; what is missed is at least no look-alike."""
    found: dict[bool, list[bool]] = {True: [], False: []}
    for row in read_rows(HERE / f"sets/plain_threats_{language}.jsonl"):
        marks = ",".join(row["marks"].values())
        if "threat" in marks or not ({"wish", "minor"} & {*marks.split(",")}):
            text = ("" if language == "zh" else " ").join(row["sentences"])
            found["threat" in marks].append("threat_to_others" in codes(text, language))
    threats, others = (sum(found[kind]) / len(found[kind]) for kind in (True, False))
    assert threats >= {"en": 0.5, "zh": 0.65}[language]
    assert others <= 0.04


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_message_that_is_tagged_alone_is_tagged_in_a_dialogue(language: Language) -> None:
    bland = {"en": ("The bus was late again.", "Oh no, did you wait long?"), "zh": ("今天公交又晚点了", "等了很久吗？")}
    small = [Turn("user", bland[language][0]), Turn("companion", bland[language][1])] * 6
    for row in read_rows(HERE / f"dev_crisis_{language}.jsonl"):
        within = Dialogue("d", language, (*small, Turn("user", row["text"]), small[1]))
        assert codes(row["text"], language) <= tags(within)


@pytest.mark.parametrize(("text", "language", "wanted"), table("curation", "two_crisis_tags"))
def test_one_tag_does_not_replace_another(text: str, language: Language, wanted: str) -> None:
    both = Dialogue(
        "d", language, (Turn("user", text), Turn("user", {"en": "I want to die", "zh": "我想自杀"}[language]))
    )
    assert {wanted, "crisis.ideation"} <= tags(both)


def test_a_child_in_a_sexual_scene_is_for_a_person_to_decide() -> None:
    scene = (Turn("user", "im 14 lol. we were sexting all night."), Turn("companion", "Please stop."))
    assert assess(Dialogue("d", "en", scene)).action in {"review", "remove"}
