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
PREAMBLE = "preamble"  # the template on honesty before those of the principles
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
        switched_off = [word.replace("no_", "no-", 1) for word in words]
        for name in switched_off:
            if name not in choices:
                suggestion = suggest(
                    name, choices if len(words) > 1 else ("full", "none", *choices)
                )
                raise ConfigError(
                    f"unknown SAP {text!r}; {suggestion}choose full, none, or a comma list of {', '.join(choices)}"
                )
        return cls(tuple(name for name in PRINCIPLES if f"no-{name}" not in switched_off))

    def __str__(self) -> str:
        """The canonical form, which `parse` reads: equal choices give equal text, as a signature needs."""
        if not self.principles:
            return "none"
        switched_off = sorted(set(PRINCIPLES).difference(self.principles))
        return ",".join(f"no-{name}" for name in switched_off) or "full"

    def render(self, language: Language, templates: Templates, rows: Sequence[str]) -> str:
        """Render a preamble on honesty, then the principles that are on, with the help lines of `rows`.

        Without any principle the text is empty, so that the prompt does not mention being an AI.
        """
        if not self.principles:
            return ""
        paths = (f"{language}/sap/{name}.j2" for name in (PREAMBLE, *self.principles))
        return "\n\n".join(templates.render(path, {"help_rows": rows}) for path in paths)
