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
from h2htalk.extras import INSTALL_EMBEDDED, MINILM
from h2htalk.text.embeddings.vectors import Vectors, encode_distinct
from h2htalk.text.model_files import (
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    find_packaged,
    import_openvino,
)

FEATURE = MINILM.feature
MAX_TOKENS = 256  # sentence-transformers' limit for this model; longer texts are cut
BATCH_TOKENS = 512  # activations stay in a core's cache, and little is computed for padding
WIDTH = 384
LAYERS = 6
HEADS = 12
EPSILON = 1e-12

Weights = Mapping[str, Any]


class MiniLM:
    """The packaged all-MiniLM-L6-v2.

    `threads`: how many OpenVINO may use (None: it decides); the vectors do not depend on it.

    Raises MissingExtraError where OpenVINO, tokenizers, safetensors or the package of the weights is not installed, and
    ConfigError where the weights were changed.
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
        settings: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "THROUGHPUT",
        }
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
            batch = pad([tokens[index] for index in indices])
            self._queue.start_async(batch, (vectors, indices))
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


def build_graph(weights: Weights, layers: int = LAYERS) -> Any:
    """Build the encoder: ids or words' vectors, and mask (batch, tokens) -> (batch, 384), means not yet of length 1."""
    from openvino import Model, Type
    from openvino import opset13 as ops

    def dense(name: str, hidden: Any) -> Any:
        product = ops.matmul(hidden, weights[f"{name}.weight"], False, True)
        return ops.add(product, weights[f"{name}.bias"])

    def normalised(name: str, hidden: Any) -> Any:
        scaled = ops.mvn(hidden, np.array([-1]), True, EPSILON, "inside_sqrt")  # over the last axis
        weighted = ops.multiply(scaled, weights[f"{name}.weight"])
        return ops.add(weighted, weights[f"{name}.bias"])

    def heads(name: str, hidden: Any) -> Any:  # (batch, tokens, 384) -> (batch, heads, tokens, 32)
        split = ops.reshape(dense(name, hidden), [0, 0, HEADS, WIDTH // HEADS], special_zero=True)
        return ops.transpose(split, [0, 2, 1, 3])

    def attention(name: str, hidden: Any) -> Any:
        query = heads(f"{name}.query", hidden)
        key = heads(f"{name}.key", hidden)
        value = heads(f"{name}.value", hidden)
        # Written out: the combined operation is 4 % slower on texts of 180 characters.
        scaled = ops.multiply(ops.matmul(query, key, False, True), scale)
        shares = ops.softmax(ops.add(scaled, bias), -1)
        mixed = ops.matmul(shares, value, False, False)
        by_token = ops.transpose(mixed, [0, 2, 1, 3])
        return ops.reshape(by_token, [0, 0, WIDTH], special_zero=True)

    table = weights.get("embeddings.word_embeddings.weight")
    zero = np.int64(0)
    unit = np.int64(1)
    if table is None:
        ids = words = ops.parameter([-1, -1, WIDTH], Type.f32)
    else:
        ids = ops.parameter([-1, -1], Type.i64, name="ids")
        words = ops.gather(table, ids, zero)
    mask = ops.parameter([-1, -1], Type.i64, name="mask")
    is_token = ops.convert(mask, "f32")
    # Added to the attention scores: 0 for a token, a very negative number for padding. (batch, 1, 1, tokens)
    padding = ops.subtract(ops.unsqueeze(is_token, [1, 2]), np.float32(1))
    bias = ops.multiply(padding, np.float32(1e9))
    scale = np.float32((WIDTH // HEADS) ** -0.5)
    length = ops.gather(ops.shape_of(ids), unit, zero)
    positions = ops.range(zero, length, unit, "i64")
    places = ops.gather(weights["embeddings.position_embeddings.weight"], positions, zero)
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    embedded = ops.add(ops.add(words, places), segment)
    hidden = normalised("embeddings.LayerNorm", embedded)
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        attended = attention(f"{name}.attention.self", hidden)
        projected = dense(f"{name}.attention.output.dense", attended)
        summed = normalised(f"{name}.attention.output.LayerNorm", ops.add(projected, hidden))
        inner = ops.gelu(dense(f"{name}.intermediate.dense", summed), "erf")
        output = dense(f"{name}.output.dense", inner)
        hidden = normalised(f"{name}.output.LayerNorm", ops.add(output, summed))
    column = ops.unsqueeze(is_token, [2])
    total = ops.reduce_sum(ops.multiply(hidden, column), np.array([1]))
    count = ops.reduce_sum(column, np.array([1]))
    return Model([ops.divide(total, count)], [ids, mask], "minilm")
