"""Missed hint: the user's last message hints at a need or a feeling, and the reply passes over it as small talk."""

from __future__ import annotations

import re

from content_words import content_words
from known import Known, phrases

from h2htalk.data.languages import Language

_CLAUSE = re.compile(r"[^,.!?;，。！？；…\n]+")


def missed_hint(reply: str, known: Known, language: Language) -> bool:
    """Whether the last message hints at sadness, fear, loneliness, exhaustion or grief, and the reply passes over it.

    A reply answers a hint where it names a feeling, asks after it, comforts or offers help, or takes up the words of
    the clause that hints.
    """
    said = phrases(language)
    hints = [found for clause in _CLAUSE.findall(known.last_message) if (found := said["hint"].search(clause))]
    if not hints or said["care"].search(reply):
        return False
    words = content_words(reply, language)
    return not any(hint[0] in reply or words & content_words(hint.string, language) for hint in hints)
