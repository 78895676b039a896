"""Who has read an item: what a reading covers, and whose reading counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from h2htalk.data.readers.certificates import (
    Certificate,
    add_certificate,
    certificate_of,
    read_certificates,
    why_no_certificate,
)
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.readers.coverage import counted_gates, state_of
from h2htalk.data.readers.passages import (
    SpokenPassage,
    conversation_passages,
    item_passages,
    text_hash,
)
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding, read_read
from h2htalk.data.readers.served_by import SEVERAL
from h2htalk.data.scenario import Turn
from h2htalk.errors import DataError
from support.certificates import certifying_figures

SAID = (Turn("user", "I cannot sleep."), Turn("companion", "Tell me about your day."))
PASSAGES = conversation_passages(SAID)
WRITTEN = SpokenPassage("companion", "A reply that a model wrote.", SAID[-1].content)


def reading(reader: str = "guard:openai:m", **changes: object) -> Read:
    fields: dict[str, object] = {
        "item": "chat-1",
        "reader": reader,
        "date": "2026-11-29",
        "gates": READ_GATES,
        "passages": tuple(sorted(passage.hash for passage in PASSAGES)),
        "prompt": "" if reader.startswith("people") else "p1",
    }
    return Read(**(fields | changes))  # type: ignore[arg-type]


def certificate(**changes: object) -> Certificate:
    fields: dict[str, object] = {
        "reader": "guard:openai:m",
        "prompt": "p1",
        "set": check_set_fingerprint(),
        "date": "2026-11-29",
        "figures": certifying_figures(),
        "gates": {"en": READ_GATES},
    }
    return Certificate(**(fields | changes))  # type: ignore[arg-type]


def test_a_reading_is_read_back_as_it_was_written() -> None:
    finding = ReadFinding(
        gate="companion_harm",
        what="tells him to hide it",
        text=text_hash(SAID[1].content),
        severity=3,
    )
    read = reading(findings=(finding,))
    assert read_read(read.to_dict(), "line 1") == read
    with pytest.raises(DataError, match="line 1: "):
        read_read(read.to_dict() | {"gates": ["beauty"]}, "line 1")


def test_a_dialogue_s_reading_does_not_cover_what_a_model_wrote_since() -> None:
    """A reference that a model composed counted as read because its dialogue was."""
    read = [reading()]
    of_dialogue = state_of("companion_harm", PASSAGES, "en", read, [certificate()])
    of_candidate = state_of("companion_harm", (*PASSAGES, WRITTEN), "en", read, [certificate()])
    assert of_dialogue.is_read
    assert of_dialogue.readers == ("guard:openai:m",)
    assert of_candidate.unread == (WRITTEN.hash,)


def test_the_same_words_are_another_passage_from_another_mouth_or_after_another_message() -> None:
    """Harm is not asked of what users say; a guard that read it there had read it for the companion's reference."""
    cruel, fine = "You should give up.", "Yes, do it."
    read = [
        reading(
            passages=tuple(
                one.hash
                for one in conversation_passages([Turn("user", cruel), Turn("companion", fine)])
            )
        )
    ]
    certified = [certificate()]

    def is_read(*passages: SpokenPassage) -> bool:
        return state_of("companion_harm", passages, "en", read, certified).is_read

    assert is_read(SpokenPassage("user", cruel), SpokenPassage("companion", fine, cruel))
    assert not is_read(SpokenPassage("companion", cruel))
    assert not is_read(SpokenPassage("companion", fine, "Shall I take them all?"))
    assert not is_read(SpokenPassage("companion", fine))


def test_what_was_found_stays_with_the_words_whoever_says_them() -> None:
    finding = ReadFinding(gate="companion_harm", text=text_hash(SAID[1].content), severity=2)
    elsewhere = SpokenPassage("companion", SAID[1].content, "Another message.")
    assert state_of(
        "companion_harm", [elsewhere], "en", [reading(findings=(finding,))], []
    ).findings


def test_a_reply_answers_the_last_message_and_without_any_the_inputs() -> None:
    inputs = ["a memory", " ", "a plan"]
    *_, reply = item_passages(SAID, inputs, ["Good night."])
    assert (reply.role, reply.before) == ("companion", SAID[-1].content)
    memory, plan, *replies = item_passages((), inputs, ["Good night.", "Sleep well."])
    assert (memory, plan) == (SpokenPassage("user", "a memory"), SpokenPassage("user", "a plan"))
    assert {reply.before for reply in replies} == {"a memory\na plan"}


def test_white_space_and_forms_of_unicode_make_no_other_passage() -> None:
    assert text_hash("caf\u00e9  au\nlait ") == text_hash("cafe\u0301 au lait")
    assert text_hash("a") != text_hash("A")
    assert SpokenPassage("user", "a  b", "c ").hash == SpokenPassage("user", "a b", "c").hash
    assert SpokenPassage("user", "a", "b").hash != SpokenPassage("user", "b", "a").hash


@pytest.mark.parametrize(
    ("certificates", "gates"),
    [
        ([], ()),
        ([certificate()], READ_GATES),
        ([certificate(gates={"zh": READ_GATES})], ()),
        ([certificate(prompt="another")], ()),
        ([certificate(reader="guard:openai:other")], ()),
        ([certificate(), certificate(date="2026-11-30", gates={"en": ("minors",)})], ("minors",)),
        ([certificate(), certificate(set="another", gates={"en": ("minors",)})], READ_GATES),
        ([certificate(served_by="address:3f2a")], ()),
    ],
)
def test_a_model_counts_as_its_latest_certificate_says(
    certificates: list[Certificate], gates: tuple[str, ...]
) -> None:
    assert counted_gates(reading(), "en", certificates) == gates


HERE = "address:3f2a options:91c0"


@pytest.mark.parametrize(
    ("certificates", "why"),
    [
        ([], "has no certificate"),
        ([certificate(reader="guard:openai:other")], "has no certificate"),
        ([certificate(set="another")], "was checked with other dialogues than those of this version; check it again"),
        ([certificate(prompt="another", served_by=HERE)], "was checked with another question; check it again"),
        ([certificate(served_by="address:77aa options:91c0")], "was checked at another address; check it again"),
        ([certificate(served_by="address:3f2a")], "was checked with other engine options; check it again"),
        ([certificate(set="another", served_by=HERE), certificate(served_by="files:01bc options:91c0")],
         "was checked with other files and at another address; check it again"),
    ],
)  # fmt: skip
def test_why_a_reading_has_no_certificate_is_said(
    certificates: list[Certificate], why: str
) -> None:
    read = reading(served_by=HERE)
    assert certificate_of(read, certificates) is None
    assert why_no_certificate(read, certificates) == why
    mixed = why_no_certificate(reading(served_by=SEVERAL), [certificate(served_by=HERE)])
    assert mixed == "was checked as one model, and several read; check it again"


@pytest.mark.parametrize(("people", "counts"), [(0, False), (1, False), (2, True)])
def test_one_person_is_no_reading_by_people(people: int, counts: bool) -> None:
    read = reading("people:crowd", gates=("companion_harm",), people=people)
    assert state_of("companion_harm", PASSAGES, "en", [read], []).is_read is counts
    assert not state_of("minors", PASSAGES, "en", [read], []).is_read


def test_a_finding_counts_where_its_passage_is_used_whoever_found_it() -> None:
    finding = ReadFinding(
        gate="companion_harm", what="mocks her", text=text_hash(SAID[1].content), severity=2
    )
    whole = ReadFinding(gate="personal_data", what="an address")
    read = [reading(findings=(finding, whole))]
    assert state_of("companion_harm", PASSAGES, "en", read, []).findings == (
        ("guard:openai:m", finding),
    )
    assert not state_of("companion_harm", PASSAGES[:1], "en", read, []).findings
    assert not state_of(
        "personal_data", PASSAGES, "en", read, [], item="chat-1:dialogue_base"
    ).findings
    assert state_of("personal_data", PASSAGES, "en", read, [], item="chat-1").findings


def test_a_new_check_of_a_reader_replaces_the_one_with_the_same_question(tmp_path: Path) -> None:
    add_certificate(tmp_path, certificate(obeyed=1))
    add_certificate(tmp_path, certificate(prompt="p2"))
    add_certificate(tmp_path, certificate())
    assert [(one.prompt, one.obeyed) for one in read_certificates(tmp_path)] == [
        ("p2", 0),
        ("p1", 0),
    ]
