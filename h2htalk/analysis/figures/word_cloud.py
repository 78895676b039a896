"""Draw Fig. 4 of the paper: a word cloud, by the `wordcloud` package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import (
    PALETTE,
    PAPER,
    POINTS,
    WIDTH,
    draw_sentence,
    figure_style,
    find_font,
    new_panels,
    notes,
)
from h2htalk.data.languages import Language, find_language
from h2htalk.errors import MissingExtraError, counted
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.words import WordCount

WORDS = 150
PIXELS = (1600, 900)  # 230 an inch
LARGEST, LARGEST_UNSPACED = 120, 170  # pixels a word is high: 150 words fill the picture
SMALLEST = 22  # 7 points
MARGIN = 14  # pixels between words: two that touch look like one


@figure_style()
def draw_word_cloud(counts: Sequence[WordCount], language: Language, *, seed: int = 0) -> Figure:
    """Draw the 150 most frequent words, larger if more frequent, one colour for each fifth of them.

    Args:
        counts: as `count_words` gives them.

    Words that the font lacks or that do not fit are counted below. Equal counts and seed give an equal figure.

    Raises:
        MissingExtraError: `wordcloud` or matplotlib is not installed.
    """
    font = find_font(language)
    taken = counts[:WORDS]
    drawn = [count for count in taken if font.covers.issuperset(map(ord, count.word))]
    lacking = [f"{counted(len(taken) - len(drawn), 'word')} without glyphs"] if len(drawn) < len(taken) else []
    if not drawn:
        return draw_sentence(f"no words ({lacking[0]})" if lacking else "no words")
    largest = LARGEST if find_language(language).spaced else LARGEST_UNSPACED
    for share in (1.0, 0.7, 0.5):  # until all words fit
        cloud = _cloud(drawn, language, str(font.path), seed, round(share * largest))
        if (placed := len(cloud.layout_)) == len(drawn):
            break
    crowded = [f"{counted(len(drawn) - placed, 'word')} that do not fit"] if placed < len(drawn) else []
    figure, (axes,) = new_panels(WIDTH * POINTS * PIXELS[1] / PIXELS[0])
    axes.imshow(cloud.to_array(), interpolation="none")
    axes.set_axis_off()
    notes(figure, [f"Not drawn: {', '.join([*lacking, *crowded])}; see the table."] if lacking or crowded else [])
    return figure


def _cloud(counts: Sequence[WordCount], language: Language, font: str, seed: int, largest: int) -> Any:
    try:
        from wordcloud import WordCloud
    except ImportError:
        raise MissingExtraError("a word cloud", INSTALL) from None
    colours = {count.word: PALETTE[rank * 5 // len(counts)] for rank, count in enumerate(counts)}
    return WordCloud(
        font_path=font,
        width=PIXELS[0],
        height=PIXELS[1],
        margin=MARGIN,
        max_words=len(counts),
        max_font_size=largest,
        min_font_size=SMALLEST,
        relative_scaling=0.5,
        prefer_horizontal=0.9 if find_language(language).spaced else 1.0,  # turned Chinese is hard to read
        random_state=seed,
        background_color=PAPER,
        color_func=lambda word, **_: colours[word],
    ).generate_from_frequencies({count.word: count.count for count in counts})
