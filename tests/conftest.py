"""What all tests share. That this file lies here also puts tests/ on the import path: `from loopback import ...`.

`H2HTALK_NO_SKIP=1` makes a skipped test a failure: for machines that have all that the tests need.
"""

from __future__ import annotations

import functools
import os
import signal
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from possessive_patterns import refuse_possessive

# Before a module of the package compiles its patterns.
refuse_possessive()

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


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor fill the user's cache; one folder serves the whole run, all its processes included."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "cache").mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("H2HTALK_CACHE", str(folder / "cache"))
        # Each client of an SDK reads a file of 140 certificates, 30 ms.
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


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
        print(f"\nH2HTALK_NO_SKIP is set, and {len(skipped)} tests were skipped: {', '.join(skipped)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
