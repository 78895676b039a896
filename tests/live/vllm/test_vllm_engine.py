"""What `VLLMChat` promises, on the real engine with tiny checkpoints, held against `hf:` where both can do it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Chat, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from support.live.vllm_runs import write_adapter, write_tiny
from support.tiny_llama import NO_SYSTEM_TEMPLATE

pytestmark = pytest.mark.live

GREEDY = Sampling(max_tokens=12)
OPENING = "{% if add_generation_prompt %}<|im_start|>assistant\n"
# As Qwen3's: reasoning unless it is told otherwise.
SWITCH = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% "
    "else %}<think>\n{% endif %}"
)
THINKING_NO_SYSTEM = NO_SYSTEM_TEMPLATE.replace(OPENING, OPENING + SWITCH)


def open_vllm(folder: Path, **engine: object) -> Chat:
    return open_chat(
        f"vllm:{folder}",
        ChatOptions(engine_options={key: str(value) for key, value in engine.items()}),
    )


def ask(number: int, sampling: Sampling = GREEDY, words: int = 1) -> Request:
    text = "Good morning, " * words + f"how was day {number}?"
    return Request(
        f"item-{number}", (Message("system", "Be kind."), Message("user", text)), sampling
    )


def texts(outcomes: list[Outcome]) -> list[str]:
    return [outcome.text for outcome in outcomes if isinstance(outcome, Reply)]


@pytest.fixture(scope="module")
def chat(tiny: Path) -> Iterator[Chat]:
    with closing(open_vllm(tiny, max_num_seqs=8)) as chat:
        yield chat


@pytest.fixture(scope="module")
def local(tiny: Path) -> Chat:
    return open_chat(f"hf:{tiny}")


def timeless(outcomes: list[Outcome]) -> list[Outcome]:
    """Replies without the seconds that they took, which `hf:` does not know."""
    return [replace(one, seconds=None) if isinstance(one, Reply) else one for one in outcomes]


def assert_same_but_for_ties(ours: list[Outcome], theirs: list[Outcome]) -> None:
    """Two engines in float32 differ in the last bits of a logit, which decides nearly tied tokens: of few answers."""
    assert len(texts(ours)) == len(texts(theirs)) == len(ours)
    same = [mine == other for mine, other in zip(timeless(ours), timeless(theirs), strict=True)]
    assert sum(same) >= 0.8 * len(same)


def test_greedy_answers_are_those_of_hf(chat: Chat, local: Chat) -> None:
    requests = [
        ask(number, Sampling(max_tokens=6 + number), words=number % 7) for number in range(20)
    ]
    assert_same_but_for_ties(chat.complete(requests), local.complete(requests))


def test_each_item_is_handed_over_while_others_run_and_order_is_kept(chat: Chat) -> None:
    requests = [ask(number, Sampling(max_tokens=60 if number < 4 else 2)) for number in range(12)]
    handed: list[int] = []
    outcomes = chat.complete(requests, lambda index, _: handed.append(index))
    assert sorted(handed) == list(range(12))
    # Short ones do not wait for the long ones that were sent before them, however soon a busy machine starts them.
    assert min(map(handed.index, range(4, 12))) < max(map(handed.index, range(4)))
    lengths = [one.usage.output_tokens or 99 for one in outcomes if isinstance(one, Reply)]
    assert all(
        length <= request.sampling.max_tokens
        for length, request in zip(lengths, requests, strict=True)
    )


def test_a_sample_depends_on_its_own_seed(chat: Chat) -> None:
    asked = [
        replace(ask(1, Sampling(1.0, 0.9, 15, seed=seed)), sample=seed) for seed in (1, 2, 3, 4)
    ]
    first = texts(chat.complete(asked))
    assert texts(chat.complete(asked[::-1])) == first[::-1]
    assert len(set(first)) > 1


class Verdict(BaseModel):
    evidence: Literal["a calm word", "a kind word"]
    score: Literal[0, 1, 2, 3, 4, 5]


def test_a_form_is_kept(chat: Chat) -> None:
    """A model of random weights writes JSON of the form: the engine lets it write nothing else."""
    form = ResponseSchema("verdict", Verdict)
    requests = [
        replace(ask(n, Sampling(1.0, 1.0, 200, seed=n)), response_schema=form) for n in range(4)
    ]
    for outcome in chat.complete(requests):
        assert isinstance(outcome, Reply)
        assert isinstance(form.read(outcome), Verdict)


def test_the_subject_names_what_changes_answers(chat: Chat, local: Chat) -> None:
    ours = dict(chat.subject)
    theirs = dict(local.subject)
    assert ours["engine"] == "vllm"
    for key in (
        "model",
        "weights_sha256",
        "chat_template_sha256",
        "system_role",
        "precision",
        "device",
    ):
        assert ours[key] == theirs[key]
    assert {"vllm", "torch", "transformers"} <= set(ours["engine_version"].replace(",", "").split())
    assert "max_num_seqs" not in ours


def test_no_system_role_reasoning_by_vllm_s_parser_and_two_copies_of_the_model(
    tmp_path: Path,
) -> None:
    """Data parallel needs a path of its own in vLLM; the answers are those of `hf:` all the same."""
    from transformers import AutoTokenizer

    folder = write_tiny(tmp_path / "thinker", THINKING_NO_SYSTEM, vocab_size=402)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # Special tokens: decoded as plain text they would be gone.
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    tokenizer.save_pretrained(folder)
    local = open_chat(f"hf:{folder}")
    with closing(
        open_vllm(folder, data_parallel_size=2, kv_cache_gb=0.5, reasoning_parser="deepseek_r1")
    ) as chat:
        assert chat.subject["system_role"] == "folded"
        told = [ask(number, Sampling(max_tokens=6, thinking=10)) for number in range(8)]
        without = [ask(number, Sampling(max_tokens=12, thinking=0)) for number in range(8)]
        assert_same_but_for_ties(chat.complete(without), local.complete(without))
        # A random model may end its reasoning. Where it does not, there is no answer: reasoning is not scored as one.
        replies = [reply for reply in chat.complete(told) if isinstance(reply, Reply)]
        assert len(replies) == 8
        assert all(
            reply.thinking and "think>" not in reply.thinking + reply.text for reply in replies
        )
        assert "" in [reply.text for reply in replies]


def test_an_adapter_answers_as_the_model_with_its_matrices_added(
    tiny: Path, tmp_path: Path
) -> None:
    adapter, merged = write_adapter(tiny, tmp_path)
    requests = [ask(number) for number in range(10)]
    with closing(open_vllm(tiny, lora=adapter)) as chat:
        adapted = chat.complete(requests)
    assert_same_but_for_ties(adapted, open_chat(f"hf:{merged}").complete(requests))
    assert timeless(adapted) != open_chat(f"hf:{tiny}").complete(requests)
    assert (chat.subject["lora"], len(chat.subject["lora_sha256"])) == ("adapter", 64)
