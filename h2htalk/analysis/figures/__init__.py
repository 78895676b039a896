"""Draw the figures of an analysis: each `draw_*` takes plain data and returns a matplotlib Figure.

Nothing here counts, and nothing uses pyplot or a user's `matplotlibrc`. Figures are as wide as
a printed page (6.9 inches), text is 5 to 9 points.
"""

from h2htalk.analysis.figures.heat_maps import draw_correlations as draw_correlations
from h2htalk.analysis.figures.heat_maps import draw_coverage as draw_coverage
from h2htalk.analysis.figures.lengths import draw_length_deciles as draw_length_deciles
from h2htalk.analysis.figures.lengths import draw_lengths as draw_lengths
from h2htalk.analysis.figures.log_odds import draw_log_odds as draw_log_odds
from h2htalk.analysis.figures.style import draw_sentence as draw_sentence
from h2htalk.analysis.figures.style import save_figure as save_figure
from h2htalk.analysis.figures.words_and_pairs import draw_sunburst as draw_sunburst
from h2htalk.analysis.figures.words_and_pairs import draw_word_cloud as draw_word_cloud
