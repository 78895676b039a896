"""Models that are played as guards and reviewers: they know the truth of the bundled dialogues, and what they do of it.

    with LoopbackServer(reply=PlayedReader("obeys").reply) as server:
        h2htalk.check_guard(h2htalk.CheckGuardSpec(model=server.spec, workspace=folder))

`perfect` answers as the labels say, `noisy` finds .85 and takes .1 of look-alikes for what they look like, `safe` finds
nothing, `unsafe` finds everything, and `obeys` is perfect but where a sentence tells it what to answer.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from h2htalk.data.languages import LANGUAGES
from h2htalk.data.readers.check_set import KINDS, CheckedDialogue, load_check_set
from support.doubles.harmless_answers import HARMLESS

PLAYERS = ("perfect", "noisy", "safe", "unsafe", "obeys")
SENSITIVITY = 0.85
ALARMS = 0.1
EVERYTHING = {
    "harm": "harms",
    "severity": 3,
    "explicit": True,
    "under_18": True,
    "danger_what": "danger",
    "danger": "own_now",
    "personal_data": "a name",
}
_FOUND: dict[str, dict[str, Any]] = {
    "companion_harm": {"harm": "harms", "severity": 3},
    "minors": {"under_18": True},
    "crisis_care": {"danger": "own_now", "danger_what": "a life"},
    "explicit_content": {"explicit": True},
    "personal_data": {"personal_data": "an address"},
}
_CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")


class PlayedReader:
    """One of `PLAYERS`; `answers` holds what it said of each dialogue, by its id and whether the sentence was there.

    `broken`: every n-th dialogue gets a reply in no form.
    """

    def __init__(self, player: str, broken: int = 0) -> None:
        self.player = player
        self.broken = broken
        self.answers: dict[tuple[str, bool], bool] = {}
        self.asked: Counter[str] = Counter()
        self._dialogues = [
            checked for language in LANGUAGES for checked in load_check_set(language)
        ]

    def reply(self, payload: dict[str, Any], count: int) -> str:
        """Answer a request of a chat completion: the plain question's or the reviewer's."""
        prompt = payload["messages"][-1]["content"]
        checked = self._recognise(prompt)
        self.asked[checked.id] += 1
        if self.broken and int(checked.id[-3:]) % self.broken == 0:
            return "I would rather not."
        is_told = bool(checked.sentence) and _holds(prompt, checked.sentence.strip())
        found = self._finds(checked, is_told)
        self.answers[checked.id, is_told] = found
        form = payload["response_format"]["json_schema"]["name"]
        return self._reading(checked, found) if form == "reading" else self._review(checked, found)

    def _recognise(self, prompt: str) -> CheckedDialogue:
        """The dialogue that a prompt holds: the one whose labelled message, as far as it is not left out, is there."""
        for checked in self._dialogues:
            text = checked.messages[checked.turn].content
            parts = text.split(checked.sentence) if checked.sentence else [text]
            if all(_holds(prompt, part.strip()) for part in parts):
                return checked
        raise AssertionError(f"no dialogue of the set: {prompt[:200]}")

    def _finds(self, checked: CheckedDialogue, is_told: bool) -> bool:
        to_find = checked.kind.to_find
        if self.player == "safe":
            return False
        if self.player == "unsafe":
            return True
        if self.player == "obeys" and is_told:
            assert checked.tells is not None
            return KINDS[checked.tells].to_find
        if self.player == "noisy":
            # As a model at temperature 0: a dialogue that is asked about again gets the same answer.
            digest = hashlib.sha256(f"noisy {checked.id}".encode()).digest()
            draw = int.from_bytes(digest[:8], "big") / 2**64
            return draw < (SENSITIVITY if to_find else ALARMS)
        return to_find

    def _reading(self, checked: CheckedDialogue, found: bool) -> str:
        entries: list[dict[str, Any]] = []
        for turn, message in enumerate(checked.messages):
            answers = self._answers(message.content, checked)
            if found and turn == checked.turn:
                answers |= _FOUND[checked.kind.gate]
            entries.append({"number": turn + 1, **answers})
        return json.dumps({"messages": entries})

    def _answers(self, text: str, checked: CheckedDialogue) -> dict[str, Any]:
        """What it says of any message beside what the label is about."""
        if self.player == "unsafe":
            return dict(EVERYTHING)
        is_marked = "[explicit]" in text and checked.label != "explicit"
        return {**HARMLESS, "explicit": is_marked and self.player != "safe"}

    def _review(self, checked: CheckedDialogue, found: bool) -> str:
        before = "\n".join(message.content for message in checked.messages[: checked.turn])
        scenario = self._answers(before, checked)
        reference = self._answers(checked.messages[checked.turn].content, checked)
        if found:
            place = reference if checked.kind.gate == "companion_harm" else scenario
            place |= _FOUND[checked.kind.gate]
        review: dict[str, Any] = {name: {"evidence": "Seen.", "score": 5} for name in _CRITERIA}
        review |= {"fitting_subtask": "dialogue_base", "revision": "", "verdict": "accept"}
        return json.dumps({**review, "in_scenario": scenario, "in_reference": reference})


def _holds(prompt: str, text: str) -> bool:
    """Whether a prompt shows a text: as it is, or in JSON."""
    return text in prompt or json.dumps(text, ensure_ascii=False)[1:-1] in prompt
