"""The words and look-alikes that stand for digits, letters and separators, and how each is read."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

from h2htalk.curation.anonymize.normalization import HAN

_TABLES: dict[str, dict[str, str]] = tomllib.loads(
    resources.files(__package__).joinpath("words/deobfuscation.toml").read_text(encoding="utf-8")
)
_ONES = _TABLES["ones"]
_TEENS = _TABLES["teens"]
_TENS = _TABLES["tens"]
_TIMES = {"double": 2, "dbl": 2, "triple": 3, "treble": 3, "quadruple": 4}
DIGIT_WORDS = "|".join(
    sorted([w for w in {**_ONES, **_TEENS, **_TENS, **_TIMES} if w != "o"], key=lambda w: (-len(w), w))
)
_ONE = "|".join(sorted(_ONES, key=lambda w: (-len(w), w)))
_TIMES_ANY, _TENS_ANY, _TEENS_ANY = "|".join(_TIMES), "|".join(_TENS), "|".join(_TEENS)
_SPOKEN = (
    rf"(?:(?:{_TIMES_ANY})[ -](?:{_ONE}|[0-9])|(?:{_TENS_ANY})(?:[ -](?:{_ONE}))?"
    rf"|(?:{_TEENS_ANY})|(?:{_ONE})(?: hundred)?)(?![a-z])"
)
_SPOKEN_DIGIT = re.compile(_SPOKEN)
# Digits said one after the other, with figures in between.
SPELT_DIGITS = re.compile(
    rf"(?<![a-z0-9])(?:{_SPOKEN}|[0-9]+)(?:(?:[ ,./_-]|\s-\s|\.\.\.? ?|, ){{1,3}}"
    rf"(?:{_SPOKEN}|[0-9]+(?![a-z0-9]))){{0,40}}"
)

_NATO = _TABLES["nato"]
_NATO_ANY = "|".join(sorted(_NATO, key=lambda w: (-len(w), w)))
_LETTER = rf"(?:(?:{_NATO_ANY})(?![a-z])|[a-z] (?:as in|for|like) [a-z'-]{{3,12}}|[a-z](?![a-z']))"
_SIGN = rf"(?:{_LETTER}|{_SPOKEN}|[0-9]{{1,9}}(?![a-z0-9]))"
# Letters by their names and digits, one after the other: "victor november 0 1 juliet tango delta".
CLUSTER = re.compile(rf"(?<![a-z0-9']){_SIGN}(?:[ ,./-]{{1,3}}{_SIGN}){{2,20}}")
_SIGN_ONE = re.compile(_SIGN)

HOMOPHONES = "林玲铃灵凌衣依伊医尔伞寺舞吴武午溜刘柳妻齐琪漆爸巴芭酒久"
HAN_RUN = re.compile(rf"[0-9{HAN}洞两拐勾俩{HOMOPHONES}](?:[\s.,、·-]{{0,2}}[0-9{HAN}洞两拐勾俩{HOMOPHONES}]){{4,24}}")
PINYIN_DOT = re.compile(r"(?<=[0-9nuiaoers])\s?dian\s?(?=[0-9yelswqbjdg])")
REPEATED = re.compile(rf"([两俩二三四五六2-6])个([0-9{HAN}])")
_PINYIN = _TABLES["pinyin"]
_SOUND = "liang|guai|ling|dong|yao|san|liu|jiu|gou|yi|er|si|wu|qi|ba"
PINYIN_RUN = re.compile(rf"(?<![a-z0-9])(?:{_SOUND}|[0-9]+)(?:[\s,.、/·-]{{0,2}}(?:{_SOUND}|[0-9]+)){{4,24}}(?![a-z])")
_SOUND_ONE = re.compile(_SOUND)

_D = rf"[0-9{HAN}洞两拐勾{HOMOPHONES}]"
_MARK = r"[\s,.、:…~\"'-]{0,3}"
_FILLER_ZH = (
    r"(?:然后是?|(?:后面|后边|之后|接下来|紧接着|接着)(?:再)?(?:跟着?|是|接着?|写)?|再(?:接|来|加|跟)?(?:上|着)?|空一?格|空|不要|删掉|删|去掉|哈+|嗯+|呃|"
    r"中间是?|最后(?:几位|四位)?是?|后(?:四|几|三)位是?|中间(?:四|几)位是?|加|跟着|接)"
)
_WORD_END = (
    r"(?:(?<=[0-9])|(?<=one)|(?<=two)|(?<=three)|(?<=four)|(?<=five)|(?<=six)|(?<=seven)"
    r"|(?<=eight)|(?<=nine)|(?<=zero)|(?<=oh))"
)
_WORD_START = rf"(?=[0-9]|(?:{DIGIT_WORDS})(?![a-z]))"
_SIGN_START = r"(?=[0-9a-z]{1,4}(?![a-z]))"
_EN = r"[\s,.…]{1,4}"
_ALNUM = r"[0-9a-z]"
# Words for separators, and words that only separate, by language: a pattern and what it means.
FILLERS: dict[str, list[tuple[re.Pattern[str], str]]] = {
    "zh": [
        (
            re.compile(r"(?<=[0-9a-z_])\s?[(\[]?(?:下划线|下横线|下划杠|底线|underscore)[)\]]?\s?(?=[0-9a-z_])"),
            "_",
        ),
        (re.compile(r"(?<=[a-z0-9_])(?:不要|去掉|删掉|删)(?=-?[a-z0-9_])"), ""),
        (re.compile(rf"(?<={_D}){_MARK}{_FILLER_ZH}{_MARK}(?={_D}|[两俩]个)"), " "),
        (
            re.compile(
                rf"(?<=[0-9a-z{HAN}洞两拐勾])\s?(?:横杠|中横?杠|短横|横线|杠|横|减号?)\s?(?=[0-9a-z{HAN}洞两拐勾])"
            ),
            "-",
        ),
        (
            re.compile(rf"(?<=[0-9a-z{HAN}洞两拐勾])\s?(?:句号|点儿?|小数点|dot)\s?(?=[0-9a-z{HAN}洞两拐勾])"),
            ".",
        ),
        (re.compile(r"(?<=[0-9a-f])\s?冒号\s?冒号\s?(?=[0-9a-f])"), "::"),
        (re.compile(r"(?<=[0-9a-f])\s?冒号\s?(?=[0-9a-f])"), ":"),
        (re.compile(rf"(?<=[0-9{HAN}])\s?斜杠\s?(?=[0-9{HAN}])"), "/"),
        (re.compile(r"(?<=[a-z])(?:后面跟着?|后面是|然后是?|再跟|再加|空)\s?(?=[a-z0-9])"), " "),
    ],
    "en": [
        (re.compile(rf"{_WORD_END}{_EN}(?:dash|hyphen|minus){_EN}{_WORD_START}"), "-"),
        (re.compile(rf"{_WORD_END}{_EN}(?:dot|point|period|full stop){_EN}{_WORD_START}"), "."),
        (re.compile(rf"(?<=[0-9a-f]){_EN}colon{_EN}colon{_EN}(?=[0-9a-f])"), "::"),
        (re.compile(rf"(?<=[0-9a-f]){_EN}colon{_EN}(?=[0-9a-f])"), ":"),
        (re.compile(r"(?<=[0-9])\s?d[o0]t\s?(?=[0-9])"), "."),
        (
            re.compile(
                rf"{_WORD_END}{_EN}(?:and )?(?:the )?(?:last|first|middle|final) (?:four|three|two|bit"
                rf"|part|digits)(?: (?:is|are|digits|digits are))?{_EN}{_WORD_START}"
            ),
            " ",
        ),
        (
            re.compile(
                rf"{_WORD_END}{_EN}(?:(?:and|an|n) )?(?:then|next|space|pause|slash|underscore"
                rf"|followed by|(?:and )?after that|and|breath)(?: comes)?{_EN}{_WORD_START}"
            ),
            " ",
        ),
        (
            re.compile(
                rf"(?<=[a-z][0-9]|[0-9][0-9]|[0-9][a-z]|[a-z][a-z]){_EN}(?:(?:and )?then|dash|hyphen"
                rf"|space|gap){_EN}(?=[a-z]{{1,4}}(?![a-z])|[a-z]{{0,3}}[0-9])"
            ),
            " ",
        ),
    ],
}
# A message without spaces: callthehouse6175343866notmycell.
GLUED = re.compile(
    r"(?<![a-z0-9])[a-z]{0,24}?(call|text|phone|cell|mobile|tel|card|debit|credit|ssn"
    r"|social|account|acct|number|ring|house|home)"
    r"[a-z]{0,12}([0-9]{7,19})(?![0-9])"
)


def split_glued_cue(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """The cue and the number, apart."""
    return [(match.start(1), match.end(1), f" {match[1]} "), (match.start(2), match.end(2), f" {match[2]} ")]


def spoken_digits(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """ "double seven", "forty two", "oh": as digits, where two or more stand in a row."""
    at = match.start()
    found = [(at + m.start(), at + m.end(), _figures(m.group())) for m in _SPOKEN_DIGIT.finditer(match.group())]
    total = sum(char.isdigit() for char in match.group()) + sum(len(meant) for _, _, meant in found)
    if total < 2 or "12345" in "".join(meant for _, _, meant in found):  # somebody counts
        return []
    edits: list[tuple[int, int, str]] = []
    for edit in found:  # "one forty two": what a space alone parts is one number
        if edits and match.string[edits[-1][1] : edit[0]] == " ":
            edits.append((edits[-1][1], edit[0], ""))
        edits.append(edit)
    return edits


def _figures(said: str) -> str:
    words = re.split(r"[ -]", said)
    if words[0] in _TIMES:
        return _ONES.get(words[1], words[1]) * _TIMES[words[0]]
    if words[0] in _TENS:
        return _TENS[words[0]] + (_ONES[words[1]] if len(words) > 1 else "0")
    return _TEENS.get(words[0]) or _ONES[words[0]] + ("00" if len(words) > 1 else "")


def spelled_letters(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """Letters by their names, joined: only where a name or "as in" shows that somebody spells."""
    at = match.start()
    signs = list(_SIGN_ONE.finditer(match.group()))
    named = sum(
        len(m.group()) > 2 and not m.group()[0].isdigit() and _SPOKEN_DIGIT.fullmatch(m.group()) is None for m in signs
    )
    if named < 2 and not (named and any(m.group().isdigit() or _SPOKEN_DIGIT.fullmatch(m.group()) for m in signs)):
        return []
    edits = []
    last = 0
    for sign in signs:
        said = sign.group()
        if sign.start() > last:
            edits.append((at + last, at + sign.start(), ""))
        meant = (
            _NATO[said].upper()
            if said in _NATO
            else (
                _figures(said)
                if _SPOKEN_DIGIT.fullmatch(said) and len(said) > 1
                else said
                if said.isdigit()
                else said[0].upper()
            )
        )
        edits.append((at + sign.start(), at + sign.end(), meant))
        last = sign.end()
    return edits


def pinyin_digits(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """yao san er: digits in the letters of their sounds."""
    sounds = list(_SOUND_ONE.finditer(match.group()))
    if len(sounds) < 3:
        return []
    return [(match.start() + m.start(), match.start() + m.end(), _PINYIN[m.group()]) for m in sounds]
