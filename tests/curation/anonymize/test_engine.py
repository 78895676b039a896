"""Our recognisers in Presidio's engines: what they find, who finds it, and what replaces it; no network, no model."""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.util import find_spec

import pytest

if find_spec("presidio_analyzer") is None:
    pytest.skip("the curation extra is not installed", allow_module_level=True)

from h2htalk.curation.anonymize.engine.analyzer import (
    FAMILIES,
    anonymize_text,
    chat_analyzer,
    find_in_dialogue,
    operator_configs,
)
from h2htalk.curation.anonymize.spans import TYPES
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates
from h2htalk.errors import ConfigError

KEY = b"k" * 32


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a recogniser called out")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_presidios_analyzer_finds_what_the_stage_finds() -> None:
    text = "我叫张伟，邮箱是lin88@qq.com吧，电话13812345678，QQ 12345678，住在和平里小区6栋176"
    results = chat_analyzer("zh").analyze(text, language="zh")
    assert sorted((r.start, r.end, r.entity_type, r.score) for r in results) == [
        (s.start, s.end, s.type, s.score) for s in find_in_dialogue([text], "zh").spans[0]
    ]
    assert {r.entity_type for r in results} == {"PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER", "QQ", "ADDRESS"}


def test_entities_can_be_chosen() -> None:
    text = "my name is Tom Baker, mail tom@baker.com"
    results = chat_analyzer("en").analyze(text, language="en", entities=["PERSON"])
    assert [r.entity_type for r in results] == ["PERSON"]
    spans = find_in_dialogue([text], "en", keep=["PERSON"]).spans[0]
    assert [span.type for span in spans] == ["EMAIL_ADDRESS"]


def test_every_type_has_a_family_and_a_family_taken_out_loses_its_types() -> None:
    assert sorted(kind for types in FAMILIES.values() for kind in types) == sorted(TYPES)
    text = "my name is Tom Baker, mail tom@baker.com, phone 415-555-2671, I work at Mercy Hospital"
    for name, types in FAMILIES.items():
        analyzer = chat_analyzer.__wrapped__("en")
        found = {r.entity_type for r in analyzer.analyze(text, language="en")}
        analyzer.registry.remove_recognizer(name)
        assert {r.entity_type for r in analyzer.analyze(text, language="en")} == found - set(types)


def test_a_value_is_found_in_every_message_and_its_recogniser_is_told() -> None:
    spans = find_in_dialogue(["我叫张伟", "那个，张伟他", "随便"], "zh").spans
    assert [[(s.start, s.end, s.found_by) for s in each] for each in spans] == [
        [(2, 4, "ChatPersonRecognizer")],
        [(3, 5, "ChatPersonRecognizer")],
        [],
    ]
    spans = find_in_dialogue(["my name is Talia Brook", "ok TALIA"], "en").spans
    assert [s.found_by for s in spans[1]] == ["RepeatedValue"]


def test_an_unknown_language_is_an_error() -> None:
    with pytest.raises(ConfigError, match="choose from en, zh"):
        chat_analyzer("fr")


def _anonymized(text: str, **operators: str) -> str:
    data = find_in_dialogue([text], "en")
    configs = operator_configs(Surrogates(KEY, [text], data), operators, KEY)
    return anonymize_text(text, data.spans[0], configs)[0]


def test_operators_replace_by_type() -> None:
    text = "my friends Tom Baker and Ann Miller, mail tom@baker.com"
    made = _anonymized(text, PERSON="mask", EMAIL_ADDRESS="redact")
    assert made == "my friends ********* and **********, mail "
    hashed = _anonymized(text, EMAIL_ADDRESS="hash")
    assert hashed == _anonymized(text, EMAIL_ADDRESS="hash")
    assert len(hashed.rsplit(" ", 1)[1]) == 64
    surrogates = _anonymized(text)
    assert "Baker" not in surrogates
    assert surrogates.startswith("my friends ")


@pytest.mark.parametrize("operator", ["surrogate", "mask", "hash", "redact"])
def test_half_surrogates_inside_a_value_break_no_operator(operator: str) -> None:
    text = "call \ud800 me: 415-555-\u200b2671 \udfff, my name is Tom\ud83d Baker"
    assert "2671" not in _anonymized(text, DEFAULT=operator)


def test_a_worker_imports_neither_torch_nor_transformers_and_stays_small() -> None:
    code = """
import re, sys
from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue
find_in_dialogue(["my name is Tom Baker, I work at Mercy Hospital", "Tom lives at 12 Oak Street"] * 20, "en")
find_in_dialogue(["我叫张伟，电话13812345678，住在和平里小区6栋176"] * 20, "zh")
print([name for name in ("torch", "transformers", "gliner") if name in sys.modules])
print(int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    imported, megabytes = done.stdout.split("\n")[:2]
    assert imported == "[]"
    assert int(megabytes) <= 410  # 402 with the oldest versions of what it needs
