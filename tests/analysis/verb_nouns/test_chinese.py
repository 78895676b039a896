"""What counts as a verb and its object in Chinese, and how the rules hold up on sentences written for them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest.importorskip("spacy", reason="needs the analysis extra")

from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc
from spacy.vocab import Vocab

from h2htalk.analysis.verb_nouns.chinese import bare_verb, chinese_pairs
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair

TAGS = dict(
    zip(
        "NVRADPMUX",
        ["NOUN", "VERB", "PRON", "ADJ", "ADV", "ADP", "NUM", "PART", "AUX"],
        strict=True,
    )
)


def doc(tagged: str) -> Doc:
    """`我/R 喝/V 茶/N 。` as a document without a tree."""
    words = [part.partition("/") for part in tagged.split()]
    return Doc(
        Vocab(),
        words=[word for word, _, _ in words],
        spaces=[False for _ in words],
        pos=[TAGS.get(tag, "PUNCT") for _, _, tag in words],
    )


def found(tagged: str) -> list[tuple[str, str]]:
    return [(pair.verb, pair.noun) for pair in chinese_pairs(doc(tagged))]


# `words/tags = verb noun, verb noun`
SENTENCES = """
A verb takes the last noun of what follows:
我/R 喝/V 了/X 一/M 杯/N 热/A 咖啡/N 。 = 喝 咖啡
我/R 去/V 超市/N 买/V 牛奶/N 和/P 面包/N 。 = 买 牛奶, 买 面包
她/R 洗/V 碗/N ， 扫地/V ， 晒/V 被子/N = 洗 碗, 扫 地, 晒 被子
奶奶/N 想/V 买/V 一/M 台/N 收音/N 机/N = 买 收音机
我/R 接受/V 和/P 整合/V 不同/A 的/U 性格/N = 接受 性格, 整合 性格

把 and 将 put the object first, the subject of 被 is none, and pairs are in the order of their nouns:
他/R 把/P 杯子/N 洗/V 干净/A 了/X = 洗 杯子
他/R 将/P 杯子/N 洗/V 干净/A 了/X = 洗 杯子
她/R 把/P 书/N 放/V 在/P 桌上/N = 放 书
把/P 门/N 关/V 上/V ， 喝/V 茶/N = 关 门, 喝 茶
蛋糕/N 被/P 弟弟/N 吃/V 了/X =

Of person and thing the thing counts:
给/P 我/R 一/M 个/N 拥抱/N = 给 拥抱
给/P 妈妈/N 打/V 电话/N = 打 电话
他/R 送/V 给/P 她/R 一/M 束/N 花/N = 送 花
讲/V 个/N 故事/N 给/P 我/R 听/V = 讲 故事

A relative clause gives its noun or keeps its own:
我/R 喜欢/V 你/R 送/V 的/U 礼物/N = 喜欢 礼物, 送 礼物
我/R 看/V 书/N 的/U 时候/N 很/D 安静/A = 看 书

A classifier needs no number behind a verb:
喝/V 口/V 茶/U = 喝 茶
买瓶/N 水/N = 买 水
打/V 包/V =

What one wants to do is no object of wanting:
想/X 用/P 毛线/N 织/V 手套/N = 织 手套
想/X 尽量/D 控制/V 自己/R 的/U 情绪/N = 控制 情绪
我/R 想/X 我/R 应该/X 调整/V 自己/R 的/U 心态/N = 调整 心态

Misplaced borders are moved, doubled verbs are one:
讨厌/V 窒息/V 感/U = 讨厌 窒息感
阿哲/V 喝/V 粥/N = 喝 粥
你/R 喝/V 不/D 喝/V 咖啡/N ？ = 喝 咖啡
我/R 看/V 一/M 看/V 书/N = 看 书

Compounds of two free words are cut, bound ones are not:
我/R 喜欢/V 喝水/V 、 看书/V 。 = 喝 水, 看 书
我们/R 散步/V 吧/U =
我们/R 加油/V 吧/U =

Copulas, places, pronouns and times give nothing, nor do becoming and what one cannot do:
我/R 是/X 学生/N =
他/R 成为/V 老师/N 了/X =
我/R 去/V 公园/N =
我/R 爱/V 你/R =
我/R 觉得/V 今天/N 很/D 累/A =
睡/V 了/X 十/M 个/N 小时/N =
变/V 个/M 冰箱/N =
压/V 在/P 胸口/N =
无法/V 专心/N =

Words of the dictionary stay whole: 习 was the second verb of the rings:
我/R 已经/D 习惯/V 这/R 种/M 生活/N = 习惯 生活
她/R 满手/V 颜料/N =
我们/R 要/X 满足/V 先决/V 条件/N = 满足 条件
"""


@pytest.mark.parametrize("line", [line for line in SENTENCES.splitlines() if "=" in line])
def test_sentences_give_these_pairs(line: str) -> None:
    tagged, _, expected = line.partition("=")
    assert found(tagged) == [tuple(pair.split()) for pair in expected.split(",") if pair.strip()]


def test_verbs_lose_doubling_and_long_texts_end_soon() -> None:
    bare = {
        "看看": "看",
        "写完": "写",
        "送给": "送",
        "放在": "放",
        "打扫打扫": "打扫",
        "打开": "打开",
        "谢谢": "谢谢",
    }
    assert {verb: bare_verb(verb) for verb in bare} == bare
    # A hundred thousand characters without a mark end soon.
    long = Doc(Vocab(), words=["我", "喝", "茶"] * 33_000, pos=["PRON", "VERB", "NOUN"] * 33_000)
    assert VerbNounPair("喝", "茶") in chinese_pairs(long)


@example(words=[("的", "N"), ("一", "N"), ("的", "N")])
@given(
    st.lists(
        st.tuples(
            st.sampled_from("的了把给被我猫书喝看一个，。好在里x1😀不想"),
            st.sampled_from("NVRADPMUX."),
        ),
        max_size=40,
    )
)
def test_any_sequence_of_words_gives_pairs_made_of_the_text(
    words: Sequence[tuple[str, str]],
) -> None:
    tagged = doc(" ".join(f"{word}/{tag}" for word, tag in words))
    for pair in chinese_pairs(tagged):
        assert set(pair.noun) <= set(tagged.text)
        assert set(pair.verb) <= set(tagged.text)
