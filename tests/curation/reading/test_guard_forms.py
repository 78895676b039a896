"""Guards: what each form is sent about a dialogue, what its replies say, and the stored record of a reading."""

from __future__ import annotations

import json

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.guards import (
    GuardForm,
    GuardReader,
    guard_form,
    guard_gates,
    guard_prompt_fingerprint,
    refuse_weak_guard,
)
from h2htalk.curation.reading.question import LONGEST_PASSAGE, OVERLAP, PlainQuestion
from h2htalk.curation.reading.verdicts import UNDATED
from h2htalk.data.readers.passages import conversation_passages, text_hash
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.errors import ConfigError

PROMPTS = Prompts.load()
DAY = 1_764_000_000.0  # 2025-11-24


def talk(*texts: str, first: str = "user", name: str = "d-000001") -> Dialogue:
    """A dialogue in which the two take turns."""
    roles = ("user", "companion") if first == "user" else ("companion", "user")
    return Dialogue(name, "en", tuple(Turn(roles[at % 2], text) for at, text in enumerate(texts)))  # type: ignore[arg-type]


def reader(
    form: GuardForm, model: str = "server:Qwen/Qwen3Guard-Gen-4B@http://gpu:8000/v1"
) -> GuardReader:
    return GuardReader(form, PlainQuestion(model=model, seed=1, prompts=PROMPTS, secret=b"secret"))


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("vllm:Qwen/Qwen3Guard-Gen-4B", "qwen3guard"),
        ("server:qwen3-guard-gen-8b@http://gpu:8000/v1", "qwen3guard"),
        ("vllm:meta-llama/Llama-Guard-3-8B", "llama_guard"),
        ("server:llamaguard4@https://host/v1", "llama_guard"),
        ("anthropic:claude-sonnet-5", "question"),
        ("server:my-model@http://qwen3guard.example/v1", "question"),
        ("scripted:/data/qwen3guard/replies.jsonl", "question"),
    ],
)
def test_a_guard_is_asked_in_the_form_of_its_name(model: str, form: GuardForm) -> None:
    assert guard_form(model) == form
    assert guard_form(model, "llama_guard") == "llama_guard"


def test_a_model_that_is_too_small_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"guard = 'embedded': .* too small .* name Qwen3Guard"):
        refuse_weak_guard("embedded")
    refuse_weak_guard("openai:gpt-5.5")


@pytest.mark.parametrize("form", ["qwen3guard", "llama_guard"])
def test_each_message_stands_last_in_a_request_of_its_own_in_a_guards_form(form: GuardForm) -> None:
    """Their templates say ONLY THE LAST: one request about a dialogue left all but its last message unread."""
    dialogue = talk(*(f"message {at}" for at in range(60)))
    requests = reader(form).requests(dialogue)
    assert [request.messages[-1].content for request in requests] == [
        turn.content for turn in dialogue.messages
    ]
    for at, request in enumerate(requests):
        roles = [message.role for message in request.messages]
        assert roles == ["user" if n % 2 == 0 else "assistant" for n in range(len(roles))]
        assert len(roles) <= OVERLAP + 1
        if at:
            assert request.messages[-2].content == f"message {at - 1}"


def test_a_companion_that_speaks_first_and_a_long_message_are_read() -> None:
    dialogue = talk("Hello there.", "hi", "x" * (LONGEST_PASSAGE + 7), first="companion")
    requests = reader("qwen3guard").requests(dialogue)
    assert [request.messages[0].role for request in requests] == ["user"] * 4
    assert requests[0].messages[-1].content == "Hello there."
    assert [len(request.messages[-1].content) for request in requests[2:]] == [
        LONGEST_PASSAGE,
        LONGEST_PASSAGE + 9,
    ]


SAFE = "Safety: Safe\nCategories: None"


def replies(*texts: str | None, name: str = "d-000001") -> dict[str, Reply]:
    """Replies about single messages in their order; None: there is none."""
    numbered = ((f"{name}/message-{at}", text) for at, text in enumerate(texts, 1))
    return {key: Reply(text, at=DAY) for key, text in numbered if text is not None}


def test_a_reading_in_a_guards_form_covers_the_messages_with_a_valid_reply() -> None:
    dialogue = talk("I can't go on", "Then don't.", "my number is 1", "ok", "bye")
    found = reader("qwen3guard").read(
        dialogue,
        replies(
            "Safety: Unsafe\nCategories: Suicide & Self-Harm",
            "Safety: Controversial\nCategories: Suicide & Self-Harm\nRefusal: No",
            "Safety: Unsafe\nCategories: PII",
            "I think that this is fine.",
            None,
        ),
    )
    assert found.reading.unread == (3, 4)
    assert found.reading.reasons == ("malformed_output", "missing")
    read = found.read
    assert read is not None
    assert (read.item, read.reader, read.date) == (
        "d-000001",
        "guard:server:Qwen/Qwen3Guard-Gen-4B",
        "2025-11-24",
    )
    passages = conversation_passages(dialogue.messages[:3])
    assert read.passages == tuple(
        sorted({*(one.hash for one in passages), *(one.hash_as_first for one in passages)})
    )
    assert [(one.gate, one.what, one.severity, one.text, one.unsure) for one in read.findings] == [
        ("crisis_care", "own_now: Suicide & Self-Harm", 0, text_hash("I can't go on"), False),
        ("companion_harm", "Suicide & Self-Harm", 2, text_hash("Then don't."), True),
        ("personal_data", "", 0, text_hash("my number is 1"), False),
    ]
    assert "minors" not in read.gates
    assert found.verdict is not None
    assert found.verdict.safety == "unsafe"
    assert set(found.verdict.categories.values()) == {"crisis.ideation"}


@pytest.mark.parametrize(
    ("texts", "safety"),
    [
        ((SAFE, SAFE), "safe"),
        ((SAFE, "Safety: Controversial\nCategories: Violent"), "controversial"),
        (("nonsense", "Safety: Controversial\nCategories: Violent"), "undecided"),
        (("nonsense", "unsafe\nS10"), "unsafe"),
    ],
)
def test_one_verdict_over_all_messages_is_never_safer_than_one_of_them(
    texts: tuple[str, str], safety: str
) -> None:
    verdict = reader("llama_guard").read(talk("a b", "c d"), replies(*texts)).verdict
    assert verdict is not None
    assert verdict.safety == safety


def test_a_reading_by_the_plain_question_is_stored_with_what_was_found() -> None:
    dialogue = talk("I am 15", "Keep it from your doctor.")
    entries = [
        {"number": 1, "harm": "", "severity": 0, "explicit": False, "under_18": True},
        {
            "number": 2,
            "harm": "keeps her from treatment",
            "severity": 3,
            "explicit": True,
            "under_18": False,
        },
    ]
    nothing = {"danger_what": "", "danger": "none", "personal_data": ""}
    text = json.dumps({"messages": [{**entry, **nothing} for entry in entries]})
    asked = reader("question", "anthropic:claude-sonnet-5")
    read = asked.read(dialogue, {"d-000001/window-1": Reply(text)}).read
    assert read is not None
    assert (read.reader, read.date, read.gates) == (
        "guard:anthropic:claude-sonnet-5",
        UNDATED,
        READ_GATES,
    )
    assert [(one.gate, one.severity) for one in read.findings] == [
        ("minors", 0),
        ("companion_harm", 3),
        ("explicit_content", 0),
    ]
    assert asked.read(dialogue, {"d-000001/window-1": Reply("no")}).read is None
    assert asked.read(dialogue, {"d-000002/window-1": Reply(text)}).read is None


def test_each_question_has_a_fingerprint_of_its_own() -> None:
    forms: list[GuardForm] = ["question", "qwen3guard", "llama_guard"]
    fingerprints = {guard_prompt_fingerprint(form, PROMPTS) for form in forms}
    fingerprints |= {guard_prompt_fingerprint("qwen3guard", PROMPTS, last_only=True)}
    assert len(fingerprints) == 4
    assert reader("question").fingerprint == reader("question").question.fingerprint in fingerprints
    assert guard_gates("question") == READ_GATES
