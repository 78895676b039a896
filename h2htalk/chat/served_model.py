"""What stands behind a model's name, as far as it is known: digests of its files, its address and its options.

Anybody can serve anything under a name, so a check of a model holds for what was checked alone. Digests are stored with
replies, readings and certificates: no address and no path. Who guesses an address can compare its digest, so a release
has numbers in their place (`curation/release/readings.py`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from urllib.parse import urlsplit

from h2htalk.chat.engines import model_identity, parse_model
from h2htalk.data.files import reading
from h2htalk.errors import ConfigError

# Engine options that change how fast or in which envelope a reply comes, and not what it says.
_ALIKE = frozenset(
    """
    stream store service_tier prompt_cache_key max_tokens_name tensor_parallel_size
    pipeline_parallel_size data_parallel_size max_model_len gpu_memory_utilization kv_cache_gb
    max_num_seqs max_num_batched_tokens enforce_eager enable_prefix_caching
    """.split()  # noqa: SIM905
)
_LOOPBACK = "this machine"
# Of a file of weights so much is read: 256 pieces of 64 KiB, 16 MiB in all.
_PIECE = 64 * 1024
_MOST_PIECES = 256


def served_by(model: str, engine_options: Mapping[str, str]) -> str:
    """Digests of what answers under a model's name, such as `address:3f2a90c1d4e5b677 options:0c1d...`.

    Empty where the name is all that is known, as of a provider's own address. Raises ConfigError for an unknown engine,
    an address that cannot be one, or files that cannot be read.
    """
    values = {
        "files": _files(model),
        "address": _address(model),
        "options": _options(engine_options),
    }
    return " ".join(f"{part}:{_digest(value)}" for part, value in values.items() if value)


def _digest(text: str) -> str:
    return hashlib.blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=8, person=b"h2htalk model"
    ).hexdigest()


def _files(model: str) -> str:
    """The hash of a script, or of a model's folder; empty where there are no files."""
    _, has_files, digest = model_identity(model).rpartition(", sha256 ")
    if not has_files:
        return ""
    folder = Path(parse_model(model)[1]).expanduser()
    return folder_content(folder) if folder.is_dir() else digest


def folder_content(folder: Path) -> str:
    """A hash of the names, sizes and content of a folder's files; of a large file, of pieces all over it.

    Weights that were trained on differ everywhere, and have the size that they had.
    """
    digest = hashlib.sha256()
    with reading(folder, ConfigError):
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode("utf-8", "surrogatepass"))
            with path.open("rb") as file:
                for start in _starts(size):
                    file.seek(start)
                    digest.update(file.read(_PIECE))
    return digest.hexdigest()


def _starts(size: int) -> list[int]:
    """Where the pieces of a file begin that are read: at equal distances, the last at its end; all of a small file."""
    if size <= _PIECE * _MOST_PIECES:
        return list(range(0, size, _PIECE))
    return [(size - _PIECE) * number // (_MOST_PIECES - 1) for number in range(_MOST_PIECES)]


def _address(model: str) -> str:
    """Host, port and path of a server, or of an API that is not the provider's own; empty for others."""
    engine, name = parse_model(model)
    if engine.model_is != "url" and not engine.hosted:
        return ""

    from h2htalk.chat.server import base_url, is_loopback, parse_endpoint  # it loads an HTTP client

    if engine.model_is == "url":
        url = base_url(parse_endpoint(name)[1])
    else:
        chat = resolve_name(engine.path)
        url = base_url(chat.address())
        if url == base_url(chat.url):
            return ""
    address = urlsplit(url)
    host = _LOOPBACK if is_loopback(url) else address.hostname  # without a name and a password
    return f"{address.scheme}://{host}:{address.port or ''}{address.path}"


def _options(engine_options: Mapping[str, str]) -> str:
    """The engine options that may change answers; of a folder, such as an adapter's, its content and not its path."""
    values: dict[str, str] = {}
    for name, value in sorted(engine_options.items()):
        if name not in _ALIKE:
            values[name] = _folder(value) or value
    return json.dumps(values, ensure_ascii=False) if values else ""


def _folder(value: str) -> str:
    path = Path(value).expanduser()
    return folder_content(path) if value and path.is_dir() else ""
