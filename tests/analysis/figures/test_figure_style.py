"""Sizes, colours and independence from the reader's own settings."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from figures_made import made_groups, made_lengths, words_of

from h2htalk.analysis import figures
from h2htalk.analysis.figures.style import (
    INK,
    PALETTE,
    QUIET,
    draw_sentence,
    plural,
    thousands,
    tint,
)
from h2htalk.errors import MissingExtraError

# Machado, Oliveira and Fernandes (2009), severity 1.0, on linear RGB.
VISIONS = {
    "all cones": np.eye(3),
    "no long": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no middle": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no short": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def linear(colour: object) -> np.ndarray:
    rgb = np.array(mpl.colors.to_rgb(colour))  # type: ignore[arg-type]
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: object) -> float:
    return float(linear(colour) @ np.array([0.2126, 0.7152, 0.0722]))


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colour", [*PALETTE, INK, QUIET])
def test_words_in_a_colour_can_be_read_on_white_also_in_grey(colour: str) -> None:
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


@pytest.mark.parametrize("colour", PALETTE)
def test_dark_words_can_be_read_on_the_tint_of_a_noun(colour: str) -> None:
    assert (luminance(tint(colour, 0.24)) + 0.05) / (luminance(INK) + 0.05) >= 7


@pytest.mark.parametrize("vision", VISIONS)
def test_the_colours_differ_for_every_kind_of_colour_vision(vision: str) -> None:
    seen = [lab(VISIONS[vision] @ linear(colour)) for colour in PALETTE]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) > 12


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


def test_widths_are_those_of_a_printed_page() -> None:
    lengths = made_lengths()
    assert figures.draw_lengths(lengths.histograms, lengths.summaries).get_figwidth() == 3.35
    assert figures.draw_sunburst(made_groups()).get_figwidth() == 6.9


def test_a_sentence_is_all_that_an_empty_figure_shows() -> None:
    assert words_of(draw_sentence("no words")) == ["no words"]


@pytest.mark.parametrize(
    ("value", "shown"), [(7.47, "7.47"), (2.0, "2"), (38.21, "38.2"), (1204.4, "1,204"), (0.0, "0")]
)
def test_numbers_are_as_exact_as_they_are_small(value: float, shown: str) -> None:
    assert thousands(value) == shown


def test_one_is_no_plural() -> None:
    assert [plural(n, "verb") for n in (0, 1, 1200)] == ["0 verbs", "1 verb", "1,200 verbs"]
