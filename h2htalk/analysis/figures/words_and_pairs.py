"""Draw Fig. 4 and 5 of the paper: a word cloud, by `wordcloud`, and rings of verbs and the nouns they act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.analysis.figures.style import (
    BODY,
    INK,
    PALETTE,
    PAPER,
    POINTS,
    QUIET,
    TINY,
    WIDTH,
    draw_sentence,
    figure_style,
    find_font,
    label,
    new_panels,
    notes,
    replaced_note,
    shortened,
    tint,
    write,
)
from h2htalk.data.languages import Language, find_language
from h2htalk.errors import MissingExtraError, counted
from h2htalk.text.parsing.parsing import INSTALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from h2htalk.analysis.measures.words import WordCount
    from h2htalk.analysis.verb_nouns.pairs import VerbGroup

WORDS = 150
PIXELS = (1600, 900)  # 230 an inch
LARGEST_SPACED, LARGEST_UNSPACED = 120, 170  # pixels a word is high: 150 words fill the picture
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
    largest = LARGEST_SPACED if find_language(language).spaced else LARGEST_UNSPACED
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


# --- Verbs and nouns --------------------------------------------------------------------------------------------------

VERBS = 20  # of the inner ring, as Self-Instruct draws it (Wang et al. 2023, Fig. 3)
RIM, MIDDLE, HOLE = 237.0, 123.0, 41.0  # points: of the rim, between the rings, of the hole
PAD = 3.0  # points between a label and its ring
LARGEST_LABEL = 9.0  # points a label is high
LINE_HEIGHT = 1.15  # of a label's size


@figure_style()
def draw_sunburst(groups: Sequence[VerbGroup]) -> Figure:
    """Draw verbs and their nouns as two rings, angles proportional to counts.

    Args:
        groups: as `top_verbs` gives them. The first 20 verbs are drawn; the others are counted below.

    A wedge too narrow for its label has none; such wedges are counted below, too.
    """
    if not groups:
        return draw_sentence("no verb-noun pairs found")
    drawn, left = groups[:VERBS], groups[VERBS:]
    nouns = [noun for group in drawn for noun in group.nouns]
    colours = [PALETTE[index % len(PALETTE)] for index in range(len(drawn))]
    if len(drawn) > 1 and colours[-1] == colours[0]:  # they are neighbours
        colours[-1] = PALETTE[2]
    shades = [tint(colour, 0.24) for colour, group in zip(colours, drawn, strict=True) for _ in group.nouns]
    figure, (axes,) = new_panels(WIDTH * POINTS)
    axes.set(xlim=(-RIM, RIM), ylim=(-RIM, RIM))
    axes.set_axis_off()
    names = _ring(axes, [group.count for group in drawn], [group.verb for group in drawn], colours, HOLE, MIDDLE)
    names += _ring(axes, [noun.count for noun in nouns], [noun.noun for noun in nouns], shades, MIDDLE, RIM)
    total, unit = counted(sum(group.count for group in drawn), "occurrence").split()
    write(axes, 0, 4.5, total, BODY + 1, ha="center", va="center_baseline")
    write(axes, 0, -5, unit, 6, ha="center", va="center_baseline", color=QUIET)
    note_lines = replaced_note(names)
    if narrow := len(drawn) + len(nouns) - len(names):
        note_lines.append(f"Too narrow for a label: {counted(narrow, 'wedge')}; see the table.")
    if left:
        pairs = sum(len(group.nouns) for group in left)
        note_lines.append(f"Not drawn: {counted(len(left), 'verb')} with {counted(pairs, 'pair')}; see the table.")
    notes(figure, note_lines)
    return figure


def _ring(
    axes: Axes, counts: Sequence[int], names: Sequence[str], colours: Sequence[Any], inner: float, outer: float
) -> list[str]:
    """Draw a ring clockwise from twelve o'clock, with labels along rays; return the labels that fit."""
    middle, width = (inner + outer) / 2, outer - inner - 2 * PAD
    wedges, texts = axes.pie(
        counts,
        radius=outer,
        colors=colours,
        startangle=90,
        counterclock=False,
        wedgeprops={"width": outer - inner, "edgecolor": PAPER, "linewidth": 0.6},
        labels=[label(name) for name in names],
        labeldistance=middle / outer,
        rotatelabels=True,
        textprops={"rotation_mode": "anchor", "va": "center_baseline", "parse_math": False},
        frame=True,  # else pie() changes the limits of the axes
    )
    for wedge, text in zip(wedges, texts, strict=True):
        size = min(LARGEST_LABEL, middle * math.radians(wedge.theta2 - wedge.theta1) / LINE_HEIGHT)
        text.set(text=shortened(text.get_text(), width, size), size=size, visible=size >= TINY, ha="center")
        text.set_color(PAPER if outer < RIM else INK)
    return [text.get_text() for text in texts if text.get_visible()]
