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
from h2htalk.analysis.verb_nouns.chinese_tokens import chinese_tokens
from h2htalk.analysis.verb_nouns.pair_counting import iter_pairs
from h2htalk.analysis.verb_nouns.pairs import VerbNounPair

TAGS = {
    "N": "NOUN",
    "V": "VERB",
    "R": "PRON",
    "A": "ADJ",
    "D": "ADV",
    "P": "ADP",
    "M": "NUM",
    "U": "PART",
    "X": "AUX",
}


def doc(tagged: str) -> Doc:
    """`我/R 喝/V 茶/N 。` as a document without a tree."""
    words = [part.partition("/") for part in tagged.split()]
    return Doc(
        Vocab(),
        words=[word for word, _, _ in words],
        spaces=[False] * len(words),
        pos=[TAGS.get(tag, "PUNCT") for _, _, tag in words],
    )


def found(tagged: str) -> list[tuple[str, str]]:
    return [(pair.verb, pair.noun) for pair in chinese_pairs(doc(tagged))]


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("我/R 喝/V 了/X 一/M 杯/N 热/A 咖啡/N 。", [("喝", "咖啡")]),
        ("我/R 去/V 超市/N 买/V 牛奶/N 和/P 面包/N 。", [("买", "牛奶"), ("买", "面包")]),
        ("她/R 洗/V 碗/N ， 扫地/V ， 晒/V 被子/N", [("洗", "碗"), ("扫", "地"), ("晒", "被子")]),
        ("奶奶/N 想/V 买/V 一/M 台/N 收音/N 机/N", [("买", "收音机")]),
        ("我/R 接受/V 和/P 整合/V 不同/A 的/U 性格/N", [("接受", "性格"), ("整合", "性格")]),
    ],
)
def test_a_verb_takes_the_last_noun_of_what_follows(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize("particle", ["把/P", "将/P"])
def test_ba_and_jiang_put_the_object_first(particle: str) -> None:
    assert found(f"他/R {particle} 杯子/N 洗/V 干净/A 了/X") == [("洗", "杯子")]
    assert found(f"她/R {particle} 书/N 放/V 在/P 桌上/N") == [("放", "书")]


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("给/P 我/R 一/M 个/N 拥抱/N", [("给", "拥抱")]),
        ("给/P 妈妈/N 打/V 电话/N", [("打", "电话")]),
        ("他/R 送/V 给/P 她/R 一/M 束/N 花/N", [("送", "花")]),
        ("讲/V 个/N 故事/N 给/P 我/R 听/V", [("讲", "故事")]),
    ],
)
def test_of_person_and_thing_the_thing_counts(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("我/R 喜欢/V 你/R 送/V 的/U 礼物/N", [("喜欢", "礼物"), ("送", "礼物")]),
        ("找到/V 解决/V 问题/N 的/U 方法/N", [("解决", "问题"), ("找到", "方法")]),
        ("我/R 看/V 书/N 的/U 时候/N 很/D 安静/A", [("看", "书")]),
    ],
)
def test_a_relative_clause_gives_its_noun_or_keeps_its_own(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("喝/V 口/V 茶/U", [("喝", "茶")]),
        ("看场/N 电影/N", [("看", "电影")]),
        ("下盘/V 棋/U", [("下", "棋")]),
        ("买瓶/N 水/N", [("买", "水")]),
        ("打/V 包/V", []),
    ],
)
def test_a_classifier_needs_no_number_behind_a_verb(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("想/X 用/P 毛线/N 织/V 手套/N", [("织", "手套")]),
        ("想/X 尽量/D 控制/V 自己/R 的/U 情绪/N", [("控制", "情绪")]),
        ("我/R 想/X 我/R 应该/X 调整/V 自己/R 的/U 心态/N", [("调整", "心态")]),
    ],
)
def test_what_one_wants_to_do_is_no_object_of_wanting(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ("讨厌/V 窒息/V 感/U", [("讨厌", "窒息感")]),
        ("阿哲/V 喝/V 粥/N", [("喝", "粥")]),
    ],
)
def test_misplaced_borders_are_moved(tagged: str, expected: list[tuple[str, str]]) -> None:
    assert found(tagged) == expected


@pytest.mark.parametrize(
    "tagged",
    ["变/V 个/M 冰箱/N", "压/V 在/P 胸口/N", "无法/V 专心/N"],
)
def test_becoming_places_and_what_one_cannot_do_give_nothing(tagged: str) -> None:
    assert found(tagged) == []


def test_thanks_are_a_word_and_no_doubled_verb() -> None:
    assert bare_verb("谢谢") == "谢谢"


def test_the_subject_of_bei_is_no_object() -> None:
    assert found("蛋糕/N 被/P 弟弟/N 吃/V 了/X") == []


def test_compounds_of_two_free_words_are_cut_and_bound_ones_are_not() -> None:
    assert found("我/R 喜欢/V 喝水/V 、 看书/V 。") == [("喝", "水"), ("看", "书")]
    for bound in ("散步", "睡觉", "聊天", "游泳", "毕业", "请假", "起床", "加油"):
        assert found(f"我们/R {bound}/V 吧/U") == []


@pytest.mark.parametrize(
    "tagged",
    [
        "我/R 是/X 学生/N",
        "他/R 成为/V 老师/N 了/X",
        "我/R 去/V 公园/N",
        "我/R 爱/V 你/R",
        "我/R 觉得/V 今天/N 很/D 累/A",
        "睡/V 了/X 十/M 个/N 小时/N",
    ],
)
def test_copulas_places_pronouns_and_times_give_nothing(tagged: str) -> None:
    assert found(tagged) == []


def test_verbs_lose_doubling_and_endings_but_dictionary_words_stay_whole() -> None:
    assert [bare_verb(verb) for verb in ("看看", "写完", "送给", "放在", "打扫打扫")] == [
        "看",
        "写",
        "送",
        "放",
        "打扫",
    ]
    assert bare_verb("打开") == "打开"
    assert found("你/R 喝/V 不/D 喝/V 咖啡/N ？") == [("喝", "咖啡")]
    assert found("我/R 看/V 一/M 看/V 书/N") == [("看", "书")]


def test_pairs_stand_in_the_order_of_their_nouns() -> None:
    assert found("把/P 门/N 关/V 上/V ， 喝/V 茶/N") == [("关", "门"), ("喝", "茶")]


def test_nothing_of_the_text_is_lost_or_added_when_words_are_cut_again() -> None:
    text = doc("掉头/V 发/V 了/X ， 草莓/N 园摘/N 草莓/N ， 别刷/V 手机/N")
    assert "".join(piece.text for piece in chinese_tokens(text)) == text.text


@example(words=[("的", "N"), ("一", "N"), ("的", "N")])
@given(
    st.lists(
        st.tuples(st.sampled_from("的了把给被我猫书喝看一个，。好在里x1😀不想"), st.sampled_from("NVRADPMUX.")),
        max_size=40,
    )
)
def test_any_sequence_of_words_gives_pairs_made_of_the_text(words: Sequence[tuple[str, str]]) -> None:
    tagged = doc(" ".join(f"{word}/{tag}" for word, tag in words))
    assert "".join(piece.text for piece in chinese_tokens(tagged)) == tagged.text
    for pair in chinese_pairs(tagged):
        assert set(pair.noun) <= set(tagged.text)
        assert set(pair.verb) <= set(tagged.text)


def test_a_hundred_thousand_characters_without_a_mark_end_soon() -> None:
    long = Doc(Vocab(), words=["我", "喝", "茶"] * 33_000, pos=["PRON", "VERB", "NOUN"] * 33_000)
    assert VerbNounPair("喝", "茶") in chinese_pairs(long)


@pytest.mark.parametrize("text", ["", "😀😀", "hello world", "  \n", "。。。"])
def test_texts_without_chinese_give_nothing(text: str) -> None:
    assert [*iter_pairs([text], "zh")] == []
