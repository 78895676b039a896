"""Small data for figures, and how a test reads a figure."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.text import Text

from h2htalk.analysis.measures.diversity import Coverage
from h2htalk.analysis.measures.lengths import Lengths, LengthSummary, measure_lengths
from h2htalk.analysis.measures.log_odds import LogOdds, log_odds
from h2htalk.analysis.measures.scenario_texts import Side, SideText
from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbGroup, top_verbs
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS

HOSTILE = ("$x^2$", "$", "a_b^c", "🎉", "𓀀", "\u202eevil", "\x1b[31m", "<script>", "\ud800", "many words\nin lines", "")


def shown_texts(figure: Figure) -> list[Text]:
    """Every piece of text that the figure shows; matplotlib holds more than it draws."""
    found = list(figure.texts)
    for axes in figure.axes:
        found += axes.texts
        if not axes.axison:
            continue
        legend = axes.get_legend()
        found += legend.get_texts() if legend else []
        found += [child for child in axes.get_children() if isinstance(child, Text)]  # titles
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [axis.label]
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    unique = {id(text): text for text in found if text.get_visible() and text.get_text().strip()}
    return list(unique.values())


def words_of(figure: Figure) -> list[str]:
    return [text.get_text() for text in shown_texts(figure)]


def made_groups(language: str = "en", verbs: int = 12) -> list[VerbGroup]:
    verb, noun = ("make", "tea") if language == "en" else ("泡", "茶")
    counts = {(v, n): 60 // (1 + v) + 4 - n for v in range(verbs) for n in range(3)}
    return top_verbs(PairCount(f"{verb}{v}", f"{noun}{n}", count) for (v, n), count in counts.items())


def made_lengths(language: str = "en", count: int = 60) -> Lengths:
    word = "tea " if language == "en" else "我们喝茶。"
    sides: tuple[Side, ...] = ("instruction", "response")
    subtasks = ("dialogue_base", "itinerary_basic")
    texts = [
        SideText(f"s{i}", subtasks[i % 2], language, "joy", side, word * (1 + i * (2 - place)))  # type: ignore[arg-type]
        for i in range(count)
        for place, side in enumerate(sides)
    ]
    return measure_lengths(texts)


def made_summary(n: int, mean: float, median: float) -> LengthSummary:
    return LengthSummary("response", "all", "all", "pieces", n, mean, median, (1.0,) * 9, 1, 50)


def made_coverage(emotions: int, count: int = 1, name: str = "emotion") -> Coverage:
    names = tuple(f"{name}_{chr(97 + i % 26)}{'x' * (i // 26)}" for i in range(emotions))
    cells = {
        (name, complexity, interaction): count * row * (place % 3)
        for row, name in enumerate(names)
        for complexity in COMPLEXITIES
        for place, interaction in enumerate(INTERACTIONS)
    }
    return Coverage(dict.fromkeys(names, 1), cells)


def made_odds(items: int = 40) -> tuple[LogOdds, ...]:
    return log_odds({f"w{i}": 100 + 9 * i for i in range(items)}, {f"w{i}": max(1, 300 - 5 * i) for i in range(items)})
