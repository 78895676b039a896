"""Names that a segmenter does not see: 果果妈, 黄太, 赵老四, a name called out in quotation marks, a child's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.chinese.jieba_dictionary import usual
from h2htalk.curation.anonymize.chinese.name_segmenter import given, listed_characters, ordinary, surnames
from h2htalk.curation.anonymize.chinese.words import table

_PARENTS = "妈妈|爸爸|奶奶|爷爷|姥姥|姥爷|外婆|外公|妈|爸|娘|他妈|她妈|他爸|她爸"
_PARENT = re.compile(
    rf"(?P<one>[一-龥])(?P=one)(?:{_PARENTS})(?![一-龥]?[妈爸])|小[一-龥](?:{_PARENTS})(?![妈爸])"
)
_NO_CHILD = frozenset(
    "陪想问试劝帮聊说走坐抱亲听写管催妈爸爷奶姥婆公哥姐弟妹叔姑舅姨宝常天人个家时刚偷悄慢渐默轻狠好早乖等看谢骂哭笑"
)
# What is done by a person and by little else.
_ACTS = (
    "发烧|生病|不理|抢到|跟我|和我|告诉|骂我|约我|陪我|回我|问我|说她|说他|说我|说要|发消息|拉黑|删了|给我|把我|叫我|没来|没回|请假|辞职|结婚|离婚|分手"
    "|哭了|笑了|哭着|睡了|睡着|醒了|咳嗽|吐了|放学|上幼儿园|会喊|会叫|会走|会说|不肯|怀孕|住院|走了一年|喜欢我|喜欢她|喜欢他|她|他|今天|昨天|昨晚|最近"
)
_CHILD = re.compile(rf"(?<![一-龥])(?P<one>[一-龥])(?P=one)(?=(?:{_ACTS}))")
_SMALL = re.compile(
    rf"(?:(?<![一-龥])|(?<=[跟和给问陪等])|(?<=[友蜜桌事]))小[满雨雪月溪白麦米苗树鹿寒北鱼花草青艾黑龙虎方全金波成石七九安]"
    rf"(?=(?:{_ACTS}))"
)
_CALLED_OUT = re.compile(
    r"[\"“「'](?P<name>[一-龥]{2,3})(?=[，,！!～~啊呀]|[\"”」'][，, ]?(?:她|他|我妈|我爸|妈妈|爸爸|奶奶|爷爷|有人))"
)
_ELDEST = re.compile(
    r"(?:(?<![一-龥])|(?<=[叔伯舅哥弟爷的跟和找叫被给邻村]))[一-龥]老[大二三四五六七八幺](?![一-龥]?婆|家|不小)"
)
_MADAM = re.compile(
    r"(?:(?<![一-龥])|(?<=[东居下壁板婆跟和给]))[一-龥]太(?=[又说叫来也让涨催骂给打把是在]|[，。,.!！?？]|$)"
)
_ROUGH = re.compile(r"(?:(?<![一-龥])|(?<=[傅爷卫安居跟和给叫找被]))老[一-龥]头子?(?![发疼痛大上])")
_NICKNAMED = re.compile(
    r"(?:外号|绰号|花名|人称|都叫[我他她]|管[我他她]叫|喊[我他她])(?:是|叫)?[\"“「]?(?P<name>[一-龥]{2,3})(?=[，。,.!！\"”」]|$)"
)


@cache
def _babies() -> frozenset[str]:
    entries = table("persons")["nicknames"]
    return frozenset(entries["doubled"]) | {
        word[0] for word in entries["not_doubled"].split() if len(word) == 2
    }


def nicknames(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each; they may overlap what the segmenter finds."""
    for hit in _PARENT.finditer(text):
        one = hit.group("one")
        if (one is None or one not in _NO_CHILD) and (one is not None or _child(text, hit.start())):
            yield hit.start(), hit.end(), 0.65
    for hit in _CHILD.finditer(text):
        if hit.group("one") in _babies() - _NO_CHILD - frozenset("明安文洋"):
            yield hit.start(), hit.end(), 0.6
    for hit in _SMALL.finditer(text):
        yield hit.start(), hit.end(), 0.6
    for pattern in (_ELDEST, _MADAM):
        for hit in pattern.finditer(text):
            if text[hit.start()] in surnames() and text[hit.start()] not in "那向应时明成当全单能和从":
                yield hit.start(), hit.end(), 0.65
    for hit in _ROUGH.finditer(text):
        if text[hit.start() + 1] in surnames():
            yield hit.start(), hit.end(), 0.65
    for hit in (*_CALLED_OUT.finditer(text), *_NICKNAMED.finditer(text)):
        name = hit.group("name")
        parts = [given(letter) is not None for letter in name]
        full = name[0] in surnames() and len(name) > 1
        if (
            all(parts)
            and (listed_characters(name) or full)
            and not usual(name, 60)
            and name not in ordinary()
        ):
            yield hit.start("name"), hit.end("name"), 0.6


def _child(text: str, at: int) -> bool:
    """Whether 小X before 妈 is a child's name: not 小姨妈, not 小时."""
    word = text[at : at + 2]
    return not usual(word, 300) and given(word[1]) is not None and word[1] not in _NO_CHILD
