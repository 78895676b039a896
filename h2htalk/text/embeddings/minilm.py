"""`minilm`: all-MiniLM-L6-v2 in OpenVINO, without torch.

The encoder (BERT, 6 layers; Wang et al. 2020) is built here as a graph: OpenVINO cannot read safetensors.
Its vectors equal those of sentence-transformers within 1e-5. English only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from h2htalk.errors import MissingExtraError
from h2htalk.text.embeddings.vectors import Vectors, encode_distinct
from h2htalk.text.model_files import INSTALL_EMBEDDED, MINILM_TOKENIZER, MINILM_WEIGHTS, find_packaged, import_openvino

FEATURE = "embedder minilm"
MAX_TOKENS = 256  # sentence-transformers' limit for this model; longer texts are cut
BATCH_TOKENS = 512  # activations stay in a core's cache, and little is computed for padding
WIDTH, LAYERS, HEADS = 384, 6, 12
EPSILON = 1e-12

Weights = Mapping[str, Any]


class MiniLM:
    """The packaged all-MiniLM-L6-v2.

    `threads`: how many OpenVINO may use (None: it decides); the vectors do not depend on it.

    Raises:
        MissingExtraError: OpenVINO, tokenizers, safetensors or the package of the weights is not installed.
        ConfigError: the weights were changed.
    """

    name = "minilm"
    revision = f"sha256:{MINILM_WEIGHTS.sha256}"
    languages: tuple[str, ...] = ("en",)
    comparable = False

    def __init__(self, threads: int | None = None) -> None:
        openvino = import_openvino("openvino", FEATURE)
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtraError(FEATURE, INSTALL_EMBEDDED) from None
        self._tokenizer: Any = Tokenizer.from_file(str(find_packaged(MINILM_TOKENIZER, FEATURE)))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.no_padding()
        weights = load_file(find_packaged(MINILM_WEIGHTS, FEATURE))
        # Several small batches side by side, one thread each, cost less than one batch on all threads.
        settings: dict[str, Any] = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "THROUGHPUT"}
        if threads is not None:
            settings["INFERENCE_NUM_THREADS"] = threads
        model = openvino.Core().compile_model(build_graph(weights), "CPU", settings)
        self._queue: Any = openvino.AsyncInferQueue(model)
        self._queue.set_callback(_store)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (n, 384), rows of length 1; see `Embedder.encode`."""
        return encode_distinct(texts, self._encode, WIDTH)

    def _encode(self, texts: list[str]) -> Vectors:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts)]
        vectors = np.empty((len(texts), WIDTH), np.float32)
        for indices in batches([len(row) for row in tokens]):
            self._queue.start_async(pad([tokens[index] for index in indices]), (vectors, indices))
        self._queue.wait_all()
        return vectors


def _store(request: Any, target: tuple[Vectors, list[int]]) -> None:
    """Copy a finished batch to its rows; called by OpenVINO."""
    vectors, indices = target
    vectors[indices] = request.get_output_tensor(0).data


def batches(lengths: Sequence[int]) -> list[list[int]]:
    """Group the indices of texts of similar length (in tokens), BATCH_TOKENS together with their padding."""
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if not groups or (len(groups[-1]) + 1) * lengths[index] > BATCH_TOKENS:
            groups.append([])
        groups[-1].append(index)
    return groups


def pad(rows: Sequence[Sequence[int]]) -> list[NDArray[np.int64]]:
    """Return token ids and mask, both int64 (rows, longest); 0 is padding in both."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    return [ids, mask]


def build_graph(weights: Weights) -> Any:
    """Build the encoder: ids and mask (batch, tokens) -> mean over the mask (batch, 384), not yet of length 1."""
    from openvino import Model, Type, opset13

    ids = opset13.parameter([-1, -1], Type.i64, name="ids")
    mask = opset13.parameter([-1, -1], Type.i64, name="mask")
    kept = opset13.convert(mask, "f32")
    # Added to the attention scores: 0 for a token, a very negative number for padding. (batch, 1, 1, tokens)
    bias = opset13.multiply(opset13.subtract(opset13.unsqueeze(kept, [1, 2]), np.float32(1)), np.float32(1e9))
    hidden = _embed(weights, ids)
    for layer in range(LAYERS):
        hidden = _layer(weights, f"encoder.layer.{layer}", hidden, bias)
    column = opset13.unsqueeze(kept, [2])
    total = opset13.reduce_sum(opset13.multiply(hidden, column), np.array([1]))
    return Model([opset13.divide(total, opset13.reduce_sum(column, np.array([1])))], [ids, mask], "minilm")


def _embed(weights: Weights, ids: Any) -> Any:
    """Add word, position and segment embeddings, and normalise."""
    from openvino import opset13

    length = opset13.gather(opset13.shape_of(ids), np.int64(1), np.int64(0))
    positions = opset13.range(np.int64(0), length, np.int64(1), "i64")
    words = opset13.gather(weights["embeddings.word_embeddings.weight"], ids, np.int64(0))
    indices = opset13.gather(weights["embeddings.position_embeddings.weight"], positions, np.int64(0))
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    total = opset13.add(opset13.add(words, indices), segment)
    return _normalise(weights, "embeddings.LayerNorm", total)


def _layer(weights: Weights, name: str, hidden: Any, bias: Any) -> Any:
    """Apply self-attention and feed-forward, each added to its input and normalised."""
    from openvino import opset13

    query, key, value = (
        _split_heads(_dense(weights, f"{name}.attention.self.{part}", hidden)) for part in ("query", "key", "value")
    )
    scale = np.float32((WIDTH // HEADS) ** -0.5)
    # Written out: the combined operation is 4 % slower on texts of 180 characters.
    scores = opset13.add(opset13.multiply(opset13.matmul(query, key, False, True), scale), bias)
    mixed = opset13.transpose(opset13.matmul(opset13.softmax(scores, -1), value, False, False), [0, 2, 1, 3])
    joined = opset13.reshape(mixed, [0, 0, WIDTH], special_zero=True)
    attended = opset13.add(_dense(weights, f"{name}.attention.output.dense", joined), hidden)
    attended = _normalise(weights, f"{name}.attention.output.LayerNorm", attended)
    inner = opset13.gelu(_dense(weights, f"{name}.intermediate.dense", attended), "erf")
    return _normalise(
        weights,
        f"{name}.output.LayerNorm",
        opset13.add(_dense(weights, f"{name}.output.dense", inner), attended),
    )


def _split_heads(hidden: Any) -> Any:
    """Reshape (batch, tokens, 384) to (batch, heads, tokens, 32)."""
    from openvino import opset13

    split = opset13.reshape(hidden, [0, 0, HEADS, WIDTH // HEADS], special_zero=True)
    return opset13.transpose(split, [0, 2, 1, 3])


def _dense(weights: Weights, name: str, hidden: Any) -> Any:
    from openvino import opset13

    product = opset13.matmul(hidden, weights[f"{name}.weight"], False, True)
    return opset13.add(product, weights[f"{name}.bias"])


def _normalise(weights: Weights, name: str, hidden: Any) -> Any:
    """Normalise over the last axis."""
    from openvino import opset13

    scaled = opset13.mvn(hidden, np.array([-1]), True, EPSILON, "inside_sqrt")
    return opset13.add(opset13.multiply(scaled, weights[f"{name}.weight"]), weights[f"{name}.bias"])
