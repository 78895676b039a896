"""The specification of a curation: one TOML file with general settings and one section for each stage.

The stage table names the record of each section. Only the sources of `gather` have no default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, with_config

from h2htalk.curation.setting_types import FilePath
from h2htalk.curation.stages import STAGES
from h2htalk.data.files import read_toml
from h2htalk.data.records import STRICT, read_record
from h2htalk.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GeneralSettings:
    """Settings outside the sections.

    Attributes:
        workspace: its folder.
        seed: of everything that is drawn at random.
        processes: that work on parts; None: the usable cores.
        part: dialogues in a part, the unit of work that is repeated after a kill.
        prompts: a folder of templates that replace bundled ones.
        prices: a file of model prices that replace bundled ones.
    """

    workspace: FilePath
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] = 0
    processes: Annotated[int, Field(ge=1, le=1024)] | None = None
    part: Annotated[int, Field(ge=1, le=1_000_000)] = 250
    prompts: FilePath = ""
    prices: FilePath = ""


@dataclass(frozen=True, slots=True)
class CurateSpec(GeneralSettings):
    """A whole specification: `sections` holds a record for each stage, `folder` is the folder of its file."""

    sections: tuple[object, ...] = ()
    folder: Path = Path()

    def section(self, kind: type[T]) -> T:
        """The section of this type; with default values where the specification has none."""
        return next((section for section in self.sections if isinstance(section, kind)), None) or kind()


def read_spec(path: Path, *, workspace: Path | None = None, processes: int | None = None) -> CurateSpec:
    """Read a specification; `workspace` and `processes` replace the values in the file.

    Raises:
        ConfigError: the file cannot be read, or a setting is missing, unknown or wrong; names file and setting.
    """
    raw = read_toml(path, 1 << 22)
    if workspace is not None:
        raw["workspace"] = "."  # replaced below: a `$` that the shell left in a path is no variable
    if processes is not None:
        raw["processes"] = processes
    folder = path.resolve().parent
    given = {name: raw.pop(name, {}) for name in STAGES}
    general = read_section(GeneralSettings, raw, folder, str(path), known=list(STAGES))
    sections = tuple(
        read_section(one.settings, given[one.name], folder, f"{path}: {one.name}") for one in STAGES.values()
    )
    spec = CurateSpec(**asdict(general), sections=sections, folder=folder)
    return replace(spec, workspace=str(workspace.resolve())) if workspace is not None else spec


def read_section(
    kind: type[T],
    raw: object,
    folder: Path,
    where: str,
    page: str = "docs/curation.md",
    known: Sequence[str] = (),
) -> T:
    """Read one record; a message starts with `where`, that of an unknown setting names the `page` that lists them."""
    return read_record(
        with_config(STRICT)(kind),
        raw,
        where,
        error=ConfigError,
        unknown=f"{page} lists them",
        known=known,
        context={"folder": folder},
    )
