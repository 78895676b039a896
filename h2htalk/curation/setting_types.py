"""Types of settings in a curation's TOML file: paths, models, splits and amounts of money.

pydantic checks and resolves them when the file is read. A relative path is relative to the file's folder, which
`read_spec` passes as pydantic's context; `$NAME` as a part of a path is an environment variable.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from h2htalk.chat.engines import model_kind
from h2htalk.data.releases.release_folder import HUB
from h2htalk.errors import quoted


def resolve_path(path: str, folder: Path) -> Path:
    """Fill in the environment variables of a path; a relative path is relative to `folder`.

    Raises:
        KeyError: a variable is not set; the argument is its name.
        ValueError: the text cannot be a path.
    """
    filled = "/".join(os.environ[part[1:]] if part.startswith("$") else part for part in path.split("/"))
    try:
        if "\0" in filled:
            raise ValueError("it contains a null character")
        resolved = folder / Path(filled).expanduser()
        resolved.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long; `~nobody`
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{quoted(path)} cannot be a path: {reason}") from error
    return resolved


def _resolve(value: str, info: ValidationInfo) -> str:
    if not value:
        return value
    try:
        return str(resolve_path(value, (info.context or {})["folder"]))
    except KeyError as unset:
        raise ValueError(f"${unset.args[0]} is not set; set it, or write the path out") from None


def _resolve_model(value: str, info: ValidationInfo) -> str:
    engine, _, name = value.partition(":")
    kind = model_kind(engine)
    # The name of a model on the Hub starts with none of these.
    is_folder = kind == "folder" and name.startswith((".", "/", "~", "$"))
    return f"{engine}:{_resolve(name, info)}" if name and (kind == "file" or is_folder) else value


def _resolve_split(value: str, info: ValidationInfo) -> str:
    # The name of a bundled split contains none of these.
    is_path = {"/", ".", "$", "~"} & set(value) and not value.startswith(HUB)
    return _resolve(value, info) if is_path else value


FilePath = Annotated[str, AfterValidator(_resolve)]
ModelName = Annotated[str, AfterValidator(_resolve_model)]
SplitName = Annotated[str, AfterValidator(_resolve_split)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]
