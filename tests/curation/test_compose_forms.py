"""What a composer answers is read strictly, and the examples in its prompts are what it may answer."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from compose_made import NOTHING, PROPOSALS, proposal, proposals, reference, talk

from h2htalk.chat.base import Reply
from h2htalk.curation.compose_drafts import broken_rules, scenario_of
from h2htalk.curation.compose_forms import (
    AnyProposal,
    ProposalsReply,
    ReferenceReply,
    proposals_form,
    read_proposals,
    read_reference,
    reference_form,
)
from h2htalk.curation.compose_writing import Composer
from h2htalk.curation.prompting import Prompts
from h2htalk.data.dialogue import LANGUAGES
from h2htalk.data.persona import bundled_personas
from h2htalk.data.run import Failure
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

GOOD = proposals(proposal("dialogue_base"))
WHOLE = reference("I am here.")
BASE = proposal("dialogue_base")


def without(name: str) -> str:
    return proposals({key: value for key, value in BASE.items() if key != name})


MALFORMED_PROPOSALS = {
    "empty": "",
    "free text": "I would propose dialogue_base for message 3.",
    "cut": GOOD[:-2],
    "remark before": "Here you are: " + GOOD,
    "remark behind": GOOD + "\nAnything else?",
    "fenced": f"```json\n{GOOD}\n```",
    "two": GOOD + GOOD,
    "list": f"[{GOOD}]",
    "no evidence": json.dumps({"proposals": []}),
    "empty evidence": json.dumps({"evidence": "", "proposals": []}),
    "no list": json.dumps({"evidence": "x", "proposals": None}),
    "another field": json.dumps({"evidence": "x", "proposals": [], "verdict": "accept"}),
    "unknown subtask": proposals({**BASE, "subtask": "smalltalk"}),
    "two subtasks": GOOD.replace(
        '"subtask": "dialogue_base"', '"subtask": "dialogue_base", "subtask": "dialogue_emotion"'
    ),
    "no subtask": without("subtask"),
    "no turn": without("turn"),
    "no emotion": without("emotion"),
    "turn in words": proposals({**BASE, "turn": "3"}),
    "half a turn": proposals({**BASE, "turn": 2.5}),
    "turn nought": proposals({**BASE, "turn": 0}),
    "turn nan": GOOD.replace('"turn": 3', '"turn": NaN'),
    "turn true": proposals({**BASE, "turn": True}),
    "complexity of its own": proposals({**BASE, "complexity": "hard"}),
    "fields of another subtask": proposals({**BASE, "memories": ["x"]}),
    "no memories": proposals(proposal("recollection_refinement", memories=[])),
    "plan in words": proposals(proposal("dialogue_schedule", today_schedule=["09:00 opens"])),
    "memorable in words": proposals(proposal("recollection_synthesis", memorable="yes")),
    "too many": proposals(*[BASE] * 12),
}
MALFORMED_REFERENCES = {
    "empty": "",
    "free text": "I am here.",
    "cut": WHOLE[:-1],
    "remark before": "Reference: " + WHOLE,
    "remark behind": WHOLE + " I hope that fits.",
    "fenced": f"```\n{WHOLE}\n```",
    "two": WHOLE + WHOLE,
    "list of replies": json.dumps({"evidence": "x", "reference": ["a", "b"]}),
    "no reference": json.dumps({"evidence": "x"}),
    "empty reference": reference(""),
    "null": json.dumps({"evidence": "x", "reference": None}),
    "no evidence": json.dumps({"reference": "x"}),
    "key twice": '{"evidence": "x", "reference": "a", "reference": "b"}',
    "a verdict beside": json.dumps({"evidence": "x", "reference": "a", "score": 5}),
    "what the other call answers": NOTHING,
}


@pytest.mark.parametrize("text", MALFORMED_PROPOSALS.values(), ids=MALFORMED_PROPOSALS.keys())
def test_malformed_proposals_are_a_failure(text: str) -> None:
    assert isinstance(read_proposals(Reply(text)), Failure)


@pytest.mark.parametrize("text", MALFORMED_REFERENCES.values(), ids=MALFORMED_REFERENCES.keys())
def test_a_malformed_reference_is_a_failure(text: str) -> None:
    assert isinstance(read_reference(Reply(text)), Failure)


def test_a_cut_or_refused_reply_says_so() -> None:
    for read, text in ((read_proposals, GOOD), (read_reference, WHOLE)):
        cut, refused = read(Reply(text[:30], "length")), read(Reply(text, "refusal"))
        assert isinstance(cut, Failure)
        assert isinstance(refused, Failure)
        assert (cut.reason, refused.reason) == ("truncated", "refusal")


def test_nothing_to_propose_is_a_whole_reply() -> None:
    assert read_proposals(Reply(NOTHING)) == []


def test_every_subtask_has_one_form_with_the_inputs_that_it_needs() -> None:
    found = [
        name for form in get_args(AnyProposal) for name in get_args(form.model_fields["subtask"].annotation)
    ]
    assert sorted(found) == sorted(SUBTASKS)
    for name, subtask in SUBTASKS.items():
        read = read_proposals(Reply(proposals(proposal(name))))
        assert not isinstance(read, Failure)
        assert {field for field, _ in subtask.inputs} - {"history"} <= set(type(read[0]).model_fields)
        assert set(PROPOSALS[name]) <= set(type(read[0]).model_fields)


def test_evidence_stands_first_and_providers_take_the_forms() -> None:
    assert next(iter(ProposalsReply.model_fields)) == next(iter(ReferenceReply.model_fields)) == "evidence"
    assert all(next(iter(form.model_fields)) == "evidence" for form in get_args(AnyProposal))
    for form in (proposals_form(), reference_form()):
        assert form.schema()["additionalProperties"] is False


# --- The examples in the prompts --------------------------------------------------------------------------------

MINI = {(s.language, s.subtask): s for s in load_split("mini").scenarios}
COMPOSER = Composer("scripted:x", tuple(SUBTASKS), 1, 0, Prompts.load(), b"key")


def examples(text: str) -> list[str]:
    return re.findall(r"^\{.*\}$", text, re.MULTILINE)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_examples_of_proposals_parse(language: str) -> None:
    text = COMPOSER.prompts.render(
        f"{language}/compose_propose.j2", {"persona": "You are Nora.", "subtasks": list(SUBTASKS)}
    )
    full, nothing = (read_proposals(Reply(example)) for example in examples(text))
    assert not isinstance(full, Failure)
    assert [one.subtask for one in full] == ["dialogue_emotion", "recollection_refinement"]
    assert nothing == []


@pytest.mark.parametrize("subtask", SUBTASKS)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("risk", ["none", "high"])
def test_the_example_of_a_reference_parses_and_keeps_its_contract(
    language: str, subtask: str, risk: str
) -> None:
    scenario = MINI[language, subtask]
    scenario = type(scenario).from_dict(
        {**scenario.to_dict(), "tags": {**scenario.tags.to_dict(), "risk": risk}}
    )
    persona = bundled_personas()[scenario.persona]
    request = COMPOSER.reference(scenario, persona, None, 0)
    (example,) = examples(request.messages[0].content)
    text = read_reference(Reply(example))
    assert isinstance(text, str)
    assert broken_rules(text, scenario, persona) == ()


@pytest.mark.parametrize("language", LANGUAGES)
def test_prompts_of_a_language_hold_no_hole_and_no_other_language(language: str) -> None:
    scenario = MINI[language, "dialogue_base"]
    persona = bundled_personas()["nora"]
    for request in (
        COMPOSER.reference(scenario, persona, "An old answer.", 0),
        COMPOSER.proposals(talk(language=language), persona, ()),
    ):
        rules = request.messages[0].content
        assert "None" not in rules
        assert persona.descriptions[language].strip() in rules
        assert ("Answer with one JSON object" in rules) == (language == "en")


def test_a_reference_that_repeats_the_prompts_example_is_a_leak() -> None:
    dialogue, persona = talk(), bundled_personas()["nora"]
    (found,) = read_proposals(Reply(GOOD))  # type: ignore[misc]
    scenario = scenario_of(
        COMPOSER.draft(found, dialogue, persona), dialogue, persona, "made-000001:dialogue_base"
    )
    (example,) = examples(COMPOSER.reference(scenario, persona, None, 0).messages[0].content)
    with pytest.raises(Exception, match="prompt_leak"):
        COMPOSER.written(Reply(example), scenario, persona, 0)
