"""The table of languages: one record a language. Code that treats languages differently asks the record.

Words and patterns of a language are data files beside the code that reads them (prompts, lexicons, cues), by its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from h2htalk.errors import ConfigError

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class LanguageRecord:
    """What the package knows of a language.

    Attributes:
        name: in English.
        tokenizer: whose tokens BLEU and ROUGE count (`text.tokens.TOKENIZERS`).
        unit: what lengths are counted in.
        script: its letters, as messages name them.
        joint: what stands between words, and between sentences.
        comma: with the space that follows.
        repeated_run: so many units of a prompt in an answer are repeated, not chance.
    """

    name: str
    tokenizer: Literal["13a", "jieba"]
    unit: Literal["words", "characters"]
    script: str
    joint: str
    comma: str
    repeated_run: int

    @property
    def spaced(self) -> bool:
        """Whether spaces part its words."""
        return self.joint == " "


RECORDS: dict[Language, LanguageRecord] = {
    "en": LanguageRecord("English", "13a", "words", "Latin", " ", ", ", 8),
    "zh": LanguageRecord("Chinese", "jieba", "characters", "Chinese", "", "，", 16),
}
LANGUAGES: tuple[Language, ...] = tuple(RECORDS)


def find_language(code: str) -> LanguageRecord:
    """The record of a language; raises ConfigError for an unknown one, which is never read as another."""
    for known, record in RECORDS.items():
        if code == known:
            return record
    raise ConfigError(f"no language {code!r}; choose from {', '.join(LANGUAGES)}")
