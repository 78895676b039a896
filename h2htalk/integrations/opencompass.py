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
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import about_split

ABOUT, HERE = "h2htalk_about.json", Path(__file__).parent


def write_folder(out: Path, split: str = "mini", **asked: Any) -> list[Path]:
    """Write a data set for each language and subtask, with its budget; `split` and `asked` are as of `Door`."""
    asked = {"embedder": "none", **asked, "split": str(Path(split).resolve()) if Path(split).exists() else split}
    door = Door(**asked)
    subtasks = dict.fromkeys((item.language, SUBTASKS[item.subtask]) for item in door.items)
    languages = dict.fromkeys(language for language, _ in subtasks)
    for one in languages:
        write_jsonl(out / f"h2htalk_{one}.jsonl", (item.to_dict() for item in door.items if item.language == one))
    text = (HERE / "opencompass_config.j2").read_text(encoding="utf-8")
    template = Template(text, undefined=StrictUndefined, trim_blocks=True)
    names = {"split": door.split.name, "subtasks": subtasks, "languages": languages, "weights": SUBTASKS.values()}
    write_text(out / "h2htalk_mini.py", template.render(names, asks_s=door.metrics.asks_s) + "\n")
    write_json(out / ABOUT, about_split(door.split, door.protocol, asked))
    shutil.copy(HERE / "h2htalk_opencompass.py", out)
    return sorted(out.glob("h2htalk_*"))


def main(folder: Path) -> None:
    """Score the replies of standard input, with the settings of a folder."""
    about = read_json_object(folder / ABOUT)
    door = Door(**about["h2htalk"]["asked"])
    if different := differing_keys(door.protocol, about["h2htalk"]["protocol"]):
        raise DataError(f"{folder}: differs from this h2htalk in {', '.join(different)}; write it again")
    print(json.dumps(about))
    for one in map(json.loads, sys.stdin):
        found = door.score(one["id"], one["reply"])
        values = {"unscored": found} if isinstance(found, str) else found
        print(json.dumps({"id": one["id"], "unscored": "", **dict.fromkeys(door.columns), **values}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
