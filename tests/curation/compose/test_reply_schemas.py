"""Replies of a composer are read strictly, and the examples in its prompts are valid replies."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from compose_made import NOTHING, proposal, proposals, reference

from h2htalk.chat.protocol import Reply
from h2htalk.curation.compose.drafts import broken_rules
from h2htalk.curation.compose.generation import (
    Composer,
    read_proposals,
    read_reference,
)
from h2htalk.curation.prompts.templates import Prompts
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

GOOD = proposals(proposal("dialogue_base"))
WHOLE = reference("I am here.")
BASE = proposal("dialogue_base")


def without(name: str) -> str:
    return proposals({key: value for key, value in BASE.items() if key != name})


# Replies that every schema refuses: tests/chat/test_response_schema.py.
MALFORMED_PROPOSALS = {
    "cut": GOOD[:-2],
    "another field": json.dumps({"evidence": "x", "proposals": [], "verdict": "accept"}),
    "unknown subtask": proposals({**BASE, "subtask": "smalltalk"}),
    "no subtask": without("subtask"),
    "turn zero": proposals({**BASE, "turn": 0}),
    "fields of another subtask": proposals({**BASE, "memories": ["x"]}),
    "too many": proposals(*[BASE] * 12),
}
MALFORMED_REFERENCES = {
    "free text": "I am here.",
    "cut": WHOLE[:-1],
    "empty reference": reference(""),
    "a score beside": json.dumps({"evidence": "x", "reference": "a", "score": 5}),
    "a reply of the other call": NOTHING,
}


def test_malformed_replies_are_a_failure() -> None:
    for read, texts in ((read_proposals, MALFORMED_PROPOSALS), (read_reference, MALFORMED_REFERENCES)):
        accepted = [name for name, text in texts.items() if not isinstance(read(Reply(text)), Failure)]
        assert accepted == []


# --- The examples in the prompts --------------------------------------------------------------------------------

MINI = {(s.language, s.subtask): s for s in load_split("mini@1").scenarios}
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


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("risk", ["none", "high"])
def test_the_example_of_a_reference_parses_and_keeps_its_contract(language: str, risk: str) -> None:
    broken = {}
    for subtask in SUBTASKS:
        scenario = MINI[language, subtask]
        scenario = replace(scenario, tags=replace(scenario.tags, risk=risk))  # type: ignore[arg-type]
        persona = bundled_personas()[scenario.persona]
        (example,) = examples(COMPOSER.reference(scenario, persona, None, 0).messages[0].content)
        text = read_reference(Reply(example))
        assert isinstance(text, str)
        if found := broken_rules(text, scenario, persona):
            broken[subtask] = found
    assert broken == {}
