"""Keep embeddings between runs: the same reference is computed once for all models.

A vector's key is the embedder, its revision and the SHA-256 of the text; texts themselves are not kept. The cache
can be deleted at any time. Without it (a folder that cannot be written, a damaged file) everything works, slower.
A damaged row is computed again and overwritten.
"""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from h2htalk.text.embeddings.vectors import Embedder, Vectors
from h2htalk.text.tokens import cache_folder

CHUNK_TEXTS = 512  # written together: what an interrupted run can lose
_QUERY_KEYS = 500  # below SQLite's limit of variables a statement
_BUSY_SECONDS = 30.0
_UNIT_TOLERANCE = 1e-3  # float32 rows of length 1 keep within 1e-6
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"


def cache_file() -> Path:
    """Return `embeddings.sqlite` in the cache folder."""
    return cache_folder() / "embeddings.sqlite"


class CachedEmbedder:
    """An embedder with a cache. Several processes may share one file.

    Args:
        embedder: computes what the cache lacks.
        path: the cache's file; None for `cache_file()`.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self._path = path or cache_file()
        self._works = True
        self._width: int | None = None  # d of the embedder's vectors

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def revision(self) -> str:
        return self._embedder.revision

    @property
    def languages(self) -> tuple[str, ...]:
        return self._embedder.languages

    @property
    def comparable(self) -> bool:
        return self._embedder.comparable

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed as `Embedder.encode` does. Only texts that the cache lacks are computed."""
        if not texts:
            return self._embedder.encode(texts)
        keys = {text: self._key(text) for text in dict.fromkeys(texts)}
        known = self._read(list(keys.values()))
        # By length, so that the batches of a chunk have little padding.
        missing = sorted((text for text, key in keys.items() if key not in known), key=len)
        for start in range(0, len(missing), CHUNK_TEXTS):
            chunk = missing[start : start + CHUNK_TEXTS]
            computed = dict(zip((keys[text] for text in chunk), self._embedder.encode(chunk), strict=True))
            self._write(computed)
            known |= computed
        return np.stack([known[keys[text]] for text in texts])

    def _key(self, text: str) -> bytes:
        head = f"{self.name}\x00{self.revision}\x00".encode()
        return hashlib.sha256(head + text.encode("utf-8", "surrogatepass")).digest()

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Read the undamaged vectors of these keys."""
        if self._width is None:
            self._width = self._embedder.encode([]).shape[1]
        vectors: dict[bytes, Vectors] = {}
        with self._guard("read"):
            # Without a known width (0) no row can be told from a damaged one.
            if self._works and self._width and self._path.exists():
                with closing(self._connect()) as database:
                    for start in range(0, len(keys), _QUERY_KEYS):
                        part = keys[start : start + _QUERY_KEYS]
                        rows = database.execute(
                            "SELECT key, vector FROM vectors WHERE typeof(vector) = 'blob' "
                            f"AND length(vector) = ? AND key IN ({','.join('?' * len(part))})",
                            (4 * self._width, *part),
                        )
                        vectors |= _unit_vectors(rows.fetchall(), self._width)
        return vectors

    def _write(self, vectors: Mapping[bytes, Vectors]) -> None:
        with self._guard("written"):
            if self._works:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with closing(self._connect()) as database, database:
                    database.executemany(
                        "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                        [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()],
                    )

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS)
        database.execute(_SCHEMA)
        return database

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        """Disable the cache when it fails, with one warning."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            self._works = False
            warnings.warn(
                f"{self._path}: the embedding cache cannot be {action} ({error}); going on without it. "
                "Delete the file, or set H2HTALK_CACHE to a folder that can be written",
                stacklevel=2,
            )


def _unit_vectors(rows: Sequence[tuple[bytes, bytes]], width: int) -> dict[bytes, Vectors]:
    """Select the blobs that hold a vector of length 1 and `width` float32, as written."""
    vectors = np.frombuffer(b"".join(blob for _, blob in rows), "<f4").reshape(-1, width)
    with np.errstate(invalid="ignore"):  # what is not finite has no length within the tolerance
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    sound = np.abs(lengths - 1) <= _UNIT_TOLERANCE
    return {key: vectors[place] for place, (key, _) in enumerate(rows) if sound[place]}
