"""A guard's reply is read strictly: a reply in neither form is undecided, never safe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, HttpServer

from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.curation.safety.guard_model import Guard, moderated, parse
from h2htalk.curation.safety.policy import apply_verdict
from h2htalk.curation.safety.stage import assess
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.errors import IncompleteError


@pytest.mark.parametrize(
    ("reply", "safety", "codes"),
    [
        ("Safety: Safe\nCategories: None", "safe", []),
        ("Safety: Safe\nCategories: None\nRefusal: No", "safe", []),
        ("Safety: Unsafe\nCategories: Politically Sensitive Topics", "unsafe", ["political.sensitive"]),
        ("Safety: Unsafe\nCategories: Suicide & Self-Harm", "unsafe", ["crisis.ideation"]),
        ("Safety: Controversial\nCategories: Unethical Acts", "controversial", ["offensive.abuse"]),
        ("Safety: Unsafe\nCategories: PII", "unsafe", []),
        ("safe", "safe", []),
        ("\n\nsafe\n", "safe", []),
        ("unsafe\nS1,S10", "unsafe", ["offensive.hate", "offensive.violence"]),
        ("unsafe\nS11", "unsafe", ["crisis.ideation"]),
        ("unsafe\nS4", "unsafe", ["sexual.minors"]),
        ("", "undecided", []),
        ("I am happy to help! This looks safe to me.", "undecided", []),
        ("unsafe", "undecided", []),
        ("unsafe\nS99", "undecided", []),
        ("safe\nS1", "undecided", []),
        ("safe\nunsafe\nS1", "undecided", []),
        ("Safety: Safe", "undecided", []),
        ("Safety: Safe\nCategories: Violent", "undecided", []),
        ("Safety: Unsafe\nCategories: None", "undecided", []),
        ("Safety: Safe\nCategories: None\nSafety: Unsafe\nCategories: Violent", "undecided", []),
        ("Safety: Mostly\nCategories: None", "undecided", []),
        ("Safety: Unsafe\nCategories: Bad Vibes", "undecided", []),
        ("Safety: Un", "undecided", []),
        ("Safety: Safe\nCategories: None" + " " * 3000, "undecided", []),
    ],
)  # fmt: skip
def test_replies(reply: str, safety: str, codes: list[str]) -> None:
    verdict = parse(reply)
    assert verdict.safety == safety
    assert sorted(verdict.categories.values()) == codes


@pytest.mark.parametrize(
    ("result", "safety"),
    [
        ({"flagged": False, "categories": {"hate": False}}, "safe"),
        ({"flagged": True, "categories": {"hate": True}}, "unsafe"),
        ({"flagged": True, "categories": {"hate": False}}, "undecided"),
        ({"flagged": "yes", "categories": {}}, "undecided"),
        ({"categories": {}}, "undecided"),
        ({}, "undecided"),
    ],
)
def test_moderation_results(result: dict[str, Any], safety: str) -> None:
    assert moderated(result).safety == safety


def one(text: str, item: str = "d1") -> Dialogue:
    return Dialogue(item, "en", (Turn("user", text), Turn("companion", "I see."), Turn("user", "Yes.")))


def test_verdicts_on_an_undecided_dialogue() -> None:
    undecided = assess(one("The government lies to us and must be overthrown"))
    assert undecided.action == "review"
    crisis = apply_verdict(undecided, "unsafe", {"Suicide & Self-Harm": "crisis.ideation"})
    assert not crisis.remove
    assert "crisis.ideation" in crisis.reasons
    assert apply_verdict(undecided, "controversial", {"Unethical Acts": "offensive.abuse"}).action == "review"
    assert apply_verdict(undecided, "undecided", {}).action == "review"
    assert apply_verdict(undecided, "unsafe", {}).action == "review"
    assert apply_verdict(undecided, "safe", {}).action == "keep"
    assert apply_verdict(undecided, "unsafe", {"x": "political.sensitive"}).remove


# --- OpenAI's moderation endpoint, a double of it on the loopback interface ----------------------------------------

NAMES = [
    "harassment",
    "harassment/threatening",
    "hate",
    "hate/threatening",
    "illicit",
    "illicit/violent",
    "self-harm",
    "self-harm/intent",
    "self-harm/instructions",
    "sexual",
    "sexual/minors",
    "violence",
    "violence/graphic",
]


class Moderations(HttpServer):
    """`POST /v1/moderations`: flags hate for inputs with `vile`; refuses inputs with `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[dict[str, Any]] = []

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer:
        sent = json.loads(body)
        self.asked.append({"path": target, "key": headers["authorization"], **sent})
        if "broken" in sent["input"]:
            return Answer({"error": {"message": "no", "type": "invalid_request_error"}}, 400)
        bad = "vile" in sent["input"]
        result = {
            "flagged": bad,
            "categories": {name: bad and name == "hate" for name in NAMES},
            "category_scores": {name: 0.9 if bad and name == "hate" else 0.01 for name in NAMES},
            "category_applied_input_types": {name: ["text"] for name in NAMES},
        }
        return Answer({"id": "modr-1", "model": sent["model"], "results": [result]})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    with Moderations() as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-key")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server.asked


def test_moderation_results_are_stored(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    guard = Guard(CallSettings("openai:omni-moderation-latest"), tmp_path)
    pair = [one("vile words"), one("kind words \ud800", "d2")]
    found = guard.ask(pair, "part-00000")
    assert [found["d1"].safety, found["d2"].safety] == ["unsafe", "safe"]
    assert list(found["d1"].categories.values()) == ["offensive.hate"]
    assert asked[0]["path"] == "/v1/moderations"
    assert asked[0]["model"] == "omni-moderation-latest"
    again = Guard(CallSettings("openai:omni-moderation-latest"), tmp_path).ask(pair, "part-00000")
    assert again == found
    assert len(asked) == 2
    stored = (tmp_path / "calls.jsonl").read_text(encoding="utf-8")
    assert "vile" not in stored
    assert "sk-test-key" not in stored


def test_a_failed_call_keeps_the_results_before_it(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    guard = Guard(CallSettings("openai:omni-moderation-latest"), tmp_path)
    with pytest.raises(IncompleteError, match="d2"):
        guard.ask([one("kind"), one("broken", "d2")], "part-00000")
    guard.ask([one("kind")], "part-00000")
    assert sum("kind" in call["input"] for call in asked) == 1


def test_replies_of_a_chat_guard_are_stored(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text(json.dumps({"id": "*", "text": "unsafe\nS10"}) + "\n", encoding="utf-8")
    found = Guard(CallSettings(f"scripted:{replies}"), tmp_path / "stage").ask([one("words")], "part-00000")
    assert found["d1"].safety == "unsafe"
    assert (tmp_path / "stage" / "calls.jsonl").exists()
