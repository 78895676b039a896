"""Keep embeddings between runs: the same reference is computed once for all models.

A vector's key is the embedder, its revision and the SHA-256 of the text; texts themselves are not kept. The cache
can be deleted at any time. Without it (a folder that cannot be written, a damaged file) everything works, slower.
A damaged row is computed again and overwritten.
"""

from __future__ import annotations

import hashlib
import sqlite3
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.text.embeddings.vectors import Embedder, Vectors
from h2htalk.text.tokens import cache_folder

CHUNK_TEXTS = 512  # written together: what an interrupted run can lose
_QUERY_KEYS = 500  # below SQLite's limit of variables a statement
_BUSY_SECONDS = 30.0
_UNIT_TOLERANCE = 1e-3  # float32 rows of length 1 keep within 1e-6
_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
)


class CachedEmbedder:
    """An embedder with a cache. Several processes may share one file.

    Args:
        embedder: computes what the cache lacks.
        path: the cache's file; None for `embeddings.sqlite` in the cache folder.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.revision = embedder.revision
        self.languages = embedder.languages
        self.comparable = embedder.comparable
        self._path = path or cache_folder() / "embeddings.sqlite"
        self._works = True

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embed as `Embedder.encode` does. Only texts that the cache lacks are computed."""
        none = self._embedder.encode([])
        if not texts:
            return none
        keys = {text: self._key(text) for text in dict.fromkeys(texts)}
        vectors: dict[bytes, Vectors] = self._use(_read, list(keys.values()), none.shape[1]) or {}
        # By length, so that the batches of a chunk have little padding.
        missing = sorted((text for text, key in keys.items() if key not in vectors), key=len)
        for start in range(0, len(missing), CHUNK_TEXTS):
            chunk = missing[start : start + CHUNK_TEXTS]
            chunk_keys = [keys[text] for text in chunk]
            computed = dict(zip(chunk_keys, self._embedder.encode(chunk), strict=True))
            self._use(_write, computed)
            vectors |= computed
        return np.stack([vectors[keys[text]] for text in texts])

    def _key(self, text: str) -> bytes:
        head = f"{self.name}\x00{self.revision}\x00".encode()
        return hashlib.sha256(head + text.encode("utf-8", "surrogatepass")).digest()

    def _use(self, work: Callable[..., Any], *values: object) -> Any:
        """Return what some work on the database gives; None, after one warning, once the cache has failed."""
        if not self._works:
            return None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as database, database:
                database.execute(_SCHEMA)
                return work(database, *values)
        except (OSError, sqlite3.Error) as error:
            self._works = False
            warnings.warn(
                f"{self._path}: the embedding cache cannot be used ({error}); going on without it. "
                "Delete the file, or set H2HTALK_CACHE to a folder that can be written",
                stacklevel=3,
            )
            return None


def _read(database: sqlite3.Connection, keys: Sequence[bytes], width: int) -> dict[bytes, Vectors]:
    """Read what is undamaged: vectors of length 1 and `width` float32. Without a width (0) nothing can be told."""
    rows: list[tuple[bytes, bytes]] = []
    for start in range(0, len(keys) if width else 0, _QUERY_KEYS):
        queried = keys[start : start + _QUERY_KEYS]
        rows += database.execute(
            "SELECT key, vector FROM vectors WHERE typeof(vector) = 'blob' "
            f"AND length(vector) = ? AND key IN ({','.join('?' * len(queried))})",
            (4 * width, *queried),
        )
    vectors = np.frombuffer(b"".join(blob for _, blob in rows), "<f4").reshape(len(rows), width)
    with np.errstate(invalid="ignore"):  # what is not finite has no length within the tolerance
        lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    sound = np.abs(lengths - 1) <= _UNIT_TOLERANCE
    return {key: vectors[row] for row, (key, _) in enumerate(rows) if sound[row]}


def _write(database: sqlite3.Connection, vectors: Mapping[bytes, Vectors]) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
        [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()],
    )
