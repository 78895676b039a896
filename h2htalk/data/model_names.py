"""A model's name without the folders of the machine that it lies on.

llama.cpp, vLLM and others name a model by the path of its file or folder, and so do users who type it. The path is a
setting of their machine, and often holds a person's name: files of a run keep it, and what leaves (pages, tables,
exports, bundles, provenance) has its last part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

_UNNAMED = "model"  # a path without a last part
# `server:`, `hosted:`: what stands before a name. A drive of Windows has one letter.
_PREFIX = re.compile(r"(?P<prefix>[A-Za-z][\w.-]+):(?!//)(?P<name>.+)", re.DOTALL)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_STARTS = re.compile(r"[/\\]|~|\.{1,2}[/\\]|\$\{?\w+\}?[/\\]|%\w+%[/\\]|[A-Za-z]:[/\\]")
# Files of weights; a name such as `org/model` is no path, and neither is `accounts/x/models/y` of an API.
_WEIGHT_ENDS = (
    r"\.(?:gguf|ggml|llamafile|safetensors|onnx|bin|pth?|ckpt|mlx|engine|task|litertlm)\b"
)
_WEIGHTS = re.compile(_WEIGHT_ENDS, re.IGNORECASE)
_ROOTS = frozenset(
    """
    content data home media mnt opt private root scratch srv tmp users usr var volumes workspace
    """.split()  # noqa: SIM905
)
_HOMES = frozenset({"home", "users"})
# A file in the Hub's cache: models--ORG--NAME/snapshots/COMMIT/FILE.
_CACHED = re.compile(
    r"models--(?P<name>[^/\\]+)(?:[/\\](?:snapshots|blobs|refs)(?:[/\\][^/\\]*)?(?P<file>[/\\].+)?)?$"
)
# A path within a sentence: folders, and a last part. Folders may have spaces where a file of weights ends it.
_WITHIN = re.compile(
    r"(?i)(?<![\w/\\.~-])(?<!:(?=//))(?:file:/{1,3})?(?:[a-z]:[/\\]|\\\\|/(?:home|users|volumes|media|mnt)/)"
    rf"(?:[^\n'\"`<>|,;:()\[\]]|(?<=\w)'(?=\w)){{1,200}}?{_WEIGHT_ENDS}"
    r"|(?<![\w/\\.~-])(?<!:(?=//))(?:file:/{1,3})?(?:~\w*|\.{1,2}|[A-Za-z]:|\\(?=\\))?(?:[/\\][^\s/\\'\"`<>|,;:()\[\]]+){2,}[/\\]?"
)


def without_path(name: str) -> str:
    """Return a model's name without folders; one that is no path as it is. What stands before a colon stays.

    Examples:
        >>> without_path("server:/home/ada/models/qwen2.5-Q4_K_M.gguf")
        'server:qwen2.5-Q4_K_M.gguf'
        >>> without_path("Qwen/Qwen2.5-7B-Instruct")
        'Qwen/Qwen2.5-7B-Instruct'
    """
    text = name.strip().strip("\"'")
    prefixed = _PREFIX.fullmatch(text)
    if prefixed is not None:
        inner = without_path(prefixed["name"])
        if prefixed["prefix"].lower() == "file":
            return inner
        return f"{prefixed['prefix']}:{inner}" if inner != prefixed["name"] else name
    if _URL.match(text):
        text = unquote(urlsplit(text).path) or text
    elif not _is_path(text):
        return name
    return _last_part(text)


def without_paths(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a signature without folders of this machine, as in `bge-m3:/data/models/bge-m3`.

    Several names stand in one value with a comma between them.
    """
    return {key: ", ".join(map(without_path, text.split(", "))) for key, text in texts.items()}


def text_without_paths(text: str) -> str:
    """Return a sentence, such as a server's error, with the last part in the place of each path."""
    return _WITHIN.sub(lambda path: _last_part(path[0]), text)


def _is_path(text: str) -> bool:
    """Whether a name is a path: by how it starts, by its folders, or as a file of weights within a folder."""
    if _STARTS.match(text) or "\\" in text or "//" in text or "models--" in text:
        return True
    *folders, last = text.split("/")
    if not folders:
        return False
    names = [folder.lower() for folder in folders]
    if names[0] in _ROOTS and len(names) > 1:
        return True
    if ".." in names or not _HOMES.isdisjoint(names[1:]):
        return True
    return _WEIGHTS.search(last) is not None


def _last_part(path: str) -> str:
    """The last part of a path; of one in the Hub's cache the name on the Hub, or the file."""
    cached = _CACHED.search(path.rstrip("/\\"))
    if cached is not None and cached["file"] is None:
        return cached["name"].replace("--", "/")
    for name in reversed(re.split(r"[/\\]+", path)):
        if name not in ("", ".", "..", "~", "?"):
            return name
    return _UNNAMED
