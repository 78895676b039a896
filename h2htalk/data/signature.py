"""Signatures: what a number stands on. Two parts decide what may be compared with what (DESIGN: protocol, subject)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from h2htalk.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class Signature:
    """`protocol` says how it was measured, `subject` what was measured; values are short texts.

    Protocol keys: items (hash of scenarios and personas), prompts, tokens, metrics, rouge, embedder, judge.
    Subject keys: backend and model with their revisions, temperature, top_p, max_tokens, samples, seed, sap.
    """

    protocol: Mapping[str, str]
    subject: Mapping[str, str]

    def __str__(self) -> str:
        return "|".join(
            f"{key}:{value}" for part in (self.protocol, self.subject) for key, value in part.items()
        )

    @property
    def fingerprint(self) -> str:
        """Hex digest of the protocol, 12 characters: runs with the same one may be compared."""
        return hashlib.sha256(json.dumps(dict(sorted(self.protocol.items()))).encode()).hexdigest()[:12]

    def to_dict(self) -> dict[str, dict[str, str]]:
        return {"protocol": dict(self.protocol), "subject": dict(self.subject)}

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Signature:
        if not isinstance(raw, Mapping) or not all(
            isinstance(raw.get(k), Mapping) for k in ("protocol", "subject")
        ):
            raise DataError(f"{where}: signature must hold protocol and subject")
        return cls(_texts(raw["protocol"]), _texts(raw["subject"]))


def _texts(raw: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in raw.items()}


def differing_keys(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    """Keys that are not the same in both, as `key (a's, b's)`."""
    keys = [*a, *(key for key in b if key not in a)]
    return [f"{key} ({a.get(key, '-')}, {b.get(key, '-')})" for key in keys if a.get(key) != b.get(key)]


def require_comparable(a: Signature, b: Signature, names: tuple[str, str]) -> None:
    """Raise ConfigError, naming the keys, unless the two protocols agree."""
    different = differing_keys(a.protocol, b.protocol)
    if different:
        raise ConfigError(
            f"{names[0]} and {names[1]} cannot be compared; they differ in {', '.join(different)}"
        )
