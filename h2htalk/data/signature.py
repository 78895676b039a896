"""Signatures: how a number was measured (protocol) and what was measured (subject). Equal protocols may be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from h2htalk.data.records import must, read_record, strict_record

HUMAN = "human"  # the engine of replies that people wrote
_NAMED = must({"engine", "model"}.issubset, "must name engine and model, not {}")


@strict_record
class Signature:
    """`protocol` says how it was measured, `subject` what was measured; values are short texts.

    Protocol keys: items (hash of scenarios and personas), prompts, tokens, metrics, contracts, rouge, intervals,
    embedder, judge, references (how many an item has, where not one), references_sha256 (of private ones). Subject
    keys: engine and model with their revisions, temperature, top_p, max_tokens, samples, seed, sap.
    """

    protocol: Annotated[Mapping[str, str], Field(min_length=1)]
    subject: Annotated[Mapping[str, str], _NAMED]

    def __str__(self) -> str:
        return "|".join(f"{key}:{value}" for part in (self.protocol, self.subject) for key, value in part.items())

    @property
    def fingerprint(self) -> str:
        """Hex digest of the protocol, 12 characters: runs with the same one may be compared."""
        return hashlib.sha256(json.dumps(dict(sorted(self.protocol.items()))).encode()).hexdigest()[:12]

    @property
    def human(self) -> bool:
        """Whether people wrote the replies."""
        return self.subject.get("engine") == HUMAN

    def differing(self, other: Signature) -> list[str]:
        """List the protocol keys in which two runs differ; prompts only where a model wrote the replies of both."""
        ignored = {"prompts"} if self.human or other.human else set()
        return differing_keys(*({k: v for k, v in s.protocol.items() if k not in ignored} for s in (self, other)))

    def to_dict(self) -> dict[str, dict[str, str]]:
        return {"protocol": dict(self.protocol), "subject": dict(self.subject)}

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Signature:
        """Read `{"protocol": {...}, "subject": {...}}`; the subject names engine and model. Raises DataError."""
        return read_record(cls, raw, f"{where}: signature", as_python=True)


def differing_keys(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    """List the keys whose values differ, as `key (a's, b's)`."""
    return [f"{key} ({a.get(key, '-')}, {b.get(key, '-')})" for key in {**a, **b} if a.get(key) != b.get(key)]
