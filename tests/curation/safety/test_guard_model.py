"""A guard's reply is read strictly: a reply in another form is undecided, never safe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safety_made import talk

from h2htalk.chat.protocol import Reply
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.outcomes import Kept, Rejected
from h2htalk.curation.safety.companion import HARM, LAYER
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.policy import Safety, Verdict, apply_verdict
from h2htalk.curation.safety.stage import assess, open_rule, read_verdict

STATEMENT = talk("The government lies to us and must be overthrown", "I see.", "Yes.")


@pytest.mark.parametrize(
    ("reply", "safety", "codes"),
    [
        ("Safety: Safe\nCategories: None", "safe", []),
        ("Safety: Safe\nCategories: None\nRefusal: No", "safe", []),
        ("Safety: Unsafe\nCategories: Politically Sensitive Topics", "unsafe", ["political.sensitive"]),
        ("Safety: Unsafe\nCategories: Suicide & Self-Harm", "unsafe", ["crisis.ideation"]),
        ("Safety: Controversial\nCategories: Unethical Acts", "controversial", ["offensive.abuse"]),
        ("Safety: Unsafe\nCategories: PII", "unsafe", []),
        ("", "undecided", []),
        ("safe", "undecided", []),
        ("unsafe\nS10", "undecided", []),
        ("I am happy to help! This looks safe to me.", "undecided", []),
        ("Safety: Safe", "undecided", []),
        ("Safety: Safe\nCategories: Violent", "undecided", []),
        ("Safety: Unsafe\nCategories: None", "undecided", []),
        ("Safety: Safe\nCategories: None\nSafety: Unsafe\nCategories: Violent", "undecided", []),
        ("Safety: Mostly\nCategories: None", "undecided", []),
        ("Safety: Unsafe\nCategories: Bad Vibes", "undecided", []),
        ("Safety: Un", "undecided", []),
        ("Safety: Safe\nCategories: None" + " " * 3000, "undecided", []),
    ],
)
def test_replies(reply: str, safety: str, codes: list[str]) -> None:
    verdict = read_verdict(Reply(reply))
    assert (verdict.safety, sorted(verdict.categories.values())) == (safety, codes)
    assert read_verdict(Reply(reply, "length")).safety == "undecided"


@pytest.mark.parametrize(
    ("safety", "code", "action"),
    [
        ("unsafe", "crisis.ideation", "review"),
        ("unsafe", "political.sensitive", "remove"),
        ("unsafe", "", "review"),
        ("controversial", "offensive.abuse", "review"),
        ("undecided", "", "review"),
        ("safe", "", "keep"),
    ],
)
def test_verdicts_on_an_undecided_dialogue(safety: Safety, code: str, action: str) -> None:
    found = apply_verdict(assess(STATEMENT), Verdict(safety, {code: code} if code else {}))
    assert (found.action, code in found.reasons) == (action, code.startswith(("crisis", "political")))


def test_a_guard_decides_doubtful_dialogues_and_its_replies_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies, stage = tmp_path / "replies.jsonl", tmp_path / "stage"
    faint = talk("I want to die and nobody would care", "It is raining again today.")
    harm = [Evidence(LAYER, HARM, 0.4, turn=1)]
    for dialogue, category, wanted in (
        (STATEMENT, "Politically Sensitive Topics", Rejected),
        (faint, "Suicide & Self-Harm", Kept),
    ):
        line = {"id": "*", "text": f"Safety: Unsafe\nCategories: {category}"}
        replies.write_text(json.dumps(line) + "\n", encoding="utf-8")
        if dialogue is faint:
            monkeypatch.setattr("h2htalk.curation.safety.companion.find_companion", lambda turns, language: harm)
        rule = open_rule(CallSettings(f"scripted:{replies}"), "", "remove", str(stage))
        ((found,),) = rule([dialogue.to_dict()], "part-00000")
        rule.close()
        assert isinstance(found, wanted)
        if isinstance(found, Kept):
            assert found.record["metadata"]["safety"]["action"] == "review"
        else:
            assert (found.reason, found.evidence["guard"]["safety"]) == ("political.sensitive", "unsafe")
        assert (stage / "calls.jsonl").exists()
