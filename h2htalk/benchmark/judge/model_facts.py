"""What is known of models by their names."""

from __future__ import annotations

import re

_ALONE = ("claude", "llama", "deepseek", "internlm", "phi", "smollm", "grok", "yi", "baichuan", "kimi", "minimax")
# Family -> how the names of its models begin, also inside a name such as `meta-llama/Llama-3.1-8B`.
FAMILIES = {
    "gpt": "gpt chatgpt o1 o3 o4",
    "gemini": "gemini gemma",
    "qwen": "qwen qwq",
    "mistral": "mistral mixtral ministral",
    "glm": "glm chatglm",
    **dict(zip(_ALONE, _ALONE, strict=True)),
}
_FAMILY = {prefix: family for family, prefixes in FAMILIES.items() for prefix in prefixes.split()}
# At the start of a word that they are, but for a version: `yi-34b` and `qwen2.5`, not `yield`.
_PREFIX = re.compile(rf"(?<![a-z])({'|'.join(_FAMILY)})(?![a-z]{{2}})")


def family_of(model: str) -> str:
    """Return the family of a model, by the first family's name in its own; the name itself where none is known."""
    found = _PREFIX.search(model.lower().rpartition("/")[2]) or _PREFIX.search(model.lower())
    return _FAMILY[found[1]] if found else model
