"""Save a figure as SVG for the page, PDF for print, PNG for slides. Equal figures give equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import figure_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
PNG_DPI = 200  # pixels an inch; SVG and PDF are for print
_MAKER = "h2htalk"
# No date, no version: files drawn from the same data are equal.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Date": None, "Creator": _MAKER},
    "pdf": {"CreationDate": None, "Creator": _MAKER, "Producer": None},
    "png": {"Software": None},
}


@figure_style()
def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.svg, .pdf and .png into a folder, which is created if missing; return their paths.

    Text is outlines in the SVG (no font is needed to show it) and TrueType in the PDF. Ids inside the SVG depend
    on the name, so that two figures on one page cannot share a clip path.

    Raises:
        OSError: the folder cannot be written.
    """
    import matplotlib as mpl

    folder.mkdir(parents=True, exist_ok=True)
    if engine := figure.get_layout_engine():  # once for all formats: it costs more than the drawing
        engine.execute(figure)
        figure.set_layout_engine("none")
    paths = []
    for kind in FORMATS:
        path = folder / f"{name}.{kind}"
        with mpl.rc_context({"svg.hashsalt": f"{_MAKER} {name}"}):
            figure.savefig(path, format=kind, dpi=PNG_DPI, metadata=_METADATA[kind])
        paths.append(path)
    return paths
