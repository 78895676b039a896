"""A folder for OpenCompass, with data sets, their config and the module that it imports; the scorer of that module.

python -m h2htalk.integrations.opencompass FOLDER  takes lines of `{"id", "reply"}`; prints the split's and their own
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from pprint import pformat
from typing import Any

from h2htalk.data.files import read_json_object, write_json, write_jsonl, write_text
from h2htalk.data.signature import differing_keys
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import H2HTalkError
from h2htalk.integrations.door import Door
from h2htalk.integrations.import_log import about_split

ABOUT, MODULE = "h2htalk_about.json", "h2htalk_opencompass"


def write_folder(out: Path, split: str = "mini", **asked: Any) -> list[Path]:
    """Write a data set for each language and subtask, with its budget; `split` and `asked` are as of `Door`."""
    asked["split"] = str(Path(split).resolve()) if Path(split).exists() else split
    door, groups = Door(**asked), list[dict[str, Any]]()
    subtasks = dict.fromkeys((item.language, item.subtask) for item in door.items)
    for language in dict.fromkeys(language for language, _ in subtasks):
        name = f"h2htalk_{language}"
        write_jsonl(out / f"{name}.jsonl", (one.to_dict() for one in door.items if one.language == language))
        weights = {f"{name}_{subtask}": float(SUBTASKS[subtask].count) for subtask in SUBTASKS}
        for column in ("lexical", *(["s"] if door.metrics.asks_s(language) else [])):
            cells = [[dataset, column] for dataset in weights]
            groups.append({"name": name, "metric": f"overall_{column}", "subsets": cells, "weights": weights})
    datasets = [_dataset(f"h2htalk_{language}", subtask) for language, subtask in subtasks]
    shown = [[one["name"], one["metric"]] for one in groups]
    shown += [[one["abbr"], column] for one in datasets for column in ("lexical", "unscored")]
    config = {"datasets": datasets, "summarizer": {"dataset_abbrs": shown, "summary_groups": groups}}
    for name, task in (("infer", "OpenICLInferTask"), ("eval", "OpenICLEvalTask")):
        runner = {"type": "LocalRunner", "task": {"type": task}}
        config[name] = {"partitioner": {"type": f"{MODULE}.H2HTalkPartitioner"}, "runner": runner}
    lines = (f"{name} = {pformat(value, width=120, sort_dicts=False)}\n" for name, value in config.items())
    write_text(out / "h2htalk_mini.py", lines)
    write_json(out / ABOUT, about_split(door.split, door.protocol, asked))
    shutil.copy(Path(__file__).with_name(f"{MODULE}.py"), out)
    return sorted(out.glob("h2htalk_*"))


def _dataset(name: str, subtask: str) -> dict[str, Any]:
    template = {"type": "RawPromptTemplate", "messages": [{"expand_column": "messages"}]}
    inferencer = {"type": "GenInferencer", "max_out_len": SUBTASKS[subtask].max_tokens}
    return {
        "type": f"{MODULE}.H2HTalkDataset",
        "abbr": f"{name}_{subtask}",
        "path": f"{name}.jsonl",
        "subtask": subtask,
        "reader_cfg": {"input_columns": ["messages"], "output_column": "references"},
        "infer_cfg": {"prompt_template": template, "retriever": {"type": "ZeroRetriever"}, "inferencer": inferencer},
        "eval_cfg": {"evaluator": {"type": f"{MODULE}.H2HTalkEvaluator"}},
    }


def main(folder: Path) -> None:
    """Score the replies of standard input, with the settings of a folder."""
    about = read_json_object(folder / ABOUT)
    door = Door(**about["h2htalk"]["asked"])
    if different := differing_keys(door.protocol, about["h2htalk"]["protocol"]):
        advice = "write it again with `h2htalk integrations opencompass`"
        sys.exit(f"error: {folder}: differs from this h2htalk in {', '.join(different)}; {advice}")
    print(json.dumps(about))
    for asked in map(json.loads, sys.stdin):
        found = door.score(asked["id"], asked["reply"])
        values = {"unscored": found} if isinstance(found, str) else found
        print(json.dumps({"id": asked["id"], "unscored": "", **dict.fromkeys(door.columns), **values}))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except H2HTalkError as error:
        sys.exit(f"error: {error}")
