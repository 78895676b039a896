"""mini through OpenCompass, in an environment of its own: what it sends, and that its scores are ours."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loopback import Answer, LoopbackServer, completion
from one_model import LANGUAGES, PARTS, Ours, Seen, differences, items, key_of, reply
from typer.testing import CliRunner

import h2htalk as package
from h2htalk.benchmark.run import load_run
from h2htalk.cli import app
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.integrations.door import Door

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
ROOT = Path(package.__file__).parents[1]
OPENCOMPASS = ROOT / ".venv-opencompass" / "bin" / "opencompass"
if not OPENCOMPASS.exists():
    pytest.skip("needs the environment of `make live-opencompass`", allow_module_level=True)

MODELS = """from mmengine.config import read_base

with read_base():
    from .h2htalk_mini import datasets, eval, infer, summarizer
models = [
    dict(
        type="h2htalk_opencompass.H2HTalkChat", abbr="demo", path="loopback", openai_api_base="{url}", key="none",
        temperature=0.0, batch_size=16, query_per_second=1000, retry=2,
    )
]
"""


def h2htalk(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def opencompass(
    server: LoopbackServer, folder: Path, *words: str, python: str | None = sys.executable, models: str = MODELS
) -> subprocess.CompletedProcess[str]:
    """The commands of the documentation; with `python` None H2HTALK_PYTHON is not set."""
    h2htalk("integrations", "opencompass", "--out", str(folder / "h2htalk"), *words)
    (folder / "h2htalk" / "models.py").write_text(models.format(url=server.url), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "H2HTALK_PYTHON"}
    search = os.pathsep.join(filter(None, (str(folder / "h2htalk"), os.environ.get("PYTHONPATH", ""))))
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": search} | ({"H2HTALK_PYTHON": python} if python else {})
    return subprocess.run(
        [OPENCOMPASS, folder / "h2htalk" / "models.py", "-w", folder / "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
        timeout=400,
    )


@dataclass(frozen=True)
class Log:
    """What a run wrote: its folder, the details of each item, and the results of each data set."""

    path: Path
    rows: dict[str, dict[str, Any]]
    results: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, folder: Path, done: subprocess.CompletedProcess[str]) -> Log:
        (path,) = (folder / "out").iterdir()
        written = {one.stem: json.loads(one.read_text(encoding="utf-8")) for one in path.glob("results/demo/*.json")}
        assert written, done.stdout[-2000:] + done.stderr[-2000:] + texts(path / "logs")
        rows = {}
        for result in written.values():
            for row in result["details"]:
                assert all(len(values) == 1 for name, values in row.items() if name != "example_abbr")
                rows[row["id"][0]] = {name: values[0] for name, values in row.items()}
        return cls(path, rows, written)

    def group(self, name: str) -> dict[str, float]:
        """The figures of a summary group, all their digits."""
        (text,) = self.path.glob("summary/*.txt")
        (line,) = re.findall(rf"^{name}: (.*)$", text.read_text(encoding="utf-8"), re.MULTILINE)
        found: dict[str, float] = ast.literal_eval(line)
        return found


def texts(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.out")))


@pytest.fixture(scope="module", params=LANGUAGES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Log, Seen]:
    folder = tmp_path_factory.mktemp("opencompass")
    with LoopbackServer(reply=reply) as server:
        done = opencompass(server, folder, "--language", request.param, "--embedder", "minilm")
        assert done.returncode == 0, done.stderr
        return request.param, Log.read(folder, done), Seen.by(server)


def test_every_value_of_every_item_is_ours(ours: dict[str, Ours], whole: tuple[str, Log, Seen]) -> None:
    language, log, _ = whole
    columns = (*PARTS, "lexical", *(("ss", "s") if language == "en" else ()))
    assert len(log.rows) == LANGUAGES[language]
    found = differences(ours[language], log.rows, columns)
    print(language, found)
    assert {name: most for name, most in found.items() if most > 1e-9} == {}
    broken = {name for name, row in ours[language].scores.items() if row["violations"]}
    assert {name for name, row in log.rows.items() if row["compliance"] == 0} == broken
    assert {name for name, row in log.rows.items() if row["unscored"]} == set()
    assert {name for name, row in ours[language].scores.items() if row["unscored"]} == set()


def test_the_server_sees_the_messages_and_budgets_of_our_own_run(
    ours: dict[str, Ours], whole: tuple[str, Log, Seen]
) -> None:
    assert ours[whole[0]].seen == whole[2]
    assert len(set(whole[2].budgets.values())) == 4
