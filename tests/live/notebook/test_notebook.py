"""The notebook of the documentation on a real Jupyter kernel, where an event loop runs; and Ctrl-C in one.

`make live-notebook` runs these in an environment of its own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live
nbclient = pytest.importorskip("nbclient", reason="make live-notebook runs these tests")
nbformat = pytest.importorskip("nbformat")
jupyter = pytest.importorskip("jupyter_client.manager")

ROOT = Path(__file__).parents[3]
EVALUATE = """
import asyncio, time, h2htalk
calls = []

async def later(messages):
    await asyncio.sleep(.05)
    return "I am here."

def slow(messages):
    calls.append(messages[-1]["content"])
    time.sleep(.1)
    return "I am here."

def evaluate(function, **change):
    own = {"out": function.__name__, **change}
    spec = h2htalk.EvaluateSpec(model=function, split="mini", limit=22, embedder="none", **own)
    return h2htalk.evaluate(spec)
"""


@pytest.fixture(autouse=True)
def _package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The kernel loads the package of this checkout, and draws without a screen."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def outputs_of(notebook: Any, cell_id: str) -> list[Any]:
    return next(cell.outputs for cell in notebook.cells if cell.id == cell_id)


def test_the_notebook_evaluates_a_function_and_shows_tables_and_a_figure(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client = nbclient.NotebookClient(
        notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()

    # One line, which changed in its place, and nothing on stderr. Where scoring takes long, the replies of the model
    # and of each baseline have a line too.
    generating, *scoring, summary = outputs_of(notebook, "run")
    assert re.fullmatch(r"generate  22/22  100%.*", generating.data["text/plain"])
    assert {line.data["text/plain"].split()[0] for line in scoring} <= {"scoring"}
    assert len(scoring) <= 3
    assert "<table>" in summary.data["text/html"]
    assert "python:my companion" in summary.data["text/html"]
    assert "22 of 22 items of mini" in summary.data["text/html"]
    (described,), (head,) = outputs_of(notebook, "scores"), outputs_of(notebook, "answers")
    assert "<td>22.000000</td>" in described.data["text/html"]
    assert "Thank you for telling me." in head.data["text/html"]
    (picture,) = [
        one for one in outputs_of(notebook, "figure") if "image/png" in one.get("data", {})
    ]
    assert len(picture.data["image/png"]) > 5_000
    assert (tmp_path / "runs" / "my-companion" / "report.html").is_file()


class Kernel:
    """A kernel that runs cells: their outputs, and the name of the error that ended them. `interrupt`: it is stopped
    once the line of progress is shown."""

    def __init__(self, folder: Path) -> None:
        self.manager = jupyter.KernelManager(kernel_name="python3")
        self.manager.start_kernel(cwd=str(folder))
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code: str, interrupt: bool = False) -> tuple[list[dict[str, Any]], str]:
        outputs: list[dict[str, Any]] = []
        sent = self.client.execute(code)
        started = time.monotonic()
        while True:
            if not self.client.iopub_channel.msg_ready():
                time.sleep(0.02)
                assert time.monotonic() - started < 120, "the cell does not end"
                continue
            message = self.client.get_iopub_msg()
            if message["parent_header"].get("msg_id") != sent:
                continue
            outputs.append({"type": message["msg_type"], **message["content"]})
            if interrupt and message["msg_type"] == "display_data":  # the first answers are there
                self.manager.interrupt_kernel()
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                return outputs, next(
                    (one["ename"] for one in outputs if one["type"] == "error"), ""
                )

    def value(self, code: str) -> str:
        outputs, error = self.run(code)
        assert not error, outputs
        return next(
            str(one["data"]["text/plain"]) for one in outputs if one["type"] == "execute_result"
        )


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    one = Kernel(tmp_path)
    try:
        yield one
    finally:
        one.client.stop_channels()
        one.manager.shutdown_kernel(now=True)


def test_a_coroutine_function_answers_and_one_line_shows_how_far_it_is(kernel: Kernel) -> None:
    assert kernel.run(EVALUATE)[1] == ""
    outputs, error = kernel.run("summary = evaluate(later, concurrency=1)")
    assert error == ""
    shown = [one for one in outputs if one["type"] in ("display_data", "update_display_data")]
    # Scoring has a line of its own where it takes long.
    generating = [one for one in shown if one["data"]["text/plain"].startswith("generate")]
    updates = ["update_display_data"] * (len(generating) - 1)
    assert [one["type"] for one in generating] == ["display_data", *updates]
    assert len({one["transient"]["display_id"] for one in generating}) == 1
    others = [one for one in shown if one not in generating]
    assert {one["data"]["text/plain"].split()[0] for one in others} <= {"scoring"}
    texts = [one["data"]["text/plain"] for one in generating]
    assert 3 <= len(texts) <= 12  # five a second at most, of 22 calls that take 1.1 s
    assert texts[-1].startswith("generate  22/22  100%")
    assert [one for one in outputs if one["type"] == "stream"] == []
    assert (
        kernel.value("(summary.counts.scored, summary.signature.subject['function'])")
        == "(22, '__main__.later')"
    )


def test_interrupting_the_kernel_keeps_what_came_and_the_same_cell_goes_on(kernel: Kernel) -> None:
    assert kernel.run(EVALUATE)[1] == ""
    _, error = kernel.run("evaluate(slow, concurrency=1)", interrupt=True)
    assert error == "KeyboardInterrupt"
    before = int(kernel.value("len(calls)"))
    assert 0 < before < 22
    assert kernel.value("evaluate(slow, concurrency=1).counts.scored") == "22"
    assert int(kernel.value("len(calls)")) <= 23  # the call that was interrupted is made again
