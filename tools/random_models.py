"""Checkpoints with random weights and the shape of real ones, for measuring speed where no weights are at hand.

A word is a token: `w17` is token 17 + the special ones, so that a text has as many tokens as it has words and a
model's text shows which tokens it chose.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|> {{ message['role'] }} {{ message['content'] }} <|im_end|>"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|> assistant{% endif %}"
)
CHAT_TOKENS = ("<unk>", "<|im_start|>", "<|im_end|>", "system", "user", "assistant")
ENCODER_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")  # their places in XLM-R's vocabulary
END_OF_TURN = 2  # `<|im_end|>`


class Shape(NamedTuple):
    """A Llama or an XLM-R: width, layers, width of the feed-forward, heads, key-value heads, tokens, longest text."""

    width: int
    layers: int
    feed_forward: int
    heads: int
    kv_heads: int
    vocabulary: int
    longest: int

    @property
    def layer_parameters(self) -> int:
        """Weights of an XLM-R for every token: attention's four matrices and the feed-forward's two."""
        return self.layers * (4 * self.width**2 + 2 * self.width * self.feed_forward)


DECODERS = {
    "1b": Shape(2048, 16, 8192, 32, 8, 32_000, 8192),
    "7b": Shape(4096, 32, 11_008, 32, 32, 32_000, 8192),
    "tiny": Shape(64, 2, 128, 4, 2, 300, 512),
}
ENCODERS = {
    "bge-m3": Shape(1024, 24, 4096, 16, 16, 250_002, 8192),
    "tiny": Shape(64, 2, 128, 4, 4, 300, 512),
}


def words_for(vocabulary: int, special: tuple[str, ...]) -> list[str]:
    """The words of a vocabulary of that size, special tokens left out."""
    return [f"w{number}" for number in range(vocabulary - len(special))]


def write_decoder(folder: Path, shape: Shape) -> int:
    """Write a chat model in bfloat16, and say how many parameters it has.

    Its weights are wider than a fresh model's, so that most tokens have a clear first choice as in a trained one.
    """
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        **_sizes(shape),
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.longest,
        initializer_range=2.4 / shape.width**0.5,
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    torch.manual_seed(0)
    with torch.device(_fast_device()):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.generation_config = GenerationConfig(eos_token_id=END_OF_TURN)
    model.save_pretrained(folder)
    tokenizer = _tokenizer(shape.vocabulary, CHAT_TOKENS, eos_token="<|im_end|>", unk_token="<unk>")
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def write_encoder(folder: Path, shape: Shape) -> None:
    """Write an encoder of BGE-M3's kind in float32, as FlagEmbedding reads it."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaModel

    config = XLMRobertaConfig(
        **_sizes(shape),
        max_position_embeddings=shape.longest + 2,  # XLM-R's positions start at 2
        type_vocab_size=1,
        pad_token_id=1,
    )
    torch.manual_seed(0)
    with torch.device(_fast_device()):
        XLMRobertaModel(config).save_pretrained(folder)
    roles = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "cls_token": "<s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
    }
    _tokenizer(shape.vocabulary, ENCODER_TOKENS, **roles, unk_token="<unk>").save_pretrained(folder)


def _sizes(shape: Shape) -> dict[str, int]:
    return {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "intermediate_size": shape.feed_forward,
        "num_attention_heads": shape.heads,
    }


def _fast_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _tokenizer(vocabulary: int, special: tuple[str, ...], **roles: str) -> Any:
    """Words to tokens one by one; an encoder's texts get `<s>` and `</s>` around them."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [*special, *words_for(vocabulary, special)]
    plain = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="<unk>")
    )
    plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    plain.add_special_tokens(
        [AddedToken(word, special=True) for word in special if word.startswith("<")]
    )
    if "<s>" in special:
        plain.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    return PreTrainedTokenizerFast(tokenizer_object=plain, **roles)
