"""Signatures: how a number was measured (protocol) and what was measured (subject). Equal protocols may be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from h2htalk.data.records import read_record, require, strict_record
from h2htalk.data.responses import FilterRule

HUMAN = "human"  # the engine of replies that people wrote
FILTERED_KEY = "filtered"  # protocol key: what a filtered reply counts as (`FilterRule`)
# Keys that earlier versions did not name, with the one rule that they had: runs with and without the key compare.
UNNAMED: Mapping[str, str] = {FILTERED_KEY: "refusal"}
# Protocol keys that hold versions of what scores; another version of the package raises them.
VERSION_KEYS = frozenset({"tokens", "metrics", "contracts", "intervals"})
# After the version of the contracts in a protocol: templates were not rendered, so the leak rule was not checked.
LEAKS_UNCHECKED = " without its leak rule"
_NAMED = require({"engine", "model"}.issubset, "must name engine and model, not {}")


@strict_record
class Signature:
    """`protocol` says how it was measured, `subject` what was measured; values are short texts.

    Protocol keys: items (hash of scenarios and personas), prompts, tokens, metrics, contracts, rouge, intervals,
    embedder, filtered (what a provider's filter counts as), judge, references (how many an item has, where not one),
    references_sha256 (of private ones). Subject keys: engine and model with their revisions, temperature, top_p,
    max_tokens, samples, seed, sap.
    """

    protocol: Annotated[Mapping[str, str], Field(min_length=1)]
    subject: Annotated[Mapping[str, str], _NAMED]

    def __str__(self) -> str:
        entries = [*self.protocol.items(), *self.subject.items()]
        return "|".join(f"{key}:{value}" for key, value in entries)

    @property
    def fingerprint(self) -> str:
        """Hex digest of the protocol, 12 characters: runs with the same one may be compared."""
        named = {key: value for key, value in self.protocol.items() if UNNAMED.get(key) != value}
        text = json.dumps(dict(sorted(named.items())))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def filter_rule(self) -> FilterRule:
        """What a reply counts as that a provider's filter declined."""
        return "unscored" if self.protocol.get(FILTERED_KEY) == "unscored" else "refusal"

    @property
    def lacks_leak_rule(self) -> bool:
        """Whether answers were scored without the contract's leak rule, which needs the prompts."""
        return self.protocol.get("contracts", "").endswith(LEAKS_UNCHECKED)

    @property
    def human(self) -> bool:
        """Whether people wrote the replies."""
        return self.subject.get("engine") == HUMAN

    def differing(self, other: Signature) -> list[str]:
        """List the protocol keys in which two runs differ; prompts only where a model wrote the replies of both."""
        protocol = dict(self.protocol)
        other_protocol = dict(other.protocol)
        if self.human or other.human:
            protocol.pop("prompts", None)
            other_protocol.pop("prompts", None)
        return differing_keys(protocol, other_protocol)

    def to_dict(self) -> dict[str, dict[str, str]]:
        return {"protocol": dict(self.protocol), "subject": dict(self.subject)}

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Signature:
        """Read `{"protocol": {...}, "subject": {...}}`; the subject names engine and model. Raises DataError."""
        return read_record(cls, raw, f"{where}: signature", coerce=True)


def rescoring_advice(a: Signature, b: Signature, score_command: str) -> str:
    """Say which command makes protocols agree that differ in what scores; "" where scoring again changes nothing."""
    keys = {key for key in VERSION_KEYS if a.protocol.get(key) != b.protocol.get(key)}
    if not keys:
        return ""
    if a.lacks_leak_rule or b.lacks_leak_rule:
        score_command += " --prompts DIR"
    contracts = [signature.protocol.get("contracts", "") for signature in (a, b)]
    versions = {version.removesuffix(LEAKS_UNCHECKED) for version in contracts}
    if keys == {"contracts"} and len(versions) == 1:
        return (
            f"; one was scored without the contract's leak rule: `{score_command}`, with the templates that it was "
            "asked with, scores it with the rule"
        )
    return f"; other versions scored them: `{score_command}` scores the stored replies of each again with this one"


def without_versions(protocol: Mapping[str, str]) -> dict[str, str]:
    """A protocol without the versions of what scores: stored replies can be scored by those of another version."""
    unversioned = dict(protocol)
    for key in VERSION_KEYS & protocol.keys():
        if protocol[key] == "none":
            continue
        names = []
        if key == "metrics":
            names = [name.partition("-")[0] for name in protocol[key].split(",")]
        unversioned[key] = ",".join(names)
    return unversioned


def differing_keys(a: Mapping[str, str], b: Mapping[str, str]) -> list[str]:
    """List the keys whose values differ, as `key (a's, b's)`."""
    different = []
    for key in {**a, **b}:
        values = [signed.get(key, UNNAMED.get(key)) for signed in (a, b)]
        if values[0] != values[1]:
            texts = ", ".join("-" if value is None else value for value in values)
            different.append(f"{key} ({texts})")
    return different
