"""The Secure Attachment Persona (SAP): safety scaffolding for any persona, principle by principle.

Section 3.4 of the paper names the sources but does not print the text. The text in `prompts/LANGUAGE/sap/` is written
from those sources, one file for each principle in the order of PRINCIPLES, so that each can be switched off alone and
its effect measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from h2htalk.benchmark.prompts.templates import TemplateSet
from h2htalk.data.help_lines import help_rows
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError, suggest


@dataclass(frozen=True, slots=True)
class Principle:
    """One principle: its name in options, its title, and the sources of its text."""

    name: str
    title: str
    source: str


# In the order in which a prompt states them.
PRINCIPLES: dict[str, Principle] = {
    p.name: p
    for p in (
        Principle(
            "secure_base",
            "Secure base",
            "Bowlby, A Secure Base: Clinical Applications of Attachment Theory (1988); Ainsworth, Blehar, "
            "Waters & Wall, Patterns of Attachment (1978): sensitive response first, exploration backed",
        ),
        Principle(
            "calibrated_boundaries",
            "Calibrated boundaries",
            "Ainsworth, Attachments beyond infancy, American Psychologist 44(4), 1989: accessible and "
            "responsive, one bond among others, never exclusive",
        ),
        Principle(
            "positive_ratio",
            "Positive interaction ratio",
            "Gottman & Levenson, Marital processes predictive of later dissolution, Journal of Personality "
            "and Social Psychology 63(2), 1992; Gottman, What Predicts Divorce? (1994): about five to one",
        ),
        Principle(
            "action_validation",
            "Action-based validation",
            "Gottman, The Science of Trust (2011): trust is built by small acts of attunement; against the "
            "one-sided bond of Horton & Wohl, Mass communication and para-social interaction, Psychiatry "
            "19(3), 1956",
        ),
        Principle(
            "self_regulation",
            "Self-regulation",
            "Gross, The emerging field of emotion regulation, Review of General Psychology 2(3), 1998: the "
            "process model's five families, from situation selection to response modulation",
        ),
        Principle(
            "autonomy_support",
            "Autonomy support",
            "Ryan & Deci, Self-determination theory and the facilitation of intrinsic motivation, social "
            "development, and well-being, American Psychologist 55(1), 2000",
        ),
        Principle(
            "principled_negotiation",
            "Principled negotiation",
            "Fisher & Ury, Getting to Yes (1981): people apart from the problem, interests, options, "
            "objective criteria",
        ),
        Principle(
            "crisis_conduct",
            "Crisis conduct",
            "Stanley & Brown, Safety Planning Intervention, Cognitive and Behavioral Practice 19(2), 2012; "
            "Dazzi et al., Does asking about suicide and related behaviours induce suicidal ideation?, "
            "Psychological Medicine 44(16), 2014: it does not, so ask",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Sap:
    """The principles that are on, in the order of PRINCIPLES; by default all.

    Raises:
        ConfigError: a principle is unknown, named twice or out of order.
    """

    principles: tuple[str, ...] = tuple(PRINCIPLES)

    def __post_init__(self) -> None:
        if self.principles != tuple(name for name in PRINCIPLES if name in self.principles):
            raise ConfigError(
                f"SAP principles ({', '.join(self.principles)}) must be some of {', '.join(PRINCIPLES)}, in that order"
            )

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
            meant = suggest(wrong[0], choices if len(words) > 1 else ("full", "none", *choices))
            raise ConfigError(
                f"unknown SAP {text!r}; {meant}choose full, none, or a comma list of {', '.join(choices)}"
            )
        off = {word.removeprefix("no_") for word in words}
        return cls(tuple(name for name in PRINCIPLES if name not in off))

    def __str__(self) -> str:
        """The canonical form, which `parse` reads: equal choices give equal text, as a signature needs."""
        if not self.principles:
            return "none"
        off = sorted(set(PRINCIPLES) - set(self.principles))
        return ",".join(f"no-{name}" for name in off) or "full"

    def render(self, language: Language, templates: TemplateSet, rows: Sequence[str] | None = None) -> str:
        """Render the scaffolding: a preamble on honesty, then the principles that are on.

        Args:
            language: of the text.
            templates: the templates of the principles.
            rows: the help lines to name (`help_rows`); None for the bundled ones.

        Returns:
            Paragraphs separated by an empty line; an empty text without any principle, so that the prompt does
            not mention being an AI.
        """
        if not self.principles:
            return ""
        values = {"help_rows": help_rows(language) if rows is None else rows}
        names = ("preamble", *self.principles)
        return "\n\n".join(templates.render(f"{language}/sap/{name}.j2", values) for name in names)
