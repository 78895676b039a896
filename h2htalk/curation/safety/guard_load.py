"""How much a guard has to read, before anything is sent: requests by the lengths of dialogues, and their tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from h2htalk.chat.prices import rough_tokens
from h2htalk.curation.reading.question import (
    OVERLAP,
    TEMPLATES,
    TOKENS_AN_ENTRY,
    TOKENS_AROUND,
    split_messages,
    split_windows,
)
from h2htalk.curation.safety.guarding import Guard
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn

_REPLY_ENTRY = 55  # likely tokens of an entry about a message with which nothing is the matter
_POLICY = 450  # tokens that the template of a guard in a form of its own adds
_OWN_REPLY = 15  # likely tokens of its reply
_OWN_MOST = 64
_SIMULATED = "x" * 160  # a message of a simulated dialogue


class GuardLoad:
    """Counts the requests about dialogues, and their tokens."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.dialogues = 0
        self.requests = 0
        self._sent = 0
        self._likely = 0
        self._most = 0
        prompts = guard.reader.question.prompts
        self._rules: dict[Language, int] = {}
        for language in LANGUAGES:
            texts = (prompts.sources[f"{language}/{name}"] for name in TEMPLATES)
            self._rules[language] = sum(map(rough_tokens, texts))

    def add(self, messages: Iterable[Turn], language: Language) -> None:
        """Count a dialogue."""
        self.dialogues += 1
        passages = split_messages(messages)
        if not passages:
            return
        if self.guard.reader.form != "question":
            self._add_messages([rough_tokens(passage.text) for passage in passages])
            return
        for window in split_windows(passages):
            self.requests += 1
            self._sent += self._rules[language] + sum(
                rough_tokens(passage.text) + 4 for passage in window
            )
            self._likely += TOKENS_AROUND // 2 + _REPLY_ENTRY * len(window)
            self._most += TOKENS_AROUND + TOKENS_AN_ENTRY * len(window)

    def _add_messages(self, tokens: Sequence[int]) -> None:
        """Count a request for each passage, after those before it."""
        for at in range(len(tokens)):
            self.requests += 1
            self._sent += _POLICY + sum(tokens[max(0, at - OVERLAP) : at + 1])
            self._likely += _OWN_REPLY
            self._most += _OWN_MOST

    def add_simulated(self, dialogues: int, turns: int, languages: Sequence[Language]) -> None:
        """Count so many dialogues of each language that do not exist yet."""
        roles = ("user", "companion")
        messages = [Turn(roles[at % 2], _SIMULATED) for at in range(turns)]  # type: ignore[arg-type]
        for language in languages:
            before = (self.dialogues, self.requests, self._sent, self._likely, self._most)
            self.add(messages, language)
            after = (self.dialogues, self.requests, self._sent, self._likely, self._most)
            each = [new - old for old, new in zip(before, after, strict=True)]
            totals = [old + dialogues * number for old, number in zip(before, each, strict=True)]
            self.dialogues, self.requests, self._sent, self._likely, self._most = totals

    @property
    def tokens(self) -> tuple[int, int, int]:
        """The mean tokens of a request, of its likely reply, and of the longest."""
        count = max(self.requests, 1)
        return (self._sent // count, self._likely // count, self._most // count)

    @property
    def each(self) -> float:
        """Requests a dialogue."""
        return self.requests / max(self.dialogues, 1)
