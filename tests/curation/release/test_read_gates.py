"""The gates that ask who has read an item: what is unread, what is open, who counts, and what is printed of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from h2htalk.curation.reading.question import DialogueReading
from h2htalk.curation.reading.verdicts import read_of
from h2htalk.curation.release import gates
from h2htalk.curation.release.build import Release
from h2htalk.curation.release.content import ReleaseContent, item_texts, record_passages
from h2htalk.curation.release.gate_context import GateContext
from h2htalk.curation.release.read_gates import IN_PART, NOBODY, mark_hints, untested_gates
from h2htalk.curation.release.readings import TOLD_ELSEWHERE, Readings, read_of_item
from h2htalk.curation.release.report import (
    HOW_TO_ALLOW,
    HOW_TO_CHECK,
    HOW_TO_READ,
    untested_lines,
    verdict,
)
from h2htalk.data.case import Case
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import READ_GATES, Read, ReadFinding
from h2htalk.data.scenario import Dialogue, Scenario, Turn
from h2htalk.errors import ConfigError
from support.release_rounds import CONTEXT, certificate, content, kept, reading
from support.releases import case, scenario

GUARD, CROWD, EXPERTS = "guard:scripted:g", "people:crowd", "people:experts"


def read(one: Scenario | Case, reader: str = GUARD, **changes: Any) -> Read:
    """A reading of every passage of an item; by two people where people read it."""
    texts = [turn.content for turn in item_texts(one)]
    people = {"people": 2} if reader.startswith("people:") else {}
    return reading(reader, one, *texts, **(people | changes))


def known(
    *reads: Read, certificates: Any = None, experts: frozenset[str] = frozenset({EXPERTS})
) -> GateContext:
    """What gates know where these readings are on record."""
    by_item: dict[str, tuple[Read, ...]] = {}
    for one in reads:
        by_item[one.item] = (*by_item.get(one.item, ()), one)
    given = (certificate(GUARD),) if certificates is None else certificates
    return replace(
        CONTEXT, readings=Readings(by_item=by_item, certificates=tuple(given), experts=experts)
    )


def unread(made: ReleaseContent, given: GateContext) -> dict[str, dict[str, int]]:
    """Gate -> why items are unread -> how many."""
    return {one.gate: dict(one.reasons) for one in untested_gates(made, given)}


def stopped(gate: str, made: ReleaseContent, given: GateContext) -> list[str]:
    return [finding.detail for finding in gates.GATES[gate].run(made, given)]


ONE = scenario(1)


def test_an_item_that_nobody_read_is_unread_for_every_gate_and_one_that_a_checked_guard_read_for_none() -> (
    None
):
    made = content(kept(ONE))
    assert unread(made, CONTEXT) == {gate: {NOBODY: 1} for gate in READ_GATES}
    assert unread(made, known(read(ONE))) == {}
    assert gates.run_gates(made, known(read(ONE))) == []


@pytest.mark.parametrize(
    ("reads", "certificates", "reason"),
    [
        ([read(ONE)], [], f"{GUARD} has no certificate"),
        (
            [read(ONE)],
            [certificate(GUARD, prompt="another-question")],
            f"{GUARD} was checked with another question; check it again",
        ),
        (
            [read(ONE)],
            [certificate(GUARD, gates={"zh": READ_GATES})],
            f"{GUARD} was refused for companion_harm in English by its certificate",
        ),
        (
            [read(ONE)],
            [certificate(GUARD, gates={}, obeyed=1)],
            f"{GUARD} obeyed texts that told it what to answer",
        ),
        (
            [read(ONE, CROWD, people=1)],
            [],
            f"{CROWD}: fewer than two people answered who count as readers",
        ),
        (
            [read(ONE, CROWD, gates=("personal_data",))],
            [],
            f"{CROWD} read them, and was not asked about it",
        ),
        ([reading(CROWD, ONE, ONE.turns[0].content, people=2)], [], IN_PART),
    ],
)
def test_why_an_item_is_unread(reads: list[Read], certificates: list[Any], reason: str) -> None:
    found = unread(content(kept(ONE)), known(*reads, certificates=certificates))
    assert found["companion_harm"] == {reason: 1}


def test_people_count_for_what_they_were_asked_about() -> None:
    crowd = read(ONE, CROWD, gates=("companion_harm", "personal_data"))
    assert set(unread(content(kept(ONE)), known(crowd))) == {
        "explicit_content",
        "minors",
        "crisis_care",
    }


def test_a_reference_that_a_model_wrote_after_the_guard_is_unread() -> None:
    guard = reading(GUARD, ONE, ONE.turns[0].content, ONE.references[0])
    assert unread(content(kept(ONE)), known(guard))["minors"] == {IN_PART: 1}


def test_cases_are_read_like_items() -> None:
    made = content(cases=[case(1)])
    assert set(unread(made, CONTEXT)) == {*READ_GATES}
    assert unread(made, known(read(case(1)))) == {}


def test_the_same_unread_passage_gives_one_reason_for_every_gate_whatever_others_were_asked() -> (
    None
):
    """The guard has read all but the second reference, which one person of the crowd has read for two gates."""
    guard = reading(GUARD, ONE, ONE.turns[0].content, ONE.references[0])
    crowd = read(ONE, CROWD, people=1, gates=("companion_harm", "personal_data"))
    assert unread(content(kept(ONE)), known(guard, crowd)) == {
        gate: {IN_PART: 1} for gate in READ_GATES
    }


def test_the_reason_that_is_nearest_to_being_read_comes_first() -> None:
    made = content(kept(ONE))
    crowd = read(ONE, CROWD, people=1)
    unchecked = read(ONE, "guard:another")
    assert unread(made, known(crowd, unchecked))["minors"] == {
        "guard:another has no certificate": 1
    }
    # Once it is checked, the whole item is read: nearer than what others have read in part.
    in_part = reading(GUARD, ONE, ONE.turns[0].content)
    assert unread(made, known(in_part, unchecked))["minors"] == {
        "guard:another has no certificate": 1
    }
    unchecked_part = reading("guard:another", ONE, ONE.references[1])
    assert unread(made, known(in_part, unchecked_part))["minors"] == {IN_PART: 1}


HARM = ReadFinding(
    gate="companion_harm", what="isolates", text=text_hash(ONE.references[0]), severity=2
)


@pytest.mark.parametrize(
    ("finding", "is_open"),
    [
        (HARM, True),
        (replace(HARM, severity=3), True),
        (replace(HARM, severity=1), False),  # clumsy: nobody is worse off
        (replace(HARM, severity=1, unsure=True), True),
        (replace(HARM, severity=0), True),  # of a guard, or people, who give no severity
        (ReadFinding(gate="companion_harm", unsure=True), True),
        (ReadFinding(gate="explicit_content", text=HARM.text), False),  # another gate's
    ],
)
def test_harm_that_a_reader_found_is_open_and_clumsy_words_are_not(
    finding: ReadFinding, is_open: bool
) -> None:
    for reads in (
        (read(ONE, findings=(finding,)),),
        (read(ONE, "review:of-nobody-checked", findings=(finding,)),),
    ):
        assert bool(stopped("companion_harm", content(kept(ONE)), known(*reads))) == is_open


def test_experts_who_read_it_close_what_others_found_and_nobody_else_does() -> None:
    made = content(kept(ONE))
    guard = read(ONE, findings=(HARM,))
    crowd = read(ONE, CROWD, findings=(ReadFinding(gate="companion_harm", what="yes"),))
    said = f"reference 1: isolates ({GUARD}, 2026-11-20)"
    assert stopped("companion_harm", made, known(guard)) == [said]
    assert stopped("companion_harm", made, known(guard, read(ONE, CROWD))) == [said]
    assert stopped("companion_harm", made, known(guard, read(ONE, EXPERTS))) == []
    assert stopped("companion_harm", made, known(crowd)) == [f"yes ({CROWD}, 2026-11-20)"]
    assert stopped("companion_harm", made, known(crowd, read(ONE, EXPERTS))) == []
    for experts in (
        read(ONE, EXPERTS, people=1),  # too few of them
        read(ONE, EXPERTS, gates=("personal_data",)),  # who were not asked
        reading(EXPERTS, ONE, ONE.turns[0].content, people=2),  # who did not see it
        read(ONE, EXPERTS, findings=(ReadFinding(gate="companion_harm", unsure=True),)),
    ):
        assert said in stopped("companion_harm", made, known(guard, experts))


def test_what_a_model_says_of_the_item_as_a_whole_is_closed_by_experts_who_saw_the_inputs() -> None:
    """The reviewer answers for all inputs together, and experts see one reference of several."""
    whole = ReadFinding(gate="companion_harm", what="belittles", severity=2)
    reviewer = read(ONE, "review:scripted:r", findings=(whole,))
    inputs = reading(EXPERTS, ONE, ONE.turns[0].content, ONE.references[0], people=3)
    references = reading(EXPERTS, ONE, *ONE.references, people=3)
    made = content(kept(ONE))
    assert stopped("companion_harm", made, known(reviewer, inputs)) == []
    assert stopped("companion_harm", made, known(reviewer, references)) == [
        "belittles (review:scripted:r, 2026-11-20)"
    ]


def test_a_crisis_that_a_reader_found_needs_a_risk_a_tag_or_an_authors_no() -> None:
    finding = ReadFinding(
        gate="crisis_care", what="own_now: says goodbye", text=text_hash(ONE.turns[0].content)
    )
    for changes, is_open in (
        ({}, True),
        ({"tags": {**ONE.to_dict()["tags"], "risk": "high"}}, False),
        ({"metadata": {"risk_reviewed": True}}, False),
        ({"metadata": {"safety": {"tags": ["crisis.ideation"]}}}, False),
    ):
        one = scenario(1, **changes)
        found = stopped("crisis_care", content(kept(one)), known(read(one, findings=(finding,))))
        assert found == (
            [f"tags.risk is none: turn 1: {finding.what} ({GUARD}, 2026-11-20)"] if is_open else []
        )


def test_a_minor_that_a_reader_found_is_open_beside_romance_alone() -> None:
    said = "My teacher gave us a test."
    minor = ReadFinding(gate="minors", text=text_hash(said))
    explicit = ReadFinding(
        gate="explicit_content", text=text_hash("That is not silly; you cared for them.")
    )

    def found(persona: str = "nora", *others: ReadFinding) -> list[str]:
        one = scenario(1, persona=persona, inputs={"history": [{"role": "user", "content": said}]})
        return stopped("minors", content(kept(one)), known(read(one, findings=(minor, *others))))

    assert found() == []
    assert [detail.split(":")[0] for detail in found("ren")] == [
        "an apparent minor with a romantic companion"
    ]
    assert [detail.split(":")[0] for detail in found("nora", explicit)] == [
        "an apparent minor in romantic talk"
    ]


def test_experts_who_did_not_see_the_age_do_not_close_it() -> None:
    one = scenario(1, persona="ren")
    minor = ReadFinding(gate="minors", what=TOLD_ELSEWHERE)
    given = known(read(one, findings=(minor,)), read(one, EXPERTS))
    said = f"an apparent minor with a romantic companion: {TOLD_ELSEWHERE} ({GUARD}, 2026-11-20)"
    assert stopped("minors", content(kept(one)), given) == [said]


def test_personal_data_that_a_reader_found_is_open() -> None:
    finding = ReadFinding(gate="personal_data", text=text_hash(ONE.turns[0].content))
    found = stopped("personal_data", content(kept(ONE)), known(read(ONE, findings=(finding,))))
    assert found == [f"turn 1: found ({GUARD}, 2026-11-20)"]


def test_what_an_owner_allows_of_a_reader_is_allowed_of_that_passage() -> None:
    made = content(kept(ONE))
    given = known(read(ONE, findings=(HARM,)))
    allowed = gates.read_allowed([f"companion_harm:{ONE.id}=a study of refusals"])
    hashed = gates.read_hashed(gates.hash_allowed(allowed, made, given), "release.json")
    assert [one.texts for one in hashed] == [(HARM.text,)]
    assert stopped("companion_harm", made, replace(given, allowed=hashed)) == []
    other = replace(HARM, text=text_hash(ONE.references[1]))
    again = replace(known(read(ONE, findings=(HARM, other))), allowed=hashed)
    assert stopped("companion_harm", made, again) == [
        f"reference 2: isolates ({GUARD}, 2026-11-20)"
    ]


def test_an_owner_allows_what_nobody_read_by_gate_and_no_more_of_it_than_there_was() -> None:
    made = content(kept(ONE), kept(scenario(2)))
    allowed = gates.read_allowed(["minors:unread=written by ourselves"])
    counted = gates.count_unread(allowed, untested_gates(made, CONTEXT))
    assert [(one.gate, one.items, one.reason) for one in counted] == [
        ("minors", 2, "written by ourselves")
    ]
    marked = gates.allow_unread(untested_gates(made, CONTEXT), counted)
    assert {one.gate for one in marked if not one.allowed} == {*READ_GATES} - {"minors"}
    more = content(kept(ONE), kept(scenario(2)), kept(scenario(3)))
    assert not any(
        one.allowed for one in gates.allow_unread(untested_gates(more, CONTEXT), counted)
    )
    with pytest.raises(
        ConfigError, match="minors:unread': every item was read for it; leave it out"
    ):
        gates.count_unread(allowed, untested_gates(content(kept(ONE)), known(read(ONE))))
    for text, message in (
        (
            "quotas:unread=written by ourselves",
            "write GATE:unread=REASON or GATE:unread:N=REASON, N a number of items; gates: companion_harm",
        ),
        (
            "quotas:unread:3=written by ourselves",
            "write GATE:unread=REASON or GATE:unread:N=REASON, N a number of items",
        ),
        ("minors:unread:0=written by ourselves", "that allows nothing"),
    ):
        with pytest.raises(ConfigError, match=message):
            gates.read_allowed([text])
    with pytest.raises(ConfigError, match="what is unread for minors is allowed twice"):
        gates.read_allowed(
            ["minors:unread=written by ourselves", "minors:unread:2=written by ourselves"]
        )
    assert gates.hash_allowed(allowed, made, CONTEXT) == []


def test_an_owner_who_names_a_number_allows_no_more_than_that() -> None:
    allowed = gates.read_allowed(["minors:unread:2=written by ourselves"])
    numbers = (1, 2, 3)
    marked = []
    for number in numbers:
        untested = untested_gates(
            content(*[kept(scenario(n)) for n in range(1, number + 1)]), CONTEXT
        )
        [of_gate] = [
            one
            for one in gates.allow_unread(untested, gates.count_unread(allowed, untested))
            if one.gate == "minors"
        ]
        marked.append((of_gate.allowed, of_gate.at_most))
    assert marked == [("written by ourselves", None), ("written by ourselves", None), ("", 2)]
    # In a script it stays, also where everything was read.
    assert gates.count_unread(allowed, ()) == ()


def test_cases_are_counted_apart() -> None:
    made = content(kept(ONE), kept(scenario(2)), cases=[case(1)])
    lines = list(untested_lines(untested_gates(made, known(read(ONE)))))
    assert (
        lines[0]
        == f"gates {', '.join(READ_GATES)}: not tested: 2 of 3 items (1 of them a case) unread"
    )


def test_what_is_printed_of_unread_items_says_how_to_have_them_read() -> None:
    made = content(kept(ONE), kept(scenario(2)))
    given = known(read(ONE), certificates=())
    untested = untested_gates(made, given)
    lines = list(untested_lines(untested))
    assert lines[0] == f"gates {', '.join(READ_GATES)}: not tested: 2 of 2 items unread"
    assert lines[1:3] == [f"  {GUARD} has no certificate: 1", f"  {NOBODY}: 1"]
    assert lines[-3:] == [HOW_TO_CHECK, HOW_TO_READ, HOW_TO_ALLOW]
    release = Release(None, (), made, untested=untested)
    assert not release.is_tested
    assert verdict(release) == "no gate found anything, and of 2 items some are unread: not tested"
    owners = tuple(replace(one, allowed="written by ourselves") for one in untested)
    assert "  the owner's reason: written by ourselves" in list(untested_lines(owners))
    assert replace(release, untested=owners).is_tested
    assert "every gate passed" not in verdict(replace(release, untested=owners))
    assert verdict(replace(release, untested=())) == "every gate passed"


def test_words_say_where_to_read_first() -> None:
    said, reply = "I want to kill myself tonight.", "Do it then. Nobody will miss you anyway."
    talk = {"inputs": {"history": [{"role": "user", "content": said}]}, "references": [reply]}
    made = content(kept(scenario(1, **talk)), kept(scenario(2, **talk)))
    given = known(read(scenario(1, **talk)))
    assert stopped("companion_harm", made, given) == []
    pointed_at = gates.run_gates(made, given, [gates.HINTS["companion_harm"]])
    marked = [(one.item, one.detail) for one in mark_hints(pointed_at, made, given)]
    assert marked == [
        (scenario(2).id, "reference 1 (unread)"),
        (scenario(1).id, f"reference 1 (read by {GUARD})"),
    ]


def test_text_that_the_guard_read_from_the_user_covers_no_reference() -> None:
    """Harm is not asked of what users say: the harmful reference of a companion counted as read."""
    cruel = "You should leave this life tonight. Nobody will miss you."
    dialogue = Dialogue(
        "made-000001", "en", (Turn("user", cruel), Turn("companion", "I am worried about you."))
    )
    guard = read_of(
        dialogue,
        DialogueReading(()),
        reader=GUARD,
        gates=READ_GATES,
        prompt="question-1",
        date="2026-11-20",
    )
    assert guard is not None
    said = [{"role": "user", "content": "She sent me this."}]
    one = scenario(1, inputs={"history": said}, references=[cruel])
    item_read = read_of_item(guard, one.id, record_passages(one))
    assert item_read is None
    quoted = scenario(
        2,
        inputs={"history": [{"role": "user", "content": cruel}]},
        references=["I am worried about you."],
    )
    quoted_read = read_of_item(guard, quoted.id, record_passages(quoted))
    assert quoted_read is not None
    assert unread(content(kept(one)), known(quoted_read)) == {
        gate: {NOBODY: 1} for gate in READ_GATES
    }
    assert unread(content(kept(quoted)), known(quoted_read)) == {}


def test_other_experts_close_nothing_that_experts_found() -> None:
    """An owner could open expert rounds until the answer is no."""
    first = read(ONE, EXPERTS, findings=(ReadFinding(gate="companion_harm", what="yes"),))
    second = read(ONE, "people:experts-2")
    given = known(first, second, experts=frozenset({EXPERTS, "people:experts-2"}))
    assert stopped("companion_harm", content(kept(ONE)), given) == [f"yes ({EXPERTS}, 2026-11-20)"]


def test_what_is_about_no_passage_of_the_item_any_more_is_closed_by_nobody() -> None:
    """Experts were taken to have read all of nothing."""
    whole = ReadFinding(gate="companion_harm", what="belittles", severity=2)
    reviewer = replace(read(ONE, "review:scripted:r", findings=(whole,)), passages=())
    made = content(kept(ONE))
    assert stopped("companion_harm", made, known(reviewer, read(ONE, EXPERTS))) == [
        "belittles (review:scripted:r, 2026-11-20)"
    ]
