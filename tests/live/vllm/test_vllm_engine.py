"""What `VLLMChat` promises, on the real engine with tiny checkpoints, held against `hf:` where both can do it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict
from tiny_llama import NO_SYSTEM_TEMPLATE
from vllm_double import family, wait_until_gone
from vllm_runs import write_adapter, write_tiny

from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.local.chat_template import ChatTemplate
from h2htalk.chat.local.checkpoints import open_checkpoint
from h2htalk.chat.protocol import Chat, Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.errors import ModelCallError

pytestmark = pytest.mark.live

GREEDY = Sampling(max_tokens=12)
OPENING = "{% if add_generation_prompt %}<|im_start|>assistant\n"
# As Qwen3's: reasoning unless it is told otherwise.
SWITCH = (
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}"
)
THINKING_NO_SYSTEM = NO_SYSTEM_TEMPLATE.replace(OPENING, OPENING + SWITCH)


def open_vllm(folder: Path, **engine: object) -> Chat:
    return open_chat(f"vllm:{folder}", ChatOptions(engine_options={key: str(value) for key, value in engine.items()}))


def ask(number: int, sampling: Sampling = GREEDY, words: int = 1) -> Request:
    text = "Good morning, " * words + f"how was day {number}?"
    return Request(f"item-{number}", (Message("system", "Be kind."), Message("user", text)), sampling)


def texts(outcomes: list[Outcome]) -> list[str]:
    return [outcome.text for outcome in outcomes if isinstance(outcome, Reply)]


@pytest.fixture(scope="module")
def chat(tiny: Path) -> Iterator[Chat]:
    chat = open_vllm(tiny, max_num_seqs=8)
    yield chat
    chat.close()


@pytest.fixture(scope="module")
def local(tiny: Path) -> Chat:
    return open_chat(f"hf:{tiny}")


def timeless(outcomes: list[Outcome]) -> list[Outcome]:
    """Replies without the seconds that they took, which `hf:` does not know."""
    return [replace(one, seconds=None) if isinstance(one, Reply) else one for one in outcomes]


# Two engines in float32 differ by less than this in a logit (measured: some 1e-4); logits range over tens.
MARGIN = 0.01


@dataclass(frozen=True, slots=True)
class NearTie:
    """`step`: the first token that differs. `margin`: between the best logit and that of the other's token."""

    step: int
    margin: float


class Judge:
    """The checkpoint in transformers, which says how far apart two tokens were."""

    def __init__(self, folder: str) -> None:
        checkpoint, self._model = open_checkpoint(folder)
        self._stops = checkpoint.stop_tokens()
        self._template = ChatTemplate(checkpoint.tokenizer, folder)

    def explain(self, messages: tuple[Message, ...], other: str, max_tokens: int) -> NearTie | None:
        """Follow transformers' own greedy tokens for as long as they spell `other`, an answer of another engine.

        Returns:
            Where they part, and by how much transformers preferred its token to the best one that goes on
            spelling `other`; None when they do not part at all.
        """
        import torch

        written: list[int] = []
        tokens = torch.tensor([self._template.prompt(messages).tokens.tolist()])
        for step in range(max_tokens):
            with torch.inference_mode():
                logits = self._model(input_ids=tokens).logits[0, -1]
            best = int(logits.argmax())
            if not self._spells(written, best, other):
                order = logits.argsort(descending=True).tolist()
                chosen = next(token for token in order if self._spells(written, token, other))
                return NearTie(step, float(logits[best] - logits[chosen]))
            if best in self._stops:
                return None
            written.append(best)
            tokens = torch.cat((tokens, torch.tensor([[best]])), dim=1)
        return None

    def _spells(self, written: list[int], token: int, text: str) -> bool:
        """Whether the token after those written can be the one that the other engine wrote."""
        if token in self._stops:
            return self._template.decode(written) == text
        spelled = self._template.decode([*written, token])
        # Half a character at the end is shown as a replacement mark.
        return text.startswith(spelled.rstrip("\ufffd")) and spelled != self._template.decode(written)


def assert_same_but_for_ties(folder: Path, requests: list[Request], ours: list[Outcome], theirs: list[Outcome]) -> None:
    judge = Judge(str(folder))
    same = 0
    for request, mine, other in zip(requests, timeless(ours), timeless(theirs), strict=True):
        assert isinstance(mine, Reply)
        assert isinstance(other, Reply)
        if mine == other:
            same += 1
            continue
        tie = judge.explain(request.messages, mine.text, request.sampling.budget)
        assert tie is not None
        assert tie.margin < MARGIN
    assert same >= len(requests) * 0.8


def test_greedy_answers_are_those_of_hf(chat: Chat, local: Chat, tiny: Path) -> None:
    requests = [ask(number, Sampling(max_tokens=6 + number), words=number % 7) for number in range(20)]
    assert_same_but_for_ties(tiny, requests, chat.complete(requests), local.complete(requests))


def test_each_item_is_handed_over_while_others_run_and_order_is_kept(chat: Chat) -> None:
    requests = [ask(number, Sampling(max_tokens=60 if number < 4 else 2)) for number in range(12)]
    handed: list[int] = []
    outcomes = chat.complete(requests, lambda index, _: handed.append(index))
    assert sorted(handed) == list(range(12))
    # Short ones do not wait for the long ones that were sent before them, however soon a busy machine starts them.
    assert min(map(handed.index, range(4, 12))) < max(map(handed.index, range(4)))
    for request, outcome in zip(requests, outcomes, strict=True):
        assert isinstance(outcome, Reply)
        assert (outcome.usage.output_tokens or 0) <= request.sampling.max_tokens


def test_a_sample_depends_on_its_own_seed(chat: Chat) -> None:
    def drawn(seeds: list[int]) -> list[Request]:
        return [
            Request("x", ask(1).messages, Sampling(1.0, 0.9, 15, seed=seed), sample)
            for sample, seed in enumerate(seeds)
        ]

    first = texts(chat.complete(drawn([1, 2, 3, 4])))
    assert texts(chat.complete(drawn([1, 2, 3, 4]))) == first
    assert texts(chat.complete(drawn([4, 3, 2, 1]))) == first[::-1]
    assert len(set(first)) > 1


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")

    evidence: Literal["a calm word", "a kind word"]
    score: Literal[0, 1, 2, 3, 4, 5]


def test_a_form_is_kept(chat: Chat) -> None:
    """A model of random weights writes JSON of the form: the engine lets it write nothing else."""
    form = ResponseSchema("verdict", Verdict)
    requests = [
        Request(f"f{number}", ask(number).messages, Sampling(1.0, 1.0, 200, seed=number), response_schema=form)
        for number in range(4)
    ]
    for outcome in chat.complete(requests):
        assert isinstance(outcome, Reply)
        Verdict.model_validate(json.loads(outcome.text))


def test_the_subject_names_what_changes_answers(chat: Chat, local: Chat) -> None:
    ours, theirs = dict(chat.subject), dict(local.subject)
    assert ours["engine"] == "vllm"
    for key in ("model", "weights_sha256", "chat_template_sha256", "system_role", "precision", "device"):
        assert ours[key] == theirs[key]
    assert {"vllm", "torch", "transformers"} <= set(ours["engine_version"].replace(",", "").split())
    assert "max_num_seqs" not in ours


def test_an_engine_that_dies_keeps_what_is_finished(chat: Chat) -> None:
    """The last test with this engine. Its server stays for a while and answers with errors."""
    processes = family(os.getpid())
    (engine,) = [pid for pid in processes if b"EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    finished: list[int] = []

    def shoot(index: int, outcome: Outcome) -> None:
        assert isinstance(outcome, Reply), outcome
        finished.append(index)
        if len(finished) == 3:
            os.kill(engine, signal.SIGKILL)

    with pytest.raises(ModelCallError, match="vLLM died") as caught:
        chat.complete([ask(number, Sampling(max_tokens=40)) for number in range(200)], shoot)
    assert "; vLLM's log is " in str(caught.value)
    assert 3 <= len(finished) < 200
    chat.close()
    wait_until_gone(processes)
    with pytest.raises(ModelCallError, match="is closed"):
        chat.complete([ask(0)])


def test_no_system_role_reasoning_by_vllm_s_parser_and_two_copies_of_the_model(tmp_path: Path) -> None:
    """Data parallel needs a path of its own in vLLM; the answers are those of `hf:` all the same."""
    from transformers import AutoTokenizer

    folder = write_tiny(tmp_path / "thinker", THINKING_NO_SYSTEM, vocab_size=402)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # Special tokens: decoded as plain text they would be gone.
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    tokenizer.save_pretrained(folder)
    chat = open_vllm(folder, data_parallel_size=2, kv_cache_gb=0.5, reasoning_parser="deepseek_r1")
    local = open_chat(f"hf:{folder}")
    try:
        assert chat.subject["system_role"] == "folded"
        told = [ask(number, Sampling(max_tokens=6, thinking=10)) for number in range(8)]
        without = [ask(number, Sampling(max_tokens=12, thinking=0)) for number in range(8)]
        ours, theirs = timeless(chat.complete(without)), local.complete(without)
        assert sum(mine == other for mine, other in zip(ours, theirs, strict=True)) >= 7
        # A random model may end its reasoning. Where it does not, there is no answer: reasoning is not scored as one.
        replies = [reply for reply in chat.complete(told) if isinstance(reply, Reply)]
        assert len(replies) == 8
        assert all(reply.thinking and "think>" not in reply.thinking + reply.text for reply in replies)
        assert "" in [reply.text for reply in replies]
    finally:
        chat.close()


def test_an_adapter_answers_as_the_model_with_its_matrices_added(tiny: Path, tmp_path: Path) -> None:
    adapter, merged = write_adapter(tiny, tmp_path)
    chat = open_vllm(tiny, lora=adapter)
    try:
        requests = [ask(number) for number in range(10)]
        adapted = chat.complete(requests)
        assert_same_but_for_ties(merged, requests, adapted, open_chat(f"hf:{merged}").complete(requests))
        assert adapted != open_chat(f"hf:{tiny}").complete(requests)
        assert chat.subject["lora"] == "adapter"
        assert len(chat.subject["lora_sha256"]) == 64
    finally:
        chat.close()


def test_a_quantised_checkpoint_runs_and_says_so(tiny: Path, tmp_path: Path) -> None:
    """Eight-bit weights and activations (compressed-tensors), which vLLM has CPU kernels for."""
    chat = open_vllm(write_int8(tiny, tmp_path / "int8"))
    try:
        assert chat.subject["quantization"] == "compressed-tensors"
        requests = [ask(number, Sampling(max_tokens=1)) for number in range(20)]
        ours, full = texts(chat.complete(requests)), texts(open_chat(f"hf:{tiny}").complete(requests))
        # By chance none would agree. Processors without VNNI saturate products of eight-bit numbers: there 6 of 20 do.
        assert sum(a == b for a, b in zip(ours, full, strict=True)) >= 4
    finally:
        chat.close()


def write_int8(base: Path, folder: Path) -> Path:
    """The checkpoint with its linear layers rounded to eight bits, one scale an output."""
    import shutil

    import torch
    from safetensors.torch import load_file, save_file

    shutil.copytree(base, folder)
    tensors: dict[str, torch.Tensor] = {}
    for name, weight in load_file(base / "model.safetensors").items():
        if not name.endswith("_proj.weight"):
            tensors[name] = weight
            continue
        scale = weight.abs().amax(dim=1, keepdim=True) / 127
        tensors[name] = (weight / scale).round().to(torch.int8)
        tensors[f"{name}_scale"] = scale
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    eight = {"num_bits": 8, "type": "int", "symmetric": True}
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "ignore": ["lm_head"],
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {**eight, "strategy": "channel", "dynamic": False},
                "input_activations": {**eight, "strategy": "token", "dynamic": True},
            }
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder
