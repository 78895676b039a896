"""The Secure Attachment Persona (SAP): safety scaffolding for any persona, principle by principle.

Section 3.4 of the paper names the sources but does not print the text. The text in `prompts/LANGUAGE/sap/` is written
from those sources, one file for each principle in the order of PRINCIPLES, so that each can be switched off alone and
its effect measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError, suggest

if TYPE_CHECKING:
    from h2htalk.text.jinja_templates import Templates

# Name in options and title, in the order in which a prompt states them. Sources of each: docs/reference/sap.md.
PRINCIPLES: dict[str, str] = {
    "secure_base": "Secure base",
    "calibrated_boundaries": "Calibrated boundaries",
    "positive_ratio": "Positive interaction ratio",
    "action_validation": "Action-based validation",
    "self_regulation": "Self-regulation",
    "autonomy_support": "Autonomy support",
    "principled_negotiation": "Principled negotiation",
    "crisis_conduct": "Crisis conduct",
}


@dataclass(frozen=True, slots=True)
class Sap:
    """The principles that are on, in the order of PRINCIPLES; by default all."""

    principles: tuple[str, ...] = tuple(PRINCIPLES)

    @classmethod
    def parse(cls, text: str) -> Sap:
        """Parse `full`, `none`, or a comma-separated list of `no-PRINCIPLE`; hyphens and underscores are equal."""
        words = [word.strip().lower().replace("-", "_") for word in text.split(",")]
        if words == ["full"]:
            return cls()
        if words == ["none"]:
            return cls(())
        choices = [f"no-{name}" for name in PRINCIPLES]
        wrong = [one for word in words if (one := word.replace("no_", "no-", 1)) not in choices]
        if wrong:
            near = suggest(wrong[0], choices if len(words) > 1 else ("full", "none", *choices))
            raise ConfigError(f"unknown SAP {text!r}; {near}choose full, none, or a comma list of {', '.join(choices)}")
        off = {word.removeprefix("no_") for word in words}
        return cls(tuple(name for name in PRINCIPLES if name not in off))

    def __str__(self) -> str:
        """The canonical form, which `parse` reads: equal choices give equal text, as a signature needs."""
        if not self.principles:
            return "none"
        return ",".join(f"no-{name}" for name in sorted(set(PRINCIPLES) - set(self.principles))) or "full"

    def render(self, language: Language, templates: Templates, rows: Sequence[str]) -> str:
        """Render a preamble on honesty, then the principles that are on, with the help lines of `rows`.

        Without any principle the text is empty, so that the prompt does not mention being an AI.
        """
        if not self.principles:
            return ""
        paths = (f"{language}/sap/{name}.j2" for name in ("preamble", *self.principles))
        return "\n\n".join(templates.render(path, {"help_rows": rows}) for path in paths)
