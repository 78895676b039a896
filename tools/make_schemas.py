"""Write the JSON Schemas that ship with the package: `python tools/make_schemas.py`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from record_schemas import case_schema, scenario_schema
from settings_schemas import settings_schemas

FOLDER = Path(__file__).parents[1] / "h2htalk/data/bundled/schemas"


def schemas() -> dict[str, dict[str, Any]]:
    """All schemas, by the name that `h2htalk schema` has for them."""
    return {"scenario": scenario_schema(), "case": case_schema(), **settings_schemas()}


def text_of(schema: dict[str, Any]) -> str:
    """The content of a schema's file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every schema's file."""
    FOLDER.mkdir(exist_ok=True)
    for name, schema in schemas().items():
        (FOLDER / f"{name}.json").write_text(text_of(schema), encoding="utf-8")


if __name__ == "__main__":
    main()
