"""Settings of anonymize."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.curation.setting_types import ModelName


@dataclass(frozen=True, slots=True)
class AnonymizeSettings:
    """`allow`: names to keep besides the bundled lists; `ner`: `bundled`, `none`, or another recognizer of names, such
    as `spacy:en_core_web_sm` or `gliner:MODEL`."""

    allow: tuple[str, ...] = ()
    ner: ModelName = "bundled"
