"""Which embedder a name opens, and what each gives; a cache that computes nothing twice and stops nothing."""

from __future__ import annotations

import shutil
import sqlite3
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from h2htalk.errors import ConfigError, ModelCallError
from h2htalk.text.embeddings.cache import CachedEmbedder
from h2htalk.text.embeddings.embedders import open_embedder
from h2htalk.text.embeddings.vectors import Vectors, encode_distinct, unit_rows
from h2htalk.text.model_files import MINILM_WEIGHTS, find_packaged

TEXTS = [
    "",
    "I like tea.",
    "我喜欢下雨天。",
    "tea 😀 雨",
    "I like tea.",
    "rain " * 400,
    "\ud83d half",
    "Tea?",
]


def make_tiny_bge(folder: Path) -> Path:
    """A folder of BGE-M3's kind: XLM-R with 2 layers and random weights, a Unigram tokenizer of single letters."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

    letters = sorted(set("▁abcdefghijklmnopqrstuvwxyzIT.?,我喜欢下雨天。茶"))
    vocabulary = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
    vocabulary += [(letter, -float(place)) for place, letter in enumerate(letters)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    named = {
        "bos": "<s>",
        "eos": "</s>",
        "cls": "<s>",
        "sep": "</s>",
        "pad": "<pad>",
        "unk": "<unk>",
    }
    special = {f"{name}_token": token for name, token in named.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    sizes = {
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
    }
    sizes |= {"vocab_size": len(vocabulary), "max_position_embeddings": 514, "pad_token_id": 1}
    XLMRobertaModel(XLMRobertaConfig(**sizes)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny_bge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("FlagEmbedding", reason="the local extra is not installed")
    return make_tiny_bge(tmp_path_factory.mktemp("tiny-bge-m3"))


def plain_transformers(folder: Path, texts: list[str]) -> Vectors:
    """The first token's last hidden state, scaled to length 1: what a dense vector of BGE-M3 is."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    rows = []
    for text in texts:
        inputs = tokenizer(text, truncation=True, max_length=512, return_tensors="pt")
        with torch.no_grad():
            row = model(**inputs).last_hidden_state[0, 0]
        rows.append((row / row.norm()).numpy())
    return np.stack(rows)


@pytest.mark.local
class TestBgeM3:
    def test_vectors_are_the_normalised_first_token(self, tiny_bge: Path) -> None:
        embedder = open_embedder(f"bge-m3:{tiny_bge}")
        readable = [text.encode("utf-8", "replace").decode() for text in TEXTS]
        vectors = embedder.encode(TEXTS)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(
            vectors, plain_transformers(tiny_bge, readable), rtol=0, atol=1e-5
        )
        assert (vectors[1] == vectors[4]).all()
        assert embedder.encode([]).shape == (0, 64)
        assert (embedder.comparable, embedder.languages) == (
            False,
            ("en", "zh"),
        )  # a model of another shape

    def test_the_revision_follows_the_weights(self, tiny_bge: Path, tmp_path: Path) -> None:
        revision = open_embedder(f"bge-m3:{tiny_bge}").revision
        assert revision.startswith("sha256:")
        copy = tmp_path / "moved"
        shutil.copytree(tiny_bge, copy)
        assert open_embedder(f"bge-m3:{copy}").revision == revision
        weights = copy / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
        assert open_embedder(f"bge-m3:{copy}").revision != revision

    def test_it_is_found_in_the_hugging_face_cache_with_its_commit(
        self, tiny_bge: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        commit = "5617a9f61b028005a4858fdac845db406aefb181"
        repository = tmp_path / "models--BAAI--bge-m3"
        shutil.copytree(tiny_bge, repository / "snapshots" / commit)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        embedder = open_embedder("bge-m3")
        assert (embedder.name, embedder.revision) == ("bge-m3", commit)

    def test_a_folder_whose_weights_do_not_load(self, tiny_bge: Path, tmp_path: Path) -> None:
        broken = tmp_path / "broken"
        shutil.copytree(tiny_bge, broken)
        (broken / "model.safetensors").write_bytes(b"not weights")
        with pytest.raises(ConfigError, match="broken: FlagEmbedding cannot load it"):
            open_embedder(f"bge-m3:{broken}")


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (
            '[{"idx": 0, "path": "", "type": "own_code.Encoder"}]',
            "'own_code.Encoder' is code of the model",
        ),
        ('[{"type": "sentence_transformersx.y"}]', "code of the model"),
        ("[" * 100_000, "not a list of modules"),
    ],
)
def test_a_model_with_code_of_its_own_was_run_by_older_libraries(
    tmp_path: Path, modules: str, message: str
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "own_code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "modules.json").write_text(modules)
    with pytest.raises(ConfigError, match=message):
        open_embedder(str(tmp_path))
    assert not (tmp_path / "ran").exists()


@pytest.mark.local
def test_a_local_folder_is_opened_by_its_path() -> None:
    peer = pytest.importorskip("sentence_transformers", reason="the local extra is not installed")
    folder = find_packaged(MINILM_WEIGHTS, "this test").parent
    embedder = open_embedder(str(folder))
    expected = peer.SentenceTransformer(str(folder)).encode(["I like tea.", "Rain."])
    np.testing.assert_allclose(embedder.encode(["I like tea.", "Rain."]), expected, atol=1e-6)
    assert (embedder.comparable, embedder.revision[:7]) == (False, "sha256:")


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v3", "someone/else", "no such: name", "minilm2"])
def test_an_unknown_name_downloads_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"not on this machine.*choose from bge-m3.*minilm"
    ) as caught:
        open_embedder(name)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_each_distinct_text_is_encoded_once() -> None:
    asked: list[list[str]] = []

    def lengths(texts: list[str]) -> Vectors:
        asked.append(texts)
        return np.array([[len(text), 1] for text in texts], np.float32)

    vectors = encode_distinct(["aa", "b", "aa", "b", "aa"], lengths, 2)
    assert asked == [["aa", "b"]]
    np.testing.assert_allclose(vectors[:, 0] / vectors[:, 1], [2, 1, 2, 1, 2])


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_vector_without_direction_is_an_error(row: list[float]) -> None:
    with pytest.raises(ModelCallError, match="zero or not finite"):
        unit_rows(np.array([[1.0, 0.0], row], np.float32))


class CountingEmbedder:
    """Vectors from the bytes of a text; remembers what it was asked for."""

    languages = ("en", "zh")
    comparable = False

    def __init__(self, name: str = "counting", revision: str = "1") -> None:
        self.name, self.revision = name, revision
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        rows = [[1, len(text), sum(text.encode("utf-8", "replace"))] for text in texts]
        vectors = np.array(rows, np.float32).reshape(-1, 3)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made on demand" / "embeddings.sqlite"


def test_a_known_text_is_not_computed_again(path: Path) -> None:
    first, second = CountingEmbedder(), CountingEmbedder()
    vectors = CachedEmbedder(first, path).encode(["tea", "雨", "", "tea", "\ud83d"])
    again = CachedEmbedder(second, path).encode(["\ud83d", "new", "", "雨", "tea"])
    assert sorted(first.asked) == sorted(["tea", "雨", "", "\ud83d"])
    assert second.asked == ["new"]
    np.testing.assert_array_equal(again[[4, 3, 2, 4, 0]], vectors)
    assert again.dtype == np.float32


@pytest.mark.parametrize("other", [CountingEmbedder("other"), CountingEmbedder(revision="2")])
def test_another_embedder_or_revision_shares_nothing_and_no_text_is_kept(
    path: Path, other: CountingEmbedder
) -> None:
    CachedEmbedder(CountingEmbedder(), path).encode(["a secret"])
    CachedEmbedder(other, path).encode(["a secret"])
    assert other.asked == ["a secret"]
    assert b"secret" not in path.read_bytes()


@pytest.mark.parametrize(
    "content", [b"not a database" * 500, b"SQLite format 3\x00" + b"\xff" * 4000]
)
def test_a_damaged_file_is_said_once_and_left_alone(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    embedder = CachedEmbedder(CountingEmbedder(), path)
    with pytest.warns(UserWarning, match=r"embedding cache cannot be .* H2HTALK_CACHE") as caught:
        assert embedder.encode(["tea", "rain"]).shape == (2, 3)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert embedder.encode(["tea"]).shape == (1, 3)
    assert path.read_bytes() == content


DAMAGE = {
    "cut": "substr(vector, 1, 8)",
    "zeros": "zeroblob(12)",
    "not a number": "x'0000c07f0000000000000000'",
}


@pytest.mark.parametrize("value", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_vector_is_computed_anew_and_written_over(path: Path, value: str) -> None:
    """Else a changed cache would give other scores, or leave the same items unscored for ever."""
    texts = ["tea", "rain", "river"]
    honest = CachedEmbedder(CountingEmbedder(), path).encode(texts)
    with sqlite3.connect(path) as database:
        database.execute(
            f"UPDATE vectors SET vector = {value} WHERE key <> (SELECT max(key) FROM vectors)"
        )
    database.close()
    repairing, unused = CountingEmbedder(), CountingEmbedder()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(CachedEmbedder(repairing, path).encode(texts), honest)
        np.testing.assert_array_equal(CachedEmbedder(unused, path).encode(texts), honest)
    assert len(repairing.asked) == 2
    assert unused.asked == []
