"""Draw the figures of an analysis: each `draw_*` takes plain data and returns a matplotlib Figure.

Nothing here counts, and nothing uses pyplot or a user's `matplotlibrc`. Sizes are those of a printed page (3.35
and 6.9 inches), text is 5 to 9 points.
"""

from __future__ import annotations

from h2htalk.analysis.figures.coverage import draw_coverage
from h2htalk.analysis.figures.diversity import draw_diversity
from h2htalk.analysis.figures.lengths import draw_length_deciles, draw_lengths
from h2htalk.analysis.figures.log_odds import draw_emotions, draw_log_odds
from h2htalk.analysis.figures.saving import save_figure
from h2htalk.analysis.figures.style import draw_sentence
from h2htalk.analysis.figures.sunburst import draw_sunburst
from h2htalk.analysis.figures.verb_noun_bars import draw_pairs_bars
from h2htalk.analysis.figures.word_cloud import draw_word_cloud

__all__ = [
    "draw_coverage",
    "draw_diversity",
    "draw_emotions",
    "draw_length_deciles",
    "draw_lengths",
    "draw_log_odds",
    "draw_pairs_bars",
    "draw_sentence",
    "draw_sunburst",
    "draw_word_cloud",
    "save_figure",
]
