"""Prompts of curation: templates by language, and the class that renders them.

In: values. Out: the text of a prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError
from h2htalk.text.jinja_templates import Templates, read_templates


class Prompts(Templates):
    """The templates of curation; those of a user's folder replace bundled ones."""

    __slots__ = ()

    @classmethod
    def load(cls, folder: Path | str = "") -> Prompts:
        """Load the bundled templates (`en/review_item.j2`); those of a `folder` replace them by name.

        Raises ConfigError for a missing folder, and a template of an unknown name or with a mistake.
        """
        bundled = read_templates(Path(__file__).parent)
        own = read_templates(Path(folder)) if folder else {}
        for name, (path, _) in own.items():
            if name not in bundled:
                known = ", ".join(sorted({other.partition("/")[2] for other in bundled}))
                raise ConfigError(
                    f"{path}: no prompt has this name; choose from {known}, in {' or '.join(LANGUAGES)}"
                )
        prompts = cls.of(bundled, own)
        for name in own:
            prompts.parse(name)
        return prompts

    def fingerprint(self, *names: str) -> str:
        """16 hexadecimal digits of these templates, for the settings of the stage that sends them."""
        return fingerprint([[name, self.sources[name]] for name in sorted(names)])


def json_lines(inputs: Mapping[str, Any]) -> str:
    """The inputs of a scenario in a prompt, one a line, as JSON."""
    return "\n".join(
        f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in inputs.items()
    )


def fingerprint(value: object) -> str:
    """16 hexadecimal digits of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
