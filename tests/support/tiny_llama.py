"""A random Llama of two layers with a tokenizer and a chat template, written as a real checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_TURN = "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
_ASSISTANT = "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
SYSTEM_TEMPLATE = "{% for message in messages %}" + _TURN + _ASSISTANT
# As Gemma's first templates: no system role, and roles must alternate.
NO_SYSTEM_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}" + _TURN + _ASSISTANT
)
# Renders user and assistant, and drops a system message without a word.
SYSTEM_DROPPING_TEMPLATE = (
    "{% for message in messages %}{% if message['role'] != 'system' %}"
    + _TURN
    + "{% endif %}"
    + _ASSISTANT
)
CONTEXT = 256
VOCABULARY = 400
# What every architecture of this size is made with; a wide range gives a clear first choice, as a trained model's.
TINY: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "initializer_range": 0.3,
}
TINY |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
_CORPUS = [
    "Good morning, did you sleep well? I made coffee and the rain has stopped.",
    "Tell me how your day at work went; I was thinking about you all afternoon.",
    "We could walk along the river tonight, or stay in and cook something warm.",
    "I am a little nervous about tomorrow, but talking to you helps me breathe.",
]


def write_tiny_llama(
    folder: Path,
    template: str | None = SYSTEM_TEMPLATE,
    *,
    config: Any = None,
    stops: tuple[int, ...] = (0, 2),
) -> Path:
    """Write the checkpoint: hidden 64, context 256, 4 heads on 2 key-value heads, always the same weights.

    `config`: another architecture's, with 400 tokens. `stops`: 0 is `<|endoftext|>`, 2 `<|im_end|>`.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (
        AutoModelForCausalLM,
        GenerationConfig,
        LlamaConfig,
        PreTrainedTokenizerFast,
    )

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    plain = Tokenizer(models.BPE())
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    options = {"special_tokens": special, "initial_alphabet": alphabet, "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, **options)
    plain.train_from_iterator(_CORPUS, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|im_end|>")
    tokenizer.chat_template = template

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(
        config or LlamaConfig(**TINY, max_position_embeddings=CONTEXT)
    )
    model.generation_config = GenerationConfig(eos_token_id=list(stops))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
