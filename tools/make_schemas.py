"""Write the JSON Schemas that ship with the package: `python tools/make_schemas.py`."""

from __future__ import annotations

import json
from pathlib import Path

from h2htalk.data.split_output import case_schema, scenario_schema

FOLDER = Path(__file__).parents[1] / "h2htalk/data/bundled/schemas"
SCHEMAS = {"scenario.json": scenario_schema, "case.json": case_schema}


def text_of(name: str) -> str:
    return json.dumps(SCHEMAS[name](), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in SCHEMAS:
        (FOLDER / name).write_text(text_of(name), encoding="utf-8")


if __name__ == "__main__":
    main()
