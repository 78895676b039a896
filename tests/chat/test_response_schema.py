"""Forms: the schema that providers are given, and which replies fill one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from h2htalk.chat.anthropic_wire import AnthropicWire
from h2htalk.chat.openai_wire import OpenAIWire
from h2htalk.chat.protocol import Call, Message, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.server import ServerWire
from h2htalk.curation.compose.generation import ProposalsReply
from h2htalk.data.responses import Failure
from support.doubles.providers import ProviderServer
from support.studies import block


class Tone(StrEnum):
    WARM = "warm"
    COLD = "cold"


class Evidence(BaseModel):
    quote: str = Field(description="word for word", max_length=40)
    turn: int = Field(ge=0)


class Verdict(BaseModel):
    evidence: list[Evidence] = Field(min_length=1, max_length=3)
    tone: Tone
    first: Evidence = Field(description="the one that counts most")
    kind: Literal["praise", "blame"]
    note: str | None
    weight: float = Field(gt=0, le=1)
    score: int = Field(ge=1, le=10)


FORM = ResponseSchema("verdict", Verdict)
QUOTE = {"quote": "I am here", "turn": 2}
FILLED: dict[str, Any] = {"evidence": [QUOTE], "tone": "warm", "first": QUOTE, "kind": "praise"}
FILLED |= {"note": None, "weight": 0.5, "score": 7}
TEXT = json.dumps(FILLED)


def with_(**changed: Any) -> str:
    return json.dumps(FILLED | changed)


def read(text: str, finish: str = "stop") -> BaseModel | Failure:
    return FORM.read(Reply(text, finish))


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n  {TEXT}\n\n",
        f"```json\n{TEXT}\n```\n",  # a judge that fences every reply was unscored throughout
        f"```\n{TEXT}```",
        f"```JSON\r\n{TEXT}\r\n```",
        f"~~~json\n{TEXT}\n~~~",
        f"\ufeff{TEXT}",  # a byte-order mark, as some servers on Windows send
        f"{TEXT}<|im_end|>\n",
        f"\ufeff```json\n{TEXT}\n```\n<|im_end|>",
        with_(weight=1),  # a whole number is a number
        with_(score=10),
        with_(note="\u5634\U0001f600"),
        json.dumps(dict(reversed(FILLED.items()))),  # order is asked for, and means nothing
    ],
)
def test_a_filled_form_is_read(text: str) -> None:
    filled = read(text)
    assert isinstance(filled, Verdict)
    assert filled.model_dump(mode="json") == json.loads(
        text[text.index("{") : text.rindex("}") + 1]
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "empty"),
        ("I would give this a 7.", "no JSON object"),
        (f"Here you are: {TEXT}", "no JSON object"),
        # Which of several objects is meant would be a guess, so that words around one are never read away.
        (f"Sure! Here is my judgement:\n\n```json\n{TEXT}\n```", "no JSON object"),
        (f"```json\n{TEXT}\n```\n\nLet me know if you need more.", "no JSON object"),
        (f"```json\n{TEXT}\n~~~", "no JSON object"),
        (f"<|im_end|>{TEXT}", "no JSON object"),
        (f"```json\n{TEXT}\n```\n```json\n{TEXT}\n```", "another text follows"),
        (f"[{TEXT}]", "not an object"),
        (TEXT[:-2], ": the JSON breaks off or is broken there"),
        (TEXT.replace("0.5", "NaN"), "NaN"),
        (TEXT[:-1] + ', "score": 8}', "repeated"),
        (with_(verdict="good"), "verdict"),
        (with_(evidence=[QUOTE | {"page": 1}]), "evidence.0.page"),
        (TEXT.replace('"note": null, ', ""), "note is missing"),
        (with_(score="7"), "score"),
        (with_(tone="lukewarm"), "tone"),
        (with_(score=11, kind="none"), "kind"),  # no form at all, whatever its numbers are
        (with_(note="\ud83d"), "hex escape"),
        ("[" * 200_000, "nested too deeply"),
        ("7" * 5000, "Exceeds the limit"),
    ],
)
def test_what_is_no_form_is_malformed_and_named(text: str, named: str) -> None:
    found = read(text)
    assert isinstance(found, Failure)
    assert found.reason == "malformed_output"
    assert named in found.message
    assert found.message.isprintable()
    assert len(found.message) < 500


OUT_OF_RANGE: list[tuple[str, dict[str, Any]]] = [
    *(("score", {"score": score}) for score in (0, 11)),
    *(("weight", {"weight": weight}) for weight in (0, 1.01, 10**400)),
    ("evidence", {"evidence": []}),
    ("evidence.0.quote", {"evidence": [{"quote": "x" * 41, "turn": 0}]}),
    ("first.turn", {"first": {"quote": "x", "turn": -1}}),
]


@pytest.mark.parametrize(("where", "changed"), OUT_OF_RANGE)
def test_a_broken_bound_is_out_of_range(where: str, changed: dict[str, Any]) -> None:
    found = read(with_(**changed))
    assert isinstance(found, Failure)
    assert (found.reason, where in found.message) == ("out_of_range", True)


def test_a_cut_reply_is_truncated_even_where_it_is_whole_json() -> None:
    """`"score": 10}` cut, and closed by a server's constraint, read as a score of 1."""
    cut = [
        read(TEXT[:end], end_of)
        for end in range(len(TEXT) + 1)
        for end_of in ("length", "context", "MAX_TOKENS")
    ]
    assert {getattr(found, "reason", None) for found in cut} == {"truncated"}
    for whole in ("unknown", "STOP", "end_turn", "eos_token", "tool_calls", "wandered_off"):
        assert isinstance(read(TEXT, whole), Verdict)
    refused = [read(text, "refusal") for text in ("", "I cannot help with that.", TEXT)]
    assert {getattr(one, "reason", None) for one in refused} == {"refusal"}
    filtered = [
        read(text, end_of) for text in ("", TEXT) for end_of in ("content_filter", "SAFETY")
    ]
    assert {getattr(one, "reason", None) for one in filtered} == {"filtered"}


@given(st.integers(0, len(TEXT)), st.text(max_size=3))
def test_a_form_with_text_put_in_is_never_read_as_something_else(place: int, put: str) -> None:
    found = read(TEXT[:place] + put + TEXT[place:])
    if isinstance(found, Verdict):
        assert json.loads(TEXT[:place] + put + TEXT[place:]) == found.model_dump(mode="json")


def test_every_object_is_closed_and_every_property_required_in_order() -> None:
    schema = FORM.schema()
    properties = schema["properties"]
    assert list(properties) == list(Verdict.model_fields)
    for part in (schema, schema["$defs"]["Evidence"], properties["first"]):
        assert (part["additionalProperties"], part["required"]) == (False, list(part["properties"]))
    assert properties["score"] == {"type": "integer", "minimum": 1, "maximum": 10}
    assert properties["first"]["description"] == "the one that counts most"
    assert "$ref" not in properties["first"]  # a reference with words beside it is none
    assert properties["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


class Titled(BaseModel):
    title: str
    default: int = Field(ge=1)
    minimum: int


def call_with(form: ResponseSchema) -> Call:
    request = Request("one", (Message("user", "Judge."),), Sampling(), response_schema=form)
    return Call((0,), (request,))


def anthropic_schema(form: ResponseSchema) -> dict[str, Any]:
    body = AnthropicWire("claude-test").body(call_with(form))
    schema: dict[str, Any] = body["output_config"]["format"]["schema"]
    return schema


def test_anthropic_reads_bounds_as_words_since_its_server_does_not_enforce_them() -> None:
    titled = ResponseSchema("titled", Titled)  # its properties are called like keywords
    assert list(titled.schema()["properties"]) == ["title", "default", "minimum"]
    properties = anthropic_schema(titled)["properties"]
    assert properties["minimum"] == {"type": "integer"}
    assert properties["default"] == {"type": "integer", "description": "{minimum: 1}"}
    schema = anthropic_schema(FORM)
    assert schema["properties"]["score"] == {
        "type": "integer",
        "description": "{maximum: 10, minimum: 1}",
    }
    assert schema["properties"]["evidence"]["minItems"] == 1  # this it enforces
    assert schema["$defs"]["Evidence"]["properties"]["quote"]["description"] == (
        "word for word\n\n{maxLength: 40}"
    )


def untyped(part: dict[str, Any]) -> dict[str, Any]:
    """The SDK leaves out the type beside an enumeration."""
    return {
        key: value
        for key, value in part.items()
        if key != "type" or not {"enum", "const"} & part.keys()
    }


@pytest.mark.parametrize("model", [Verdict, Titled, ProposalsReply])
def test_the_sdk_finds_nothing_left_to_move(model: type[BaseModel]) -> None:
    schema = anthropic_schema(ResponseSchema("form", model))
    assert anthropic.transform_schema(schema) == json.loads(json.dumps(schema), object_hook=untyped)


def test_openai_keeps_numeric_bounds_a_server_all_and_both_are_asked_to_be_strict() -> None:
    asked = ServerWire("m", None, "http://host/v1").body(call_with(FORM))["response_format"]
    assert asked["json_schema"] == {"name": "verdict", "strict": True, "schema": FORM.schema()}
    body = OpenAIWire("gpt-test").body(call_with(FORM))
    form = body["response_format"]["json_schema"]
    assert (form["name"], form["strict"], body["response_format"]["type"]) == (
        "verdict",
        True,
        "json_schema",
    )
    assert form["schema"]["properties"]["score"] == {"type": "integer", "minimum": 1, "maximum": 10}
    assert "maxLength" not in form["schema"]["$defs"]["Evidence"]["properties"]["quote"]


def test_the_example_and_the_price_file_of_the_pages_fill_a_form_and_book_the_call(
    tmp_path: Path,
) -> None:
    code = block("structured-replies.md", "python")
    prices = block("../reference/costs.md", "toml")
    (tmp_path / "own.toml").write_text(prices.replace("gpt-4o-2024-11-20", "gpt-test"))
    code = code.replace("gpt-4o-mini", "gpt-test").replace(
        "load_prices()", 'load_prices(Path("own.toml"))'
    )
    with ProviderServer() as server:
        words = [sys.executable, "-c", code]
        env = server.environment()
        done = subprocess.run(
            words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
        )
    assert done.stderr == ""
    assert re.fullmatch(r"evidence='.*' warmth=[0-5]\n", done.stdout)
    assert '"usd":"0.' in (tmp_path / "calls.jsonl").read_text()
