"""How files of conversations name who speaks, and under which keys they give the user's name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from h2htalk.data.scenario import Role
from h2htalk.text.language_data import read_data

RoleNames = Mapping[str, Role]
_NAMES = read_data(Path(__file__).with_suffix(".toml"))
_ROLES = _NAMES["roles"]
ROLE_NAMES: RoleNames = {
    **dict.fromkeys(_ROLES["user"], "user"),
    **dict.fromkeys(_ROLES["companion"], "companion"),
}
INSTRUCTION_ROLES = tuple(_ROLES["instructions"])  # their messages instruct the companion
TOOL_ROLES = tuple(_ROLES["tool"])  # their messages are calls of tools, and their results
USER_NAMES = tuple(_NAMES["user_names"])  # keys under which files give the user's name
