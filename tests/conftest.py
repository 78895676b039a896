"""What all tests share.

`H2HTALK_NO_SKIP=1` makes a skipped test a failure: for machines that have all that the tests need.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import settings

from h2htalk import masking
from h2htalk.chat.protocol import Outcome, Request
from h2htalk.chat.scripted import ScriptedChat
from h2htalk.text import tokens
from h2htalk.text.embeddings.minilm import MiniLM
from support.judges import read_planted

# HYPOTHESIS_PROFILE: `quick` in `make test`, `thorough` in `make test-all`, `few` in `make lowest`.
settings.register_profile("few", max_examples=5, deadline=None)
settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

skipped: list[str] = []

# A shell without job control starts `make test &` deaf to Ctrl-C, and its children with it: tests that send one to
# a run of theirs would wait for its end in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# A process that a test started and that hangs prints the stacks of its threads (`support.kills.communicate`).
os.environ["PYTHONFAULTHANDLER"] = "1"

# Once a process: jieba's dictionary and MiniLM are loaded, the command line is built, an SDK's client reads its 140
# certificates (30 ms).
tokens.release_tokenizers = lambda: None
typer.main.get_command = functools.cache(typer.main.get_command)
ssl.create_default_context = functools.cache(ssl.create_default_context)
load_minilm, loaded_minilm = MiniLM.__init__, dict[str, Any]()


def _share_minilm(self: MiniLM) -> None:
    if not loaded_minilm or sys.modules.get("openvino", self) is None:  # a test that hides it
        load_minilm(self)
        loaded_minilm.update(vars(self))
    vars(self).update(loaded_minilm)


MiniLM.__init__ = _share_minilm  # type: ignore[method-assign]


find_line = ScriptedChat._find


def _read_planted(self: ScriptedChat, request: Request) -> Outcome:
    """A scripted judge answers planted replies by their truth: they are drawn when its study runs."""
    own = (request.id, request.sample) in self._lines
    return (None if own else read_planted(request)) or find_line(self, request)


ScriptedChat._find = _read_planted  # type: ignore[method-assign]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First what lies beside this file: whole tutorials, which at the end would leave other workers idle."""
    items.sort(key=lambda item: item.path.parent != Path(__file__).parent)


def pytest_collection_finish() -> None:
    """Take what was imported and collected, a million objects, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache; one folder serves the whole run, all its processes included."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "cache").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("H2HTALK_CACHE", str(folder / "cache"))
        yield


@pytest.fixture
def no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures in two of three forms: the fonts of a PDF cost as much as all the rest of a figure."""
    monkeypatch.setattr("h2htalk.analysis.figures.style.FORMATS", ("svg", "png"))


@pytest.fixture
def shared_data() -> Path:
    """The folder of public data that `H2HTALK_DATA` names."""
    folder = os.environ.get("H2HTALK_DATA")
    if not folder:
        pytest.skip("reads public data: set H2HTALK_DATA to its folder")
    return Path(folder)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):  # a known failure ran
        skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if skipped and os.environ.get("H2HTALK_NO_SKIP") == "1" and exitstatus == 0:
        print(
            f"\nH2HTALK_NO_SKIP is set, and {len(skipped)} tests were skipped: {', '.join(skipped)}"
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _no_keys_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process masks the keys that it has read until it ends: one test's key may be an id of another."""
    monkeypatch.setattr(masking, "_held", dict(masking._held))
