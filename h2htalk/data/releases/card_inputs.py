"""What the card of a release shows of finished folders: the results of runs, the figures of an analysis."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object, refuse_links
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.run_folder import MADE_BY, PAGE, SCORE_AGAIN, SUMMARY, RunFolder
from h2htalk.data.subtasks import DIMENSIONS
from h2htalk.errors import ConfigError, DataError

OVERALL, ITEMS_MEAN = "overall", "items_mean"
# The figures of an analysis that a card shows: the paper's (Fig. 4 to 6), and how the tags are covered.
_SHOWN = "lengths_{0} words_{0}_instruction words_{0}_response pairs_{0}_instruction pairs_{0}_response coverage_{0}"


@dataclass(frozen=True, slots=True)
class Result:
    """The row of a model or of a trivial answer: `overall`, `items_mean`, dimensions, with intervals, from 0 to 100."""

    name: str
    split: str
    measure: str
    cells: Mapping[str, tuple[float | None, float | None, float | None]]
    scored: int
    total: int


def read_results(folder: Path) -> list[Result]:
    """Read the row of a finished run's model, then those of the trivial answers.

    Raises ConfigError where the run is incomplete or was not scored, DataError for another folder or version.
    """
    run = RunFolder(folder)
    run.read_run()
    try:
        summary = run.read_summary()
        results = [*_results(summary)]
    except FileNotFoundError:
        raise ConfigError(f"{folder}: the run was not scored yet; run `h2htalk score {folder}`") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{run.summary}: not a summary of this version: {error!r}; {SCORE_AGAIN}") from error
    if summary["incomplete"]:
        raise ConfigError(f"{folder}: the run is incomplete; complete it, or leave it out of the card")
    return results


def _results(summary: Mapping[str, Any]) -> Iterator[Result]:
    measure, of = summary["measure"], "" if summary["judged"] else ", unjudged"
    shown = "lexical mean" if measure == "lexical" else "S" if summary["s_comparable"] else "S of another embedder"
    shown += f"{of} ({', '.join(summary['s_languages'] or summary['languages'])})"
    # A card tells no address of a server and no folder.
    model = re.sub(r"@https?://.*|(?<=:)[~./].*/", "", summary["model"])
    for name, rows in {model: summary["rows"], **summary["baselines"]}.items():
        row, mean = rows[measure], rows[measure][ITEMS_MEAN]
        cells = {OVERALL: row[OVERALL], ITEMS_MEAN: mean} | {
            d: row[key] for d in DIMENSIONS if (key := f"{d}_avg") in row
        }
        values = {key: (cell["value"], cell["low"], cell["high"]) for key, cell in cells.items()}
        yield Result(name, summary["split"], shown, values, mean["n"], mean["total"])


def read_figures(folder: Path, fingerprint: str) -> dict[Path, tuple[Language, str]]:
    """Find the PNG figures of an analysis that a card shows, with language and caption.

    Raises ConfigError unless it analysed the split of this fingerprint alone, DataError where something is a link.
    """
    refuse_links(folder)
    summary = read_json_object(folder / SUMMARY, missing_ok=True)
    if summary.get("made_by") != MADE_BY:
        raise ConfigError(f"{folder}: not the folder of an analysis; `h2htalk analyze` makes one")
    if summary.get("splits") != [fingerprint]:
        raise ConfigError(
            f"{folder}: its figures are not those of the public rows of the split test ({fingerprint}) alone; build "
            "without `analysis`, run `h2htalk analyze RELEASE --out FOLDER`, and build again with that folder"
        )
    page = (folder / PAGE).read_text(encoding="utf-8")
    captions = dict(re.findall(r'<figure id="figure-(\w+)".*?<img [^>]*?\balt="([^"]*)"', page, re.DOTALL))
    wanted = {name: language for language in LANGUAGES for name in _SHOWN.format(language).split()}
    return {
        folder / "figures" / f"{name}.png": (language, html.unescape(captions[name]))
        for name, language in wanted.items()
        if name in captions
    }
