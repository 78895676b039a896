"""Write a site: every page and data file into a folder that is replaced as a whole, or not at all.

index.html             the leaderboards, one for each protocol, and the paper's rows
models/KEY.html        a run: subtasks, the other runs, slices, contracts, judge, costs, signature
tables/, figures/      each board as CSV and LaTeX, each chart as SVG
studies/KEY.html       a study: its tables, charts and the replies to read first
items.html             the item browser; it loads data/items-*.js, a chunk for the items and one for each run
data.parquet           every score, a row for each run and item
site.json              what the site was made of, by which an erasure finds it; written last
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.site.context import Context, read_words
from h2htalk.site.sources import read_sources


def build_site(
    paths: Sequence[Path], out: Path, language: Language = "en", title: str = "H2HTalk", paper: bool = True
) -> list[str]:
    """Write the site of runs and studies into a folder; return what was written and what was left out.

    Raises:
        ConfigError: a folder is no scored run and no study, or something in it must not be published (`leaks`).
        DataError: a folder was edited, or `out` holds something else.
    """
    context = Context(read_sources(paths), read_words(language), language, title)
    raise NotImplementedError(context)
