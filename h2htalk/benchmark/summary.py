"""What a finished run says: rows, slices, floors, counts and warnings, as `summary.json` holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from h2htalk.benchmark.aggregate import Cell, NullClass, Row
from h2htalk.data.signature import Signature
from h2htalk.errors import DataError

# The two measures a row can be made of: the composite S, or the mean of its six lexical parts.
Measure = Literal["s", "lexical"]


@dataclass(frozen=True, slots=True)
class Counts:
    """How the items fared. `failures` counts samples by reason; `empty` and `truncated` count replies."""

    items: int
    scored: int
    samples: int
    empty: int = 0
    truncated: int = 0
    refused: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def unscored(self) -> int:
        return self.items - self.scored


@dataclass(frozen=True, slots=True)
class Standing:
    """The rows of one contender, the model or a floor. `s` is None where S was not asked for."""

    s: Row | None
    lexical: Row
    compliance: Row
    null_class: NullClass | None

    def row(self, measure: Measure) -> Row | None:
        return self.s if measure == "s" else self.lexical

    def to_dict(self) -> dict[str, Any]:
        return {
            "s": None if self.s is None else self.s.to_dict(),
            "lexical": self.lexical.to_dict(),
            "compliance": self.compliance.to_dict(),
            "null_class": None if self.null_class is None else asdict(self.null_class),
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Standing:
        return cls(
            None if raw["s"] is None else Row.from_dict(raw["s"]),
            Row.from_dict(raw["lexical"]),
            Row.from_dict(raw["compliance"]),
            None if raw["null_class"] is None else NullClass(**raw["null_class"]),
        )


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the tables show.

    `measure` is what the main row is made of: `s`, or `lexical` where no embedder was asked for.
    `s_languages` are the languages whose items have S; `s_comparable` says whether S may stand beside the
    paper's (BGE-M3 only). `metrics` holds the mean of each metric by subtask, in [0, 1]. `slices` is by tag,
    then by value of the tag. `judged` is False while levels I-III have no judge's rating in them.
    """

    model: str
    split: str
    signature: Signature
    package_version: str
    measure: Measure
    s_languages: tuple[str, ...]
    s_comparable: bool
    counts: Counts
    standing: Standing
    metrics: Mapping[str, Mapping[str, float]]
    slices: Mapping[str, Mapping[str, Cell]]
    floors: Mapping[str, Standing]
    violations: Mapping[str, int]
    warnings: tuple[str, ...]
    judged: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether any item is unscored: marked in every table, exit code 3."""
        return self.counts.unscored > 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "split": self.split,
            "signature": self.signature.to_dict(),
            "package_version": self.package_version,
            "measure": self.measure,
            "s_languages": list(self.s_languages),
            "s_comparable": self.s_comparable,
            "incomplete": self.incomplete,
            "counts": asdict(self.counts),
            "standing": self.standing.to_dict(),
            "metrics": {key: dict(value) for key, value in self.metrics.items()},
            "slices": {tag: {k: c.to_dict() for k, c in cells.items()} for tag, cells in self.slices.items()},
            "floors": {name: standing.to_dict() for name, standing in self.floors.items()},
            "violations": dict(self.violations),
            "warnings": list(self.warnings),
            "judged": self.judged,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Summary:
        """Read `summary.json`; DataError (starting with `where`) when it is not one."""
        try:
            return cls(
                model=raw["model"],
                split=raw["split"],
                signature=Signature.from_dict(raw["signature"], where),
                package_version=raw["package_version"],
                measure=raw["measure"],
                s_languages=tuple(raw["s_languages"]),
                s_comparable=raw["s_comparable"],
                counts=Counts(**raw["counts"]),
                standing=Standing.from_dict(raw["standing"]),
                metrics=raw["metrics"],
                slices={
                    tag: {key: Cell.from_dict(cell) for key, cell in cells.items()}
                    for tag, cells in raw["slices"].items()
                },
                floors={name: Standing.from_dict(floor) for name, floor in raw["floors"].items()},
                violations=raw["violations"],
                warnings=tuple(raw["warnings"]),
                judged=raw["judged"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{where}: not a summary of this version ({error!r}); run `h2htalk score` again"
            ) from error


def read_summary(path: Path) -> Summary:
    """A run's `summary.json`; raises DataError, with what to do, when it is missing or of another version."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: not there; run `h2htalk score {path.parent}` first") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return Summary.from_dict(raw, str(path))
