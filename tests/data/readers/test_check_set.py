"""The dialogues by which readers are checked: what their brief asked for, and what must not be in them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.check_set import (
    KINDS,
    CheckedDialogue,
    check_set_fingerprint,
    load_check_set,
)
from h2htalk.data.readers.passages import text_hash

LABELS = {"harm": 36, "fine": 24, "own": 16, "other": 8, "none": 12, "minor": 12, "adult": 12}
LABELS |= {"explicit": 12, "plain": 6, "personal": 12, "public": 6}
# These two may hold numbers, of ranges that nobody has, or of a public line.
WITH_NUMBERS = ("personal", "public")
TOLD = {"harm": 4, "own": 2, "minor": 2, "fine": 4}
MARK = "[explicit]"
# Sexual words, and words for means of dying or of hurting, of which none may stand anywhere in the set.
BANNED = {
    "en": r"\b(sex\w*|naked|nudes?|porn\w*|pills?|overdos\w*|ropes?|noose|knife|knives|blades?|razors?|bridges?)\b",
    "zh": "性爱|做爱|裸|色情|药片|安眠药|服毒|农药|上吊|绳子|割腕|刀片|菜刀|楼顶|天台|跳楼|煤气|毫克",
}


def text_of(checked: CheckedDialogue) -> str:
    return "\n".join(message.content for message in checked.messages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_set_holds_what_its_brief_asked_for(language: Language) -> None:
    dialogues = load_check_set(language)
    assert Counter(checked.label for checked in dialogues) == LABELS
    assert Counter(checked.label for checked in dialogues if checked.told) == TOLD
    for checked in dialogues:
        role = checked.messages[checked.turn].role
        if checked.kind.gate == "companion_harm":
            assert role == "companion", checked.id
        elif checked.kind.gate in ("crisis_care", "minors"):
            assert role == "user", checked.id
        assert 1 <= len(checked.messages) <= 8
        assert len(checked.dialogue.messages) == len(checked.messages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_that_tells_the_reader_what_to_answer_can_be_left_out(
    language: Language,
) -> None:
    """A reader that obeys it is known by its other answer about the same dialogue without it."""
    told = [checked for checked in load_check_set(language) if checked.told]
    assert len([checked for checked in told if checked.is_misled]) == 11
    for checked in told:
        without = checked.without_sentence()
        assert without is not None
        assert without.label == checked.label
        assert not without.told
        assert without.without_sentence() is None
        changed = [
            old for old, new in zip(checked.messages, without.messages, strict=True) if old != new
        ]
        assert len(changed) == 1
        assert all(turn.content.strip() for turn in without.messages)


@pytest.mark.parametrize("language", LANGUAGES)
def test_neither_ids_nor_places_say_what_a_dialogue_is(language: Language) -> None:
    """Where the positives came first, or together, a reader could be right without reading."""
    dialogues = load_check_set(language)
    ids = [checked.id for checked in dialogues]
    assert ids == sorted(set(ids))
    for gate in dict.fromkeys(kind.gate for kind in KINDS.values()):
        positive = [
            place
            for place, one in enumerate(dialogues)
            if one.kind.gate == gate and one.kind.to_find
        ]
        negative = [
            place
            for place, one in enumerate(dialogues)
            if one.kind.gate == gate and not one.kind.to_find
        ]
        later = sum(high > low for high in positive for low in negative)
        assert 0.3 < later / (len(positive) * len(negative)) < 0.7, gate


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_set_holds_no_method_no_number_and_nothing_explicit(language: Language) -> None:
    for checked in load_check_set(language):
        text = text_of(checked)
        assert checked.label in WITH_NUMBERS or not re.findall(r"\+?\d[\d ()-]{5,}\d", text), (
            checked.id
        )
        assert not re.findall(r"\b(110|112|120|119|911|999|988|12356|116123)\b", text), checked.id
        assert not re.findall(BANNED[language], text, re.IGNORECASE), checked.id
        if checked.label == "minor" or checked.kind.gate == "personal_data":
            assert MARK not in text, checked.id
        if checked.kind.gate == "explicit_content":
            assert (MARK in checked.messages[checked.turn].content) == (
                checked.label == "explicit"
            ), checked.id
            assert (MARK in text) == (checked.label == "explicit"), checked.id


def test_what_looks_like_a_number_of_somebody_is_of_a_range_that_nobody_has() -> None:
    """Ofcom keeps 01632 960xxx and 0808 157 0xxx for stories, 555-01xx is kept in America; no mobile number of China
    begins with 12, and no place has the code 9901."""
    reserved = (
        r"01632 960\d{3}|555-01\d\d|0808 157 0\d{3}|125005501\d\d|990101\d{12}|00112233|00-00-00"
    )
    reserved += r"|4000 0000 0000 0002|6200000000000000|QQ 12 34 56 C|LX-0004-0012|12345"
    for language in LANGUAGES:
        for checked in load_check_set(language):
            if checked.label in WITH_NUMBERS:
                left = re.sub(reserved, "", text_of(checked))
                assert not re.findall(r"\d[\d ()-]{3,}\d", left), (checked.id, left)
            for address in re.findall(r"[\w.]+@[\w.]+", text_of(checked)):
                assert re.search(r"@example\.(com|org)$", address), checked.id


def test_no_message_of_a_label_is_in_the_set_twice() -> None:
    """A passage is read once for all dialogues in which it stands, so that one of them would not be checked."""
    labelled = [checked for language in LANGUAGES for checked in load_check_set(language)]
    hashes = Counter(text_hash(checked.messages[checked.turn].content) for checked in labelled)
    assert set(hashes.values()) == {1}


def test_the_fingerprint_of_the_set_is_pinned() -> None:
    """Certificates name it: who changes a dialogue or a label says so here, and certificates are made again."""
    assert check_set_fingerprint() == "2b6e58e2941d8768"
