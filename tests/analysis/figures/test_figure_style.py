"""Sizes, colours and independence from the reader's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from figures_made import made_groups, made_lengths

from h2htalk.analysis import figures
from h2htalk.analysis.figures.style import thousands
from h2htalk.errors import MissingExtraError


def test_a_readers_matplotlibrc_changes_nothing(tmp_path: Path) -> None:
    own = {
        "font.size": 30,
        "text.usetex": True,
        "axes.facecolor": "red",
        "svg.fonttype": "none",
        "savefig.dpi": 9,
    }
    lengths = made_lengths()

    def files(folder: Path) -> list[bytes]:
        drawn = figures.draw_lengths(lengths.histograms, lengths.summaries)
        return [path.read_bytes() for path in figures.save_figure(drawn, folder, "lengths")]

    expected = files(tmp_path / "a")
    with mpl.rc_context(own):
        before = dict(mpl.rcParams)
        assert files(tmp_path / "b") == expected
        assert dict(mpl.rcParams) == before


def test_no_figure_stays_behind_in_pyplot_and_importing_the_package_loads_no_matplotlib() -> None:
    code = """
import sys
import h2htalk.analysis.figures as figures
assert not {m.partition(".")[0] for m in sys.modules} & {"matplotlib", "numpy"}
figures.draw_sentence("nothing")
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("asked", "got"), [("nonsense", ""), ("", ""), ("svg", "svg")])
def test_a_screen_that_matplotlib_does_not_know_keeps_no_figure_from_being_drawn(
    tmp_path: Path, asked: str, got: str
) -> None:
    code = """
import os, sys
from pathlib import Path
import h2htalk.analysis.figures as figures
assert len(figures.save_figure(figures.draw_sentence("drawn"), Path(sys.argv[1]), "figure")) == 3
import matplotlib
assert os.environ["MPLBACKEND"] == sys.argv[2]
assert sys.argv[3] in ("", matplotlib.rcParams["backend"]), matplotlib.rcParams["backend"]
"""
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path, asked, got],
        env={**os.environ, "MPLBACKEND": asked},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_size for path in tmp_path.iterdir())


def test_without_matplotlib_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[analysis\]"'):
        figures.draw_sunburst(made_groups())


@pytest.mark.parametrize(
    ("value", "shown"), [(7.47, "7.47"), (2.0, "2"), (38.21, "38.2"), (1204.4, "1,204"), (0.0, "0")]
)
def test_numbers_are_as_exact_as_they_are_small(value: float, shown: str) -> None:
    assert thousands(value) == shown
