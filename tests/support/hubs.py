"""The Hub's clients against the double, in this process or in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import close_session, constants, logging

from support.doubles.hub_double import HubDouble
from support.kills import run_to_end

# The client's waits between its attempts, 23 s in all, are cut short.
PATIENT = """
import time
sleep = time.sleep
time.sleep = lambda seconds: sleep(min(seconds, 0.01))
"""
MAIN = "from h2htalk.cli import main\nmain()"


@contextmanager
def hub_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch, double: HubDouble | None = None
) -> Iterator[HubDouble]:
    """The double, for the client in this process; its cache lies in `folder`."""
    with double or HubDouble() as hub:
        places = {
            "HF_HOME": f"{folder}/home",
            "HF_HUB_CACHE": f"{folder}/home/hub",
            "ENDPOINT": hub.url,
        }
        places["HUGGINGFACE_CO_URL_TEMPLATE"] = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
        for name, value in {**places, "HF_HUB_DISABLE_TELEMETRY": True}.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setattr(
            "huggingface_hub.utils._http.time", SimpleNamespace(sleep=lambda seconds: None)
        )
        monkeypatch.setenv("HF_TOKEN", "hf_lab")
        monkeypatch.setenv("NO_PROXY", "*")
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        close_session()
        yield hub
        close_session()
        logging.set_verbosity(verbosity)


def client_environment(hub: HubDouble, folder: Path, **variables: str) -> dict[str, str]:
    here = {key: value for key, value in os.environ.items() if not key.startswith("HF_")} | {
        "NO_PROXY": "*"
    }
    here |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "home"), "HF_TOKEN": "hf_lab"}
    here |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_VERBOSITY": "error"}
    return here | variables


def python(
    code: str, *words: object, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PATIENT + code, *map(str, words)]
    return run_to_end(command, env=environment)


def h2htalk_there(*words: object, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return python(MAIN, *words, environment=environment)
