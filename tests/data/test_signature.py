"""A signature has two parts: runs may be compared when their protocols agree, whatever the subject is."""

from __future__ import annotations

from typing import Any

import pytest

from h2htalk.data.signature import Signature, differing_keys
from h2htalk.errors import DataError

PROTOCOL = {"items": "0123", "prompts": "abcd", "tokens": "13a", "embedder": "none"}
SUBJECT = {"engine": "hf", "model": "tiny", "seed": "0"}
SIGNATURE = Signature(PROTOCOL, SUBJECT)


def test_it_reads_as_one_line_in_its_own_order_and_survives_its_own_dict() -> None:
    assert Signature.from_dict(SIGNATURE.to_dict(), "run.json") == SIGNATURE
    assert str(SIGNATURE) == ("items:0123|prompts:abcd|tokens:13a|embedder:none|engine:hf|model:tiny|seed:0")


def test_the_fingerprint_is_the_protocols_whatever_the_order_and_the_subject() -> None:
    backwards = dict(reversed(PROTOCOL.items()))
    assert Signature(backwards, {"model": "other"}).fingerprint == SIGNATURE.fingerprint
    assert len(SIGNATURE.fingerprint) == 12
    for key in (*PROTOCOL, "judge"):
        assert Signature({**PROTOCOL, key: "else"}, SUBJECT).fingerprint != SIGNATURE.fingerprint


def test_differing_keys_name_both_values_and_what_is_missing() -> None:
    assert differing_keys(PROTOCOL, PROTOCOL) == []
    differing = differing_keys({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"})
    assert differing == ["a (1, -)", "c (3, 4)", "d (-, 5)"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"protocol": PROTOCOL}, "subject: is missing"),
        ({"protocol": PROTOCOL, "subject": {"seed": "0"}}, "subject: must name engine and model"),
        ({"protocol": {"items": 1}, "subject": SUBJECT}, "protocol.items: must be text, not 1"),
    ],
)
def test_what_is_no_signature_is_named(raw: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^run.json: signature: {message}"):
        Signature.from_dict(raw, "run.json")
