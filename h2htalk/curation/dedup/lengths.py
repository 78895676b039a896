"""The lengths of texts that dedup distinguishes, by language: `lengths_LANGUAGE.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.text.language_data import language_data


@dataclass(frozen=True, slots=True)
class Scale:
    """Shingles of `width` characters, for texts of `least` to `most` characters."""

    width: int
    least: int
    most: int = 1 << 62

    def fits(self, size: int) -> bool:
        return self.least <= size <= self.most


@dataclass(frozen=True, slots=True)
class Lengths:
    """The file of a language, which explains each value."""

    short_scale: Scale
    long_scale: Scale
    least_inputs: int
    least_references: int
    block: int
    run: int
    least_item_inputs: int
    least_item_reference: int
    long_item: int

    @property
    def scales(self) -> tuple[Scale, Scale]:
        return self.short_scale, self.long_scale


@cache
def lengths(language: Language) -> Lengths:
    """Read the lengths of a language, once a process."""
    raw: dict[str, Any] = dict(language_data("curation/dedup/lengths", language))
    raw |= {name: Scale(**raw[name]) for name in ("short_scale", "long_scale")}
    return Lengths(**raw)
