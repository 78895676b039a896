"""Settings of anonymize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from h2htalk.curation.setting_types import FilePath

OperatorName = Literal["surrogate", "mask", "hash", "redact", "keep"]


@dataclass(frozen=True, slots=True)
class AnonymizeSettings:
    """How personal data are found and replaced.

    Attributes:
        allow: names that stay, beside the bundled lists.
        recognizers: a registry file in Presidio's format with recognisers of the user's own.
        trust_recognizers: the registry may name classes of the user's own code.
        operators: what stands in for the values of a type: a seeded surrogate (as for types that are not named), a
            mask, a hash, nothing, or the value itself.
        name_keys: keys of a record, of its `metadata` or of its `user` that hold the user's name, beside `USER_NAMES`;
            the name is replaced everywhere in the dialogue.
    """

    allow: tuple[str, ...] = ()
    recognizers: FilePath = ""
    trust_recognizers: bool = False
    operators: Mapping[str, OperatorName] = field(default_factory=dict)
    name_keys: tuple[str, ...] = ()
