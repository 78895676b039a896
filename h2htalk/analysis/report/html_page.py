"""An analysis as one HTML file that needs no network, no server and no script: every figure with its table.

Nothing in it can act, as in every page of `h2htalk.text.html_pages`; the pictures are SVG in image elements, where
neither scripts nor links work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from h2htalk.analysis.analyze import Analysis
from h2htalk.analysis.report.figure_specs import Exhibit
from h2htalk.analysis.report.html_view import page_view
from h2htalk.text.html_pages import render_page

_PAGE = files("h2htalk.analysis.report") / "page"


def page_text(
    analysis: Analysis, shown: Sequence[Exhibit], pictures: Mapping[str, str], made: Mapping[str, str]
) -> str:
    """The page.

    Args:
        shown: what it shows, in its order.
        pictures: each exhibit's SVG, by its name.
        made: with what the analysis was made, texts by name.
    """
    return render_page(_PAGE, page_view(analysis, shown, pictures, made), pictures=True)
