"""`hf:`: a checkpoint of transformers, in batches, each answer as if it were asked alone."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.local.chat_template import fold_system
from h2htalk.chat.local.checkpoints import describe_checkpoint
from h2htalk.chat.local.hf import _SeededDraw
from h2htalk.chat.protocol import Chat, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError
from support.tiny_llama import (
    CONTEXT,
    NO_SYSTEM_TEMPLATE,
    SYSTEM_DROPPING_TEMPLATE,
    TINY,
    VOCABULARY,
    write_tiny_llama,
)

pytestmark = pytest.mark.local
torch = pytest.importorskip("torch", reason="hf: needs torch")
transformers = pytest.importorskip("transformers", reason="hf: needs transformers")

GREEDY = Sampling(max_tokens=12)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_llama(tmp_path_factory.mktemp("tiny") / "tiny-llama")


@pytest.fixture(scope="module")
def chat(checkpoint: Path) -> Chat:
    return open_chat(f"hf:{checkpoint}")


def ask(number: int, sampling: Sampling = GREEDY, words: int | None = None) -> Request:
    """Requests of many lengths: the number decides how long the user's message is."""
    text = (
        "Good morning, " * (number * 5 % 7 if words is None else words) + f"how was day {number}?"
    )
    return Request(
        f"item-{number}", (Message("system", "Be kind."), Message("user", text)), sampling
    )


def alone(chat: Chat, requests: list[Request]) -> list[Outcome]:
    return [chat.complete([request])[0] for request in requests]


def test_greedy_text_is_what_generate_gives(chat: Chat, checkpoint: Path) -> None:
    """The reference is transformers' own decoding of one prompt at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(checkpoint)
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    requests = [ask(number) for number in range(4)]
    expected = []
    for request in requests:
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        inputs = tokenizer.apply_chat_template(
            turns, add_generation_prompt=True, return_tensors="pt"
        )
        output = model.generate(**inputs, max_new_tokens=12, do_sample=False, pad_token_id=0)
        prompt = inputs["input_ids"].shape[1]
        expected.append((tokenizer.decode(output[0, prompt:], skip_special_tokens=True), prompt))
    found = [one for one in chat.complete(requests) if isinstance(one, Reply)]
    assert [(one.text, one.usage.input_tokens) for one in found] == expected
    assert len(set(expected)) > 1


def test_neighbours_and_parts_change_nothing(
    chat: Chat, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [
        ask(n, Sampling(float(n % 4 == 3), 0.9, 3 + n % 5, seed=3)) for n in range(8)
    ]  # greedy and drawn
    expected = alone(chat, requests)
    assert open_chat(f"hf:{checkpoint}", ChatOptions(concurrency=3)).complete(requests) == expected
    assert chat.complete(requests) == expected
    monkeypatch.setattr("h2htalk.chat.local.hf.PREFILL_TOKENS", 8 * 7)
    assert chat.complete(requests) == expected


@pytest.mark.slow
@pytest.mark.parametrize("top_p", [1.0, 0.8])
def test_a_sample_depends_on_its_own_seed_alone(chat: Chat, top_p: float) -> None:
    requests = [ask(number, Sampling(1.0, top_p, 15, seed=number)) for number in range(16)]
    together = chat.complete(requests)
    assert together == alone(chat, requests)
    assert together == chat.complete(requests[::-1])[::-1]
    reseeded = [ask(number, Sampling(1.0, top_p, 15, seed=number + 99)) for number in range(16)]
    assert chat.complete(reseeded) != together


@pytest.mark.parametrize(
    ("temperature", "top_p", "shares"),
    [
        (1.0, 1.0, [0.2, 0.5, 0.3, 0]),
        (1.0, 0.7, [0, 0.625, 0.375, 0]),  # the nucleus: tokens 1 and 2, five to three
        (1.0, 0.5, [0, 1, 0, 0]),
        (0.5, 1.0, [4 / 38, 25 / 38, 9 / 38, 0]),  # odds are squared
    ],
)
def test_frequencies_are_those_of_the_distribution(
    temperature: float, top_p: float, shares: list[float]
) -> None:
    draw = _SeededDraw(range(4000), temperature, top_p, "cpu")
    logits = torch.tensor([0.2, 0.5, 0.3, 0.0]).log().expand(4000, 4)
    tokens = draw(None, logits).argmax(-1)
    counts = torch.bincount(tokens, minlength=4) / 4000
    for count, share in zip(counts.tolist(), shares, strict=True):
        assert abs(count - share) <= 4 * (share * (1 - share) / 4000) ** 0.5
    assert draw(None, logits).argmax(-1).tolist() != tokens.tolist() or max(shares) == 1


def test_any_of_several_end_tokens_ends_an_answer(chat: Chat, tmp_path: Path) -> None:
    """With the upper half of the vocabulary as end tokens, an answer ends where it first writes one of them."""
    ends = tuple(range(VOCABULARY // 2, VOCABULARY))
    short: Any = open_chat(f"hf:{write_tiny_llama(tmp_path / 'ends', stops=ends)}")
    requests = [ask(number) for number in range(8)]
    for reply, longer in zip(short.complete(requests), chat.complete(requests), strict=True):
        assert isinstance(longer, Reply)
        assert reply.finish_reason == "stop"
        assert 1 <= reply.usage.output_tokens < (longer.usage.output_tokens or 0)
        # These end tokens are words as others are: decoded, the last would be part of the answer.
        assert len(reply.text) < len(longer.text)
        assert reply.usage.output_tokens != 1 or reply.text == ""


def test_outcomes_are_handed_over_as_they_end_and_returned_in_order(chat: Chat) -> None:
    requests = [ask(number, Sampling(max_tokens=20 - number), words=1) for number in range(10)]
    handed: dict[int, Outcome] = {}
    returned = chat.complete(requests, handed.__setitem__)
    assert [handed[index] for index in range(10)] == returned
    # One batch: who may write fewer tokens is finished first.
    lengths = [one.usage.output_tokens or 0 for one in handed.values() if isinstance(one, Reply)]
    assert lengths == sorted(lengths)


def test_what_cannot_be_asked_fails_and_the_others_go_on(tmp_path: Path) -> None:
    chat = open_chat(f"hf:{write_tiny_llama(tmp_path / 'strict', NO_SYSTEM_TEMPLATE)}")
    twice = Request("twice", (Message("user", "Hello"), Message("user", "Hello?")), GREEDY)
    requests = [ask(1), ask(2, words=200), ask(3, Sampling(max_tokens=CONTEXT)), twice]
    fine, *failed = chat.complete(requests)
    assert fine == chat.complete([ask(1)])[0]
    assert [one.reason for one in failed if isinstance(one, Failure)] == ["context_length"] * 2 + [
        "chat_template"
    ]
    assert re.search(rf"more than the model's {CONTEXT}.*must alternate", str(failed))


@pytest.mark.slow
def test_a_batch_that_does_not_fit_is_halved(checkpoint: Path) -> None:
    requests = [ask(number) for number in range(9)]
    chat: Any = open_chat(f"hf:{checkpoint}")
    expected = chat.complete(requests)
    rows = 2  # that the device holds at a time

    def refuse(_: Any, args: Any, inputs: dict[str, Any]) -> None:
        if len(inputs["input_ids"]) > rows:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 MiB")

    chat._model.register_forward_pre_hook(refuse, with_kwargs=True)
    handed: list[int] = []
    assert chat.complete(requests, lambda index, _: handed.append(index)) == expected
    assert sorted(handed) == list(range(9))
    rows = 0
    assert [one.reason for one in chat.complete([ask(0)])] == ["out_of_memory"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "own"),
    [
        ("MistralConfig", {"sliding_window": 16}),
        ("Lfm2Config", {"layer_types": ["conv", "full_attention"]}),
    ],
)
def test_other_architectures_keep_their_rows_apart(
    kind: str, own: dict[str, Any], tmp_path: Path
) -> None:
    config = getattr(transformers, kind)(**TINY, **own)
    chat = open_chat(f"hf:{write_tiny_llama(tmp_path / 'tiny', config=config)}")
    requests = [ask(number, Sampling(max_tokens=4 + number)) for number in range(8)]
    outcomes = chat.complete(requests)
    assert outcomes == alone(chat, requests)
    assert len({outcome.text for outcome in outcomes if isinstance(outcome, Reply)}) > 1


@pytest.mark.parametrize("template", [NO_SYSTEM_TEMPLATE, SYSTEM_DROPPING_TEMPLATE])
def test_without_a_system_role_its_text_goes_to_the_user(
    chat: Chat, template: str, tmp_path: Path
) -> None:
    folding = open_chat(f"hf:{write_tiny_llama(tmp_path / 'gemma', template)}")
    assert (folding.subject["system_role"], chat.subject["system_role"]) == ("folded", "native")
    folded = Request("x", (Message("user", "Be kind.\n\nHow are you?"),), GREEDY)
    with_system = Request(
        "x", (Message("system", "Be kind."), Message("user", "How are you?")), GREEDY
    )
    assert folding.complete([with_system]) == chat.complete([folded])
    hello = Message("user", "Hello")
    reply = Message("assistant", "Hi")
    system = Message("system", "Be kind.")
    assert fold_system([Message("system", ""), hello, reply]) == [hello, reply]
    assert fold_system([system, hello, reply]) == [Message("user", "Be kind.\n\nHello"), reply]
    assert fold_system([system, reply, hello]) == [Message("user", "Be kind."), reply, hello]
    assert fold_system([system]) == [Message("user", "Be kind.")]


def test_the_subject_names_weights_template_engine_and_device(checkpoint: Path, chat: Chat) -> None:
    subject = chat.subject
    assert (subject["engine"], subject["model"], subject["precision"]) == (
        "hf",
        "tiny-llama",
        "float32",
    )
    assert len(subject["weights_sha256"]) == len(subject["chat_template_sha256"]) == 64
    assert (
        subject["engine_version"]
        == f"transformers {transformers.__version__}, torch {torch.__version__}"
    )
    assert str(checkpoint.parent) not in str(dict(subject))


def test_what_it_cannot_be_held_to_is_an_error(chat: Chat) -> None:
    with pytest.raises(ConfigError, match="'verdict'; choose vllm:"):
        chat.complete([replace(ask(0), response_schema=ResponseSchema("verdict", BaseModel))])
    with pytest.raises(ConfigError, match="--model-sampling"):
        chat.complete([ask(0, Sampling(None))])


# --- Opening a checkpoint: quietly from a folder, and one line of advice for each way in which it fails

tiny = pytest.fixture(lambda tmp_path: write_tiny_llama(tmp_path / "tiny"), name="tiny")


@pytest.fixture
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("nothing here may use the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("_offline")
def test_a_folder_is_read_without_the_network_and_without_a_word(
    tiny: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    chat = open_chat(f"hf:{tiny}")
    asked = (Message("user", "Good morning, how are you?"),)
    chat.complete(
        [Request("a", asked, Sampling(max_tokens=5)), Request("b", asked, Sampling(0.7, 0.9, 5))]
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_offline")
@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("", "hf:OWNER/NAME"),
        ("/no/such/folder", "not a folder with a config.json"),
        ("./no-such-folder", "not a folder with a config.json"),
        ("nobody/no-such-model", "not in the local Hugging Face cache: fetch it with --download"),
    ],
)
def test_a_model_that_is_not_there(name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=advice):
        open_chat(f"hf:{name}")


# What happened to a file (None: it is gone) -> the one line of advice.
DAMAGED: dict[str, tuple[str, bytes | None, str]] = {
    # It says what ends an answer: without it the model would write on to its budget.
    "generation config": (
        "generation_config.json",
        b'{"eos_token_id": [0, ',
        "generation_config.json",
    ),
    "tokenizer": ("tokenizer.json", None, "tokenizer.json is missing or damaged; check that"),
    "weights": ("model.safetensors", b"half", "check that the checkpoint is complete"),
    "no weights": ("model.safetensors", None, "contains no *.safetensors"),
    "own code": (
        "config.json",
        b'{"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}',
        "which h2htalk never",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_checkpoint_is_one_line_of_advice_and_its_code_is_never_run(
    name: str, tiny: Path
) -> None:
    file, content, advice = DAMAGED[name]
    (tiny / "own.py").write_text("raise SystemExit('this code was run')")
    (tiny / file).unlink()
    if content is not None:
        (tiny / file).write_bytes(content)
    with pytest.raises(ConfigError, match=rf"^.*{re.escape(advice)}.*$"):
        open_chat(f"hf:{tiny}")
    if name != "weights":  # vllm: reads them itself
        with pytest.raises(ConfigError, match="vllm:"):
            describe_checkpoint("vllm", str(tiny))


def test_missing_weights_are_not_made_up(tiny: Path) -> None:
    """transformers fills a missing tensor with random numbers and only logs it."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(tiny / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, tiny / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"1 weights are missing.*layers\.1\.mlp\.up_proj"):
        open_chat(f"hf:{tiny}")


def test_an_edited_setting_is_another_model_in_the_signature(tiny: Path) -> None:
    found = [describe_checkpoint("hf", str(tiny)).identity()]
    for name in (
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "README.md",
    ):  # answers ignore the last
        with (tiny / name).open("a") as file:
            file.write("\n")
        found.append(describe_checkpoint("hf", str(tiny)).identity())
    assert [len({one[key] for one in found}) for key in ("weights_sha256", "settings_sha256")] == [
        1,
        4,
    ]
    assert found[-1] == found[-2]
