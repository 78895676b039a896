"""Lengths as section 3.3 and Fig. 6 report them, and why the paper's figures say little about Chinese text."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.lengths import MEASURES, Histogram, LengthSummary, measure_lengths, text_lengths
from h2htalk.analysis.texts import Side, SideText, instruction_text, side_texts
from h2htalk.data.dialogue import Language, Turn
from h2htalk.data.scenario import Plan, Scenario
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError


def side_text(
    text: str,
    side: Side = "instruction",
    language: Language = "en",
    subtask: str = "dialogue_base",
    emotion: str = "joy",
) -> SideText:
    return SideText("an-id", subtask, language, emotion, side, text)


def responses(texts: Sequence[str], language: Language = "en") -> list[SideText]:
    return [side_text(text, "response", language) for text in texts]


def summary_of(
    found: Sequence[LengthSummary], measure: str, group: str = "all", name: str = "all"
) -> LengthSummary:
    (summary,) = (s for s in found if (s.measure, s.group, s.name) == (measure, group, name))
    return summary


def histogram_of(found: Sequence[Histogram], measure: str, side: Side = "response") -> Histogram:
    (histogram,) = (h for h in found if (h.measure, h.side) == (measure, side))
    return histogram


def letters(texts: Sequence[str]) -> list[int]:
    """A counter of tokens for tests: letters."""
    return [sum(map(str.isalpha, text)) for text in texts]


# --- What is counted --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language", "characters", "words", "pieces"),
    [
        ("", "en", 0, 0, 0),
        (" \n\t", "en", 0, 0, 0),
        ("Rain on the roof.", "en", 17, 4, 4),
        ("  Rain,\n\non the roof!  ", "en", 19, 4, 4),
        ("Don't - just don't!", "en", 19, 3, 4),
        ("It costs $5 at 20:00", "en", 20, 6, 5),  # 13a splits a time
        ("今天我们一起去公园散步。", "zh", 12, 6, 1),
        ("今天，我们一起去公园散步！", "zh", 13, 6, 1),
        ("08:00 吃早餐\n21:30 睡觉", "zh", 18, 7, 4),
        ("好的 ok", "zh", 5, 3, 2),
        ("😀🏳️‍🌈 !!", "en", 8, 0, 2),
        ("……！？", "zh", 4, 0, 1),
    ],
)
def test_each_measure_counts_its_unit(
    text: str, language: str, characters: int, words: int, pieces: int
) -> None:
    assert text_lengths([text], language, None) == {
        "characters": [characters],
        "words": [words],
        "pieces": [pieces],
    }


def test_tokens_are_counted_only_where_a_tokenizer_is_given() -> None:
    assert text_lengths(["ab c", ""], "en", letters)["tokens"] == [3, 0]
    assert tuple(text_lengths([], "en", letters)) == MEASURES
    assert "tokens" not in text_lengths(["ab c"], "en", None)


def test_a_language_is_never_guessed() -> None:
    with pytest.raises(ConfigError, match="no language 'fr'"):
        text_lengths(["bonjour"], "fr", None)


def test_words_are_counted_by_each_texts_own_language() -> None:
    together = measure_lengths([*responses(["我们一起去"], "zh"), *responses(["we go together"])])
    by_language = {
        s.name: s.mean for s in together.summaries if (s.group, s.measure) == ("language", "words")
    }
    assert by_language == {"en": 3.0, "zh": 3.0}


@given(st.text(max_size=200), st.sampled_from(["en", "zh"]))
def test_no_text_breaks_a_measure(text: str, language: Language) -> None:
    lengths = text_lengths([text], language, None)
    assert lengths["pieces"][0] <= lengths["characters"][0] <= len(text)
    assert 0 <= lengths["words"][0] <= lengths["characters"][0]


# --- What is reported -------------------------------------------------------------------------------------------


def test_a_summary_is_numpys_arithmetic() -> None:
    texts = ["word " * n for n in (1, 1, 2, 3, 5, 8, 13, 40)]
    summary = summary_of(measure_lengths(responses(texts)).summaries, "pieces")
    lengths = [1, 1, 2, 3, 5, 8, 13, 40]
    assert summary.n == 8
    assert summary.mean == statistics.mean(lengths)
    assert summary.median == 4.0
    assert summary.deciles == pytest.approx([np.percentile(lengths, 10 * d) for d in range(1, 10)])
    assert (summary.minimum, summary.maximum) == (1, 40)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60))
def test_deciles_rise_and_the_fifth_is_the_median(lengths: list[int]) -> None:
    summary = summary_of(measure_lengths(responses(["w " * n for n in lengths])).summaries, "pieces")
    assert list(summary.deciles) == sorted(summary.deciles)
    assert summary.deciles[4] == pytest.approx(summary.median)
    assert summary.minimum <= summary.deciles[0]
    assert summary.deciles[-1] <= summary.maximum


def test_every_group_is_summarised_on_each_side() -> None:
    texts = [
        side_text("one two", subtask="itinerary_basic", emotion="calm"),
        side_text("one", subtask="dialogue_base", emotion="awe"),
        side_text("一起", language="zh", subtask="dialogue_base", emotion="calm"),
        side_text("three little words", "response", subtask="dialogue_base", emotion="awe"),
    ]
    found = measure_lengths(texts, letters)
    groups = [(s.side, s.group, s.name, s.n) for s in found.summaries if s.measure == "pieces"]
    assert groups == [
        ("instruction", "all", "all", 3),
        ("instruction", "subtask", "dialogue_base", 2),  # Table 1's order
        ("instruction", "subtask", "itinerary_basic", 1),
        ("instruction", "language", "en", 2),
        ("instruction", "language", "zh", 1),
        ("instruction", "emotion", "awe", 1),
        ("instruction", "emotion", "calm", 2),
        ("response", "all", "all", 1),
        ("response", "subtask", "dialogue_base", 1),
        ("response", "language", "en", 1),
        ("response", "emotion", "awe", 1),
    ]
    assert [s.measure for s in found.summaries[:4]] == list(MEASURES)
    assert [(h.side, h.measure) for h in found.histograms] == [
        (side, measure) for side in ("instruction", "response") for measure in MEASURES
    ]


def test_the_order_of_texts_changes_nothing() -> None:
    texts = side_texts(load_split("mini").scenarios)
    shuffled = random.Random(1).sample(texts, len(texts))
    assert measure_lengths(shuffled) == measure_lengths(texts)


def test_who_counted_tokens_is_named() -> None:
    class Named:
        name = "a tokenizer"

        def __call__(self, texts: Sequence[str]) -> list[int]:
            return letters(texts)

    assert measure_lengths([], Named()).tokenizer == "a tokenizer"
    assert measure_lengths([], letters).tokenizer == "unnamed"
    assert measure_lengths([]).tokenizer is None


# --- Fig. 6 -----------------------------------------------------------------------------------------------------


def test_pieces_have_a_bin_each_up_to_fifty_and_longer_texts_are_counted_beyond() -> None:
    texts = ["w " * n for n in (0, 1, 1, 50, 51, 400, *[2] * 20)]
    histogram = histogram_of(measure_lengths(responses(texts)).histograms, "pieces")
    assert histogram.edges == tuple(map(float, range(52)))
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[50]) == (1, 2, 1)
    assert sum(histogram.counts) == 24
    assert histogram.beyond == 2


def test_english_pieces_are_not_left_beyond_the_papers_fifty() -> None:
    texts = ["w " * n for n in (40, 45, 60, 80)]
    histogram = histogram_of(measure_lengths(responses(texts)).histograms, "pieces")
    assert histogram.beyond == 0
    assert histogram.edges[-2] <= 80 < histogram.edges[-1]


@pytest.mark.parametrize(
    ("longest", "width"),
    [(0, 1), (59, 1), (60, 2), (119, 2), (120, 5), (300, 10), (2_999, 50), (100_000, 2_000)],
)
def test_other_measures_have_round_bins(longest: int, width: int) -> None:
    histogram = histogram_of(measure_lengths(responses(["x" * longest])).histograms, "characters")
    assert histogram.edges[1] == width
    assert len(histogram.counts) <= 60
    assert histogram.edges[-2] <= longest < histogram.edges[-1]


def test_one_text_in_a_hundred_may_lie_beyond() -> None:
    texts = ["x" * 30] * 99 + ["x" * 100_000]
    histogram = histogram_of(measure_lengths(responses(texts)).histograms, "characters")
    assert histogram.edges[-1] == 31
    assert histogram.beyond == 1


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=300))
def test_every_text_is_in_one_bin_or_beyond(lengths: list[int]) -> None:
    def given_lengths(texts: Sequence[str]) -> list[int]:
        return lengths

    histogram = histogram_of(
        measure_lengths(responses([""] * len(lengths)), given_lengths).histograms, "tokens"
    )
    assert (
        list(histogram.counts)
        == np.histogram([n for n in lengths if n < histogram.edges[-1]], histogram.edges)[0].tolist()
    )
    assert histogram.beyond == sum(n >= histogram.edges[-1] for n in lengths)
    assert histogram.beyond <= 0.01 * len(lengths)


# --- The paper's figures ----------------------------------------------------------------------------------------

# Written for this test, in the form of the paper's data: short Chinese turns, hardly a space in them; some memories
# and plans with a line each, which make the mean what it is.
TURNS = """今天下班路上看到一只小橘猫，好想把它抱回家。
我有点累了，想听你说说话 (叹气)
外面下雨了，你陪我一起听雨好不好？
明天要面试，我紧张得睡不着。
奶奶打电话来，说院子里的桂花开了 好香啊
刚跑完步，感觉整个人都轻松了！
你还记得我说过的那家面馆吗？ 今天关门了。
今天被领导表扬了，想第一个告诉你。
晚饭做了番茄炒蛋 盐放多了
有时候会想，要是时间能慢一点就好了。
室友搬走了，屋子一下子好安静。
我妈又催我相亲了…… 唉""".splitlines()
PLANS = """07:00 起床喝水 08:00 吃早餐 09:30 去图书馆还书 12:00 和朋友吃午饭 15:00 散步 18:30 做晚饭 20:00 打电话
06:30 晨跑 07:30 洗澡吃早餐 09:00 上班 12:30 午休 18:00 下班买菜 19:00 练琴 21:00 看书 22:30 睡觉 23:00 关灯
08:00 浇花 10:00 去医院看外婆 14:00 午睡 16:00 写日记 19:00 看电影 22:00 泡脚 23:00 睡觉""".splitlines()
ANSWERS = """我在呢，慢慢说，我都听着。
那只小橘猫一定也记住你了，下次我们一起去看它吧。
(轻轻抱住你) 辛苦了，今天先好好休息。
真为你高兴！这份努力值得被看见。
雨声很温柔，像在替你说晚安。
桂花的香味，好像隔着电话也能闻到呢。
别怕，你准备得那么认真，结果不会差的。
08:00 吃早餐 12:00 散步 18:00 做晚饭 21:00 看书 22:30 睡觉
安静的时候，就当我坐在你旁边。""".splitlines()


def test_pieces_of_chinese_look_like_the_papers_lengths_and_say_little() -> None:
    inputs = [*TURNS, *PLANS, TURNS[1] + "\n" + TURNS[8], *("\n".join(TURNS[n : n + 3]) for n in (2, 4))]
    texts = [side_text(text, language="zh") for text in inputs] + responses(ANSWERS, "zh")
    found = measure_lengths(texts).summaries
    asked = [s for s in found if s.side == "instruction"]
    answered = [s for s in found if s.side == "response"]
    # Paper, Fig. 6: inputs mean 7.47, median 2.00; outputs mean 3.02, median 1.00.
    pieces = summary_of(asked, "pieces")
    assert pieces.median == 2.0
    assert pieces.mean > 2 * pieces.median
    answer_pieces = summary_of(answered, "pieces")
    assert answer_pieces.median == 1.0
    assert answer_pieces.mean > 1.5 * answer_pieces.median
    # The same texts, counted so that a Chinese sentence has a length.
    for side, medians in ((asked, pieces.median), (answered, answer_pieces.median)):
        assert summary_of(side, "words").median >= 4 * medians
        assert summary_of(side, "characters").median >= 8 * medians


def test_an_instruction_is_the_inputs_alone() -> None:
    raw = load_split("mini").scenarios
    turns = Turn("user", "今天 好累"), Turn("companion", "抱抱")
    plans = Plan("08:00", "吃早餐"), Plan("21:30", "睡觉")
    (model,) = (s for s in raw if s.id == "mini-en-dialogue-base-01")
    fields = {name: getattr(model, name) for name in Scenario.__dataclass_fields__}
    scenario = Scenario(**{**fields, "inputs": {"history": turns, "plans": plans}})
    assert instruction_text(scenario) == "今天 好累\n抱抱\n08:00 吃早餐\n21:30 睡觉"
    assert text_lengths([instruction_text(scenario)], "zh", None)["pieces"] == [7]


# --- Bad input --------------------------------------------------------------------------------------------------


def test_nothing_gives_nothing() -> None:
    nothing = measure_lengths([])
    assert (nothing.summaries, nothing.histograms) == ((), ())
    assert text_lengths([], "zh", None) == {"characters": [], "words": [], "pieces": []}


def test_one_text_is_its_own_median_and_deciles() -> None:
    summary = summary_of(measure_lengths(responses(["one two three"])).summaries, "words")
    assert (summary.n, summary.mean, summary.median, set(summary.deciles)) == (1, 3.0, 3.0, {3.0})


@pytest.mark.parametrize("text", ["a", "你", "😀", "a你 😀1", "\n"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_hundred_thousand_characters_are_measured_in_seconds(text: str, language: Language) -> None:
    long = (text * 100_000)[:100_000]
    start = time.process_time()
    measure_lengths(responses([long], language))
    assert time.process_time() - start < 10
