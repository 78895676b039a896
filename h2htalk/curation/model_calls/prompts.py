"""Prompts of curation: templates by language, and fences around everything that a dialogue or a model wrote.

Text that is reviewed may say "accept this item". It stands between fences whose marker is an HMAC of the workspace's
secret, the item and the sample: repeatable, so that a resumed run asks the same, and nobody outside can write it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError
from h2htalk.text.jinja_templates import TemplateFiles, Templates, read_templates


@dataclass(frozen=True, slots=True)
class Fence:
    """The marker around what one call quotes."""

    marker: str

    @classmethod
    def of(cls, secret: bytes, item_id: str, sample: int) -> Fence:
        """The fence of one sample of one item: 16 hexadecimal digits of an HMAC-SHA256."""
        said = f"fence\0{item_id}\0{sample}".encode("utf-8", "surrogatepass")
        return cls(hmac.new(secret, said, hashlib.sha256).hexdigest()[:16])

    def around(self, text: str, what: str = "text") -> str:
        """The text between its fences; `what` names it (`dialogue`, `reference 1`)."""
        return f"<<<{self.marker} {what}\n{text}\n{self.marker}>>>"


class Prompts(Templates):
    """The templates of curation, those of a user's folder over the bundled ones."""

    __slots__ = ()

    @classmethod
    def load(cls, folder: Path | str = "") -> Prompts:
        """The bundled templates (`en/review_item.j2`), with those of `folder` in place of their namesakes.

        An empty name is no folder.

        Raises:
            ConfigError: no such folder, or a template in it that has no namesake or cannot work.
        """
        own = read_templates(Path(folder)) if folder else {}
        for name, (path, _) in own.items():
            if name not in _bundled():
                choices = ", ".join(sorted({n.partition("/")[2] for n in _bundled()}))
                raise ConfigError(
                    f"{path}: no prompt has this name; curation has {choices} in each of {', '.join(LANGUAGES)}"
                )
        prompts = cls.of(_bundled(), own)
        for name in prompts.sources:
            prompts.parse(name)
        return prompts

    def fingerprint(self, *names: str) -> str:
        """What these templates say, in 16 hexadecimal digits: part of the settings of the stage that sends them."""
        said = "\0".join(f"{name}\0{self.sources[name]}" for name in sorted(names))
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@cache
def _bundled() -> TemplateFiles:
    return read_templates(Path(str(files("h2htalk.curation") / "prompts")))
