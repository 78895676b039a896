"""The files that a call passes through: `tools/trace_files.py`."""

from __future__ import annotations

import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import trace_files
from trace_files import Tracer, Window

FILES = {
    "made_entry.py": """
import threading
from made_inner import inner

def call():
    before()
    worker = threading.Thread(target=outer)
    worker.start()
    worker.join()
    store()
    after()

def before(): pass
def outer(): inner()
def store(): import made_late
def after():
    import made_after
    made_after.never()
""",
    "made_inner.py": "def inner(): [one for one in ()]",
    "made_late.py": "import made_table\nmade_table.fill()",
    "made_table.py": "def fill(): pass",
    "made_after.py": "def never(): pass",
}


def test_files_of_other_threads_count_and_those_of_an_import_or_after_the_end_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    window, profiler = Window("made", {"call"}, {"store"}), sys.getprofile()
    tracer = Tracer(tmp_path, [window])
    call = import_module(next(iter(FILES)).removesuffix(".py")).call
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        call()
    finally:
        sys.setprofile(profiler)
        threading.setprofile(profiler)
    assert tracer.files(window) == ["made_entry.py", "made_inner.py"]
    with pytest.raises(SystemExit, match="did not run"):
        tracer.files(Window("renamed", {"call"}, {"stored"}))


@pytest.mark.slow
def test_every_window_is_found_in_the_package() -> None:
    done = subprocess.run([sys.executable, trace_files.__file__], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    counts = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert len(counts) == 6
    assert min(counts) > 2
