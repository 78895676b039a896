"""vLLM's parsers of reasoning, held to what a score needs: the answer alone, without marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.vllm.reasoning import ReasoningReader

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> Any:
    """With think tags that are special tokens: decoded as plain text they would be gone."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    return tokenizer


def read(tokenizer: Any, name: str, prompt: str, text: str, thinking: bool = True) -> tuple[str, str | None]:
    reader = ReasoningReader(name, tokenizer, thinking)
    return reader.read(tokenizer(prompt)["input_ids"], tokenizer(text)["input_ids"])


@pytest.mark.parametrize("name", ["deepseek_r1", "qwen3"])
def test_marks_that_are_special_tokens_are_read_and_removed(tokenizer: Any, name: str) -> None:
    prompt = "<|im_start|>assistant\n<think>\n"
    assert read(tokenizer, name, prompt, "Be kind.</think>\n\nHello<|im_end|>") == ("Hello", "Be kind.")
    # Cut off within its reasoning: no answer.
    assert read(tokenizer, name, prompt, "Be ki") == ("", "Be ki")


@pytest.mark.parametrize("name", ["deepseek_r1", "qwen3"])
def test_a_prompt_that_closed_the_reasoning_leaves_all_to_the_answer(tokenizer: Any, name: str) -> None:
    prompt = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert read(tokenizer, name, prompt, "Hello<|im_end|>", thinking=False) == ("Hello", None)


def test_marks_that_are_words(tokenizer: Any) -> None:
    text = "Here is my thought process: Be kind. Here is my response: Hello<|im_end|>"
    assert read(tokenizer, "granite", "Hi", text) == ("Hello", "Be kind.")
