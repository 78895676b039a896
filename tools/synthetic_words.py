"""The word lists of the synthetic split (tools/make_synthetic_split.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from h2htalk.data.languages import RECORDS


@dataclass(frozen=True, slots=True)
class Words:
    """One language: sentence patterns, what fills their slots, and what stands between and after sentences."""

    patterns: tuple[str, ...]
    slots: Mapping[str, tuple[str, ...]]
    gap: str
    stop: str
    sleep: str


EMOTIONS = ("joy", "sadness", "anger", "fear", "pride", "calm", "loneliness", "hope", "guilt", "fatigue")
CATEGORIES = {language: record.memory_categories for language, record in RECORDS.items()}


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("/"))


_ENGLISH = {
    "who": _split(
        "my sister / the neighbour upstairs / our old teacher / my manager / the new intern / her brother / my aunt"
        " / the postman / a friend from the choir / the landlord / my cousin / the physiotherapist / grandmother"
    ),
    "did": _split(
        "called twice about / forgot / kept asking for / finally returned / laughed at / wrote to me about"
        " / promised to mend / gave away / painted / apologised for / complained about / photographed"
    ),
    "thing": _split(
        "the broken kettle / a long train journey / the garden gate / that unfinished letter / the spare keys"
        " / three jars of plum jam / the winter coat / a birthday cake / the noisy boiler / an old radio"
        " / the allotment / a box of photographs / the missed appointment / the exam results / the night shift"
    ),
    "when": _split(
        "on Tuesday / this morning / after the storm / before lunch / late last night / in the first week of May"
        " / while it rained / during the meeting / at half past six / since the move / over the weekend"
    ),
    "where": _split(
        "at the harbour / by the bus stop / in the kitchen / under the bridge / near the library / in the stairwell"
        " / on the fourth floor / behind the bakery / at the clinic / in the old cinema / by the river"
    ),
    "feeling": _split(
        "a little lost / quietly proud / worn out / hopeful again / rather foolish / oddly calm / lonely / relieved"
        " / nervous about tomorrow / angry with myself / homesick / too tired to think / glad that you asked"
    ),
    "activity": _split(
        "repot the tomatoes / walk along the harbour / read letters on the radio / sort the second-hand books"
        " / meet the choir / draw a garden plan / buy bread and plums / call the landlord / do the crossword"
        " / run by the river / visit grandmother / cook a slow soup / water the seedlings / watch an old film"
    ),
}

_CHINESE = {
    "who": _split(
        "我姐姐 / 楼上的邻居 / 以前的班主任 / 部门经理 / 新来的实习生 / 她弟弟 / 小姨 / 快递员 / 合唱团的朋友"
        " / 房东 / 表哥 / 康复科的医生 / 外婆"
    ),
    "did": _split(
        "两次打电话问起 / 又忘了 / 一直惦记着 / 终于还回来 / 拿来开玩笑的是 / 写信跟我说起 / 答应帮我修好"
        " / 悄悄送走了 / 重新刷了 / 为此道歉的是 / 抱怨了半天 / 拍下了"
    ),
    "thing": _split(
        "那把坏掉的水壶 / 一趟很长的火车 / 院子的小门 / 没写完的那封信 / 备用钥匙 / 三罐梅子酱 / 冬天的大衣"
        " / 生日蛋糕 / 吵人的锅炉 / 一台旧收音机 / 阳台上的菜地 / 一箱老照片 / 错过的预约 / 考试成绩 / 夜班排班表"
    ),
    "when": _split(
        "星期二 / 今天早上 / 暴雨过后 / 午饭之前 / 昨天深夜 / 五月的第一周 / 下雨的时候 / 开会的时候 / 六点半左右"
        " / 搬家以后 / 整个周末"
    ),
    "where": _split(
        "在码头 / 在公交站旁边 / 在厨房里 / 在桥底下 / 在图书馆附近 / 在楼道里 / 在四楼 / 在面包店后面 / 在诊所"
        " / 在老电影院 / 在河边"
    ),
    "feeling": _split(
        "有点迷茫 / 心里偷偷得意 / 累坏了 / 又有了盼头 / 觉得自己挺傻 / 出奇地平静 / 很孤单 / 松了一口气"
        " / 为明天紧张 / 在生自己的气 / 特别想家 / 累得不想动脑子 / 很高兴你问起"
    ),
    "activity": _split(
        "给番茄换盆 / 沿码头散步 / 在电台读来信 / 整理旧书 / 去合唱团排练 / 画花园图纸 / 买面包和梅子"
        " / 给房东打电话 / 做填字游戏 / 沿河晨跑 / 看望外婆 / 慢火煲汤 / 给小苗浇水 / 看一部老电影"
    ),
}

WORDS = {
    "en": Words(
        patterns=(
            "I saw {who} {where} {when}, and I have been {feeling} ever since.",
            "{when} {who} {did} {thing}, and I did not know what to say.",
            "Do you remember {thing}, the one that {who} left {where}?",
            "I wanted to {activity} {when}, but {who} {did} {thing} instead.",
            "Honestly I feel {feeling}, because nobody {did} {thing} {where}.",
            "Maybe we could {activity} together {when}, or simply {activity}.",
        ),
        slots=_ENGLISH,
        gap=" ",
        stop=".",
        sleep="go to sleep",
    ),
    "zh": Words(
        patterns=(
            "{when}我{where}碰见{who}，后来一直{feeling}。",
            "{when}{who}{did}{thing}，我都不知道该说什么。",
            "你还记得{thing}吗，就是{who}落{where}的那个？",
            "我本来想{when}{activity}，结果{who}{did}{thing}。",
            "说实话我{feeling}，因为{where}没有人提起{thing}。",
            "要不我们{when}一起{activity}，或者干脆什么都不做。",
        ),
        slots=_CHINESE,
        gap="",
        stop="。",
        sleep="睡觉",
    ),
}
