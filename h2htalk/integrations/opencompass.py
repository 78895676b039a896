"""A folder for OpenCompass, with data sets, their config and the module that it imports; the scorer of that module.

python -m h2htalk.integrations.opencompass FOLDER  takes lines of `{"id", "reply"}`; prints the split's and their own
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template

from h2htalk.data.files import read_json_object, write_json, write_jsonl, write_text
from h2htalk.data.signature import differing_keys
from h2htalk.data.subtasks import SUBTASKS, Subtask
from h2htalk.errors import DataError
from h2htalk.integrations.harness_split import HarnessSplit
from h2htalk.integrations.import_log import about_split

ABOUT = "h2htalk_about.json"
HERE = Path(__file__).parent


def write_folder(out: Path, split: str = "mini", **settings: Any) -> list[Path]:
    """Write a data set for each language and subtask, with its budget; the settings are as of `HarnessSplit`."""
    location = str(Path(split).resolve()) if Path(split).exists() else split
    settings = {"embedder": "none", **settings, "split": location}
    harness_split = HarnessSplit(**settings)
    subtasks: dict[tuple[str, Subtask], None] = {}
    rows: dict[str, list[dict[str, Any]]] = {}
    for item in harness_split.items:
        subtasks[item.language, SUBTASKS[item.subtask]] = None
        rows.setdefault(item.language, []).append(item.to_dict())
    for language in rows:
        write_jsonl(out / f"h2htalk_{language}.jsonl", rows[language])
    text = (HERE / "opencompass_config.j2").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, trim_blocks=True)
    config = template.render(
        split=harness_split.split.name,
        subtasks=subtasks,
        languages=rows,
        weights=SUBTASKS.values(),
        asks_s=harness_split.metrics.asks_s,
    )
    write_text(out / "h2htalk_mini.py", f"{config}\n")
    write_json(out / ABOUT, about_split(harness_split.split, harness_split.protocol, settings))
    shutil.copy(HERE / "h2htalk_opencompass.py", out)
    return sorted(out.glob("h2htalk_*"))


def main(folder: Path) -> None:
    """Score the replies of standard input, with the settings of a folder."""
    about = read_json_object(folder / ABOUT)
    harness_split = HarnessSplit(**about["h2htalk"]["asked"])
    different = differing_keys(harness_split.protocol, about["h2htalk"]["protocol"])
    if different:
        raise DataError(
            f"{folder}: differs from this h2htalk in {', '.join(different)}; write it again"
        )
    print(json.dumps(about))
    for line in sys.stdin:
        reply = json.loads(line)
        row = {"id": reply["id"], "unscored": "", **dict.fromkeys(harness_split.columns)}
        values = harness_split.score(reply["id"], reply["reply"])
        if isinstance(values, str):
            row["unscored"] = values
        else:
            row |= values
        print(json.dumps(row))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
