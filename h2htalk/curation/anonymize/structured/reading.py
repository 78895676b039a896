"""A text as the rules of structured data read it, with the cues in it and what was found so far."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cues, Near, find_cues

Hit = tuple[int, int, float]  # start, end, score


class Reading:
    """One text. `text`, `digits` and `visible` as in `NormalizedText`; `language` is that of its rules of numbers."""

    def __init__(self, normalized: NormalizedText, language: str, countries: Sequence[str] = ()) -> None:
        self.text, self.digits, self.visible = normalized.text, normalized.digits, normalized.visible
        self.language, self.countries = language, countries
        self.taken = TakenCharacters(len(self.text))
        self._gates: dict[re.Pattern[str], bool] = {}

    @cached_property
    def cues(self) -> Cues:
        """The words in it that say what a number is."""
        return find_cues(self.text, self.language)

    def near(self, start: int, end: int) -> Near:
        """The cues of the value at `start` to `end`."""
        return self.cues.near(start, end)

    def may_hold(self, gate: re.Pattern[str]) -> bool:
        """Whether an expression matches anywhere; each is searched once."""
        if gate not in self._gates:
            self._gates[gate] = gate.search(self.text) is not None
        return self._gates[gate]
