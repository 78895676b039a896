"""Mock dialogues: repeatable, varied, with invented personal data."""

from __future__ import annotations

import re

import pytest

from h2htalk.curation.gather.cleaning import clean
from h2htalk.curation.gather.formats import RawDialogue
from h2htalk.curation.gather.mock_dialogues import mock_dialogues
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue


def text_of(dialogue: Dialogue) -> str:
    return "\n".join(turn.content for turn in dialogue.messages)


def test_a_dialogue_depends_on_seed_language_and_number() -> None:
    assert list(mock_dialogues(20, 1)) == list(mock_dialogues(40, 1))[:20]
    assert list(mock_dialogues(20, 1)) != list(mock_dialogues(20, 2))
    assert [d.language for d in mock_dialogues(4, 0)] == ["en", "zh", "en", "zh"]
    assert list(mock_dialogues(0, 0)) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_gather_keeps_all_of_them(language: Language) -> None:
    for dialogue in mock_dialogues(300, 3, language):
        messages = tuple((turn.role, turn.content) for turn in dialogue.messages)
        assert clean(RawDialogue(messages), language).messages == dialogue.messages
        assert not re.search(r"[{}]", text_of(dialogue))


@pytest.mark.parametrize(("language", "phone"), [("en", r"\(\d{3}\) 555-01\d\d"), ("zh", r"(?<!\d)1990000\d{4}(?!\d)")])
def test_every_third_has_personal_data_of_nobody(language: Language, phone: str) -> None:
    texts = [text_of(dialogue) for dialogue in mock_dialogues(900, 0, language)]
    assert sum(bool(re.search(phone, text)) for text in texts) > 50
    addresses = [address for text in texts for address in re.findall(r"[\w.]+@\S+?\.com", text)]
    assert len(addresses) > 30
    assert {address.partition("@")[2] for address in addresses} == {"example.com"}
    assert not any("@" in text or re.search(phone, text) for at, text in enumerate(texts, 1) if at % 3)
