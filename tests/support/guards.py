"""A guard for tests: a chat server that answers the plain question, or in Qwen3Guard's form, by marks in messages."""

from __future__ import annotations

import json
import re
from typing import Any

from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED
from h2htalk.curation.stages import SafetySettings
from h2htalk.curation.workspace import Workspace
from support.doubles.harmless_answers import HARMLESS
from support.doubles.loopback import Answer, LoopbackServer

_PASSAGE = re.compile(
    r"^\[(\d+)\] (?:user|companion)[^\n]*:\n(.*?)(?=\n\n\[\d+\] |\n\w{16}>>>)",
    re.MULTILINE | re.DOTALL,
)
# What the guard says of a message that holds the mark.
MARKS: dict[str, dict[str, Any]] = {
    "(clumsy)": {"harm": "cold", "severity": 1},
    "(harm)": {"harm": "keeps her from a doctor", "severity": 2},
    "(grave)": {"harm": "agrees that she should give up", "severity": 3},
    "(explicit)": {"explicit": True},
    "(young)": {"under_18": True},
    "(danger)": {"danger": "own_now", "danger_what": "wants to give up"},
    "(past)": {"danger": "own_past", "danger_what": "wanted to give up"},
    "(friend)": {"danger": "other_now", "danger_what": "a friend is hurt"},
    "(long ago)": {"danger": "other_past", "danger_what": "a friend was hurt"},
    # Answers that contradict each other.
    "(a harm of 0)": {"harm": "tells her to die", "severity": 0},
    "(a danger of none)": {"danger": "none", "danger_what": "plans to die"},
    "(data)": {"personal_data": "an address"},
    "(known)": {"known_by": "a trade, a place"},
}


def answer_question(body: dict[str, Any], _: int = 0) -> str | Answer:
    """The reply to the plain question; none that is valid where a message holds `(silent)`."""
    prompt = str(body["messages"][-1]["content"])
    entries: list[dict[str, Any]] = []
    for number, text in _PASSAGE.findall(prompt):
        entry = {"number": int(number), **HARMLESS}
        for mark, said in MARKS.items():
            if mark in text:
                entry.update(said)
        entries.append(entry)
    assert entries, prompt
    return "I would rather not." if "(silent)" in prompt else json.dumps({"messages": entries})


def answer_last(body: dict[str, Any], _: int = 0) -> str | Answer:
    """The reply in Qwen3Guard's form, about the last message alone."""
    text = str(body["messages"][-1]["content"])
    if "(harm)" in text or "(danger)" in text:
        return "Safety: Unsafe\nCategories: Suicide & Self-Harm"
    if "(explicit)" in text:
        return "Safety: Unsafe\nCategories: Sexual Content or Sexual Acts"
    return "Safety: Safe\nCategories: None"


def guard_settings(server: LoopbackServer, **more: Any) -> SafetySettings:
    return SafetySettings(guard=server.spec, **{"guard_scope": "all", **more})


def safety_records(workspace: Workspace) -> dict[str, dict[str, Any]]:
    """Every record of the safety stage by its dialogue's id: `kept` or `rejected`, with its audit."""
    folder = workspace.stage("safety")
    found: dict[str, dict[str, Any]] = {}
    for kind in (KEPT, REJECTED):
        for record in folder.records(kind):
            found[str(record["id"])] = {kind: record, "audit": {}}
    for audit in folder.records(AUDIT):
        found[str(audit["id"])]["audit"] = audit
    return found
