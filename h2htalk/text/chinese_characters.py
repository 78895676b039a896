"""Recognise the characters that Chinese names are made of, and convert traditional characters to simplified ones.

`traditional.txt` is derived from OpenCC's TSCharacters (Carbo Kuo and the OpenCC authors, Apache-2.0).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from h2htalk.text.language_data import read_lines

# The commonest surnames of the People's Republic, most of its people (Ministry of Public Security, 2021 report).
SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩邓冯曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢"
    "姚沈钟姜崔谭陆范汪廖石金贾夏韦付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常"
)
# Surnames of two characters in use today.
_DOUBLE = "欧阳司马上官诸葛司徒东方皇甫尉迟公孙慕容令狐长孙宇文夏侯南宫端木独孤呼延"
DOUBLE_SURNAMES = frozenset(map("".join, zip(_DOUBLE[::2], _DOUBLE[1::2], strict=True)))
# What foreign names are written with: from the table of syllables that news agencies transliterate by.
TRANSLITERATION = frozenset(
    "阿埃艾安昂奥巴班邦鲍贝本比彼宾波伯博布查达戴丹道德登迪蒂杜多厄恩尔法菲费芬丰佛弗福盖冈戈格根古哈海汉豪赫"
    "亨胡华怀霍基吉加贾杰金卡凯坎康考科克肯库夸昆拉莱兰朗劳勒雷里利莉连林龙卢鲁伦罗洛吕马迈曼芒毛梅蒙米密明莫"
    "姆穆纳奈南内尼宁纽努诺欧帕派潘庞佩彭皮平珀普齐奇乔琼丘让热日荣儒瑞萨塞森沙山尚舍申圣施什史士舒朔斯思斯苏"
    "索塔泰坦汤唐特腾提廷通图托瓦万旺威韦维文翁沃乌武西希夏香肖谢辛休许雪亚延扬耶叶伊易因英尤约泽詹珍芝治朱祖佐"
)


def looks_foreign(word: str) -> bool:
    """Whether a word of three characters or more is written in transliteration characters alone (a dot is allowed)."""
    letters = word.replace("·", "").replace("・", "")
    return len(letters) >= 3 and all(letter in TRANSLITERATION for letter in letters)


def simplified(text: str) -> str:
    """Convert traditional characters one for one (號 and 樓 to 号 and 楼); the length stays the same."""
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, str]:
    pairs = "".join(read_lines(Path(__file__).parent / "traditional.txt"))
    return {ord(old): new for old, new in zip(pairs[::2], pairs[1::2], strict=True)}
