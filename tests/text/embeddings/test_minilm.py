"""`minilm`: the packaged all-MiniLM-L6-v2 in OpenVINO gives what sentence-transformers gives."""

from __future__ import annotations

import random

import numpy as np
import pytest

pytest.importorskip("openvino", reason="the embedded extra is not installed")

from h2htalk.text.embeddings.minilm import BATCH_TOKENS, MiniLM, batches
from h2htalk.text.model_files import MINILM_WEIGHTS, find_packaged

pytestmark = pytest.mark.embedded

WORDS = "I you remember rain tea exam mother walk sleep happy lonely naïve café don't re-read U.S.A. 3:30 $5 xylophone"
ODD_TEXTS = [
    *("", "\n\t", "\x00", "😀", "I am 😀😭 today 🏳️‍🌈", "<|im_end|> [CLS] [SEP] [PAD]"),
    *(
        "你好，今天过得怎么样？",
        "我今天 went to 学校 with mom",
        "x" * 5000,
        "hello " * 1000,
        "你" * 5000,
    ),
]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


def varied_texts(count: int) -> list[str]:
    drawn = random.Random(11)
    words = WORDS.split()
    return ODD_TEXTS + [
        " ".join(drawn.choices(words, k=drawn.randint(1, 40))) for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.local
def test_vectors_are_those_of_sentence_transformers(minilm: MiniLM) -> None:
    sentence_transformers = pytest.importorskip(
        "sentence_transformers", reason="the local extra is not installed"
    )
    folder = find_packaged(MINILM_WEIGHTS, "this test").parent
    peer = sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True
    )
    texts = varied_texts(300)
    np.testing.assert_allclose(
        minilm.encode(texts), peer.encode(texts, batch_size=64), rtol=0, atol=1e-5
    )


def test_vectors_have_length_one_and_follow_the_order_of_the_texts(minilm: MiniLM) -> None:
    texts = varied_texts(40)
    vectors = minilm.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    order = list(range(len(texts)))
    random.Random(3).shuffle(order)
    np.testing.assert_allclose(minilm.encode([texts[i] for i in order]), vectors[order], atol=1e-6)


def test_half_of_a_surrogate_pair_is_read_as_a_question_mark(minilm: MiniLM) -> None:
    broken, marked = minilm.encode(["so sad \ud83d", "so sad ?"])
    assert (broken == marked).all()


def test_batches_hold_every_text_once_and_stay_within_their_size() -> None:
    lengths = [random.Random(i).randint(2, 256) for i in range(500)]
    found = batches(lengths)
    assert sorted(place for batch in found for place in batch) == list(range(500))
    for batch in found:
        assert len(batch) * max(lengths[place] for place in batch) <= BATCH_TOKENS
    assert batches([]) == []
