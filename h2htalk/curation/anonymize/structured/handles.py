"""Names of accounts on social networks and in games: `@name`, or a name beside the network's."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.anonymize.english.word_lists import is_word, words
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured.domains import is_ending

_AT = re.compile(r"(?<![a-z0-9_.@/-])@[a-z0-9_][a-z0-9_.-]{1,29}")
# Of Chinese characters only where a network or an account is spoken of: many write @ before whom they answer.
_HAN_AT = re.compile(r"(?<![a-z0-9_.@/-])@[\u4e00-\u9fff][\w·丶]{1,15}")
_HAN_AT_CUE = re.compile("主播|博主|直播|私信|取关|拉黑|粉丝|举报|避雷")
_HAN_AT_REACH = 60
_REDDIT = re.compile(r"(?<![a-z0-9_/])u/[a-z0-9_-]{3,20}")
_DISCORD = re.compile(r"(?<![\w@#.])[a-z0-9_.]{2,32}#[0-9]{4}(?![0-9])")
# What follows an @ and is no account.
_PLACES = frozenset(["everyone", "here", "all", "channel", "home", "work", "school", "me", "night", "noon", "least"])
_NETWORK = (
    "(?:instagram|insta|ig|ins|snap|snapchat|discord|disc|dc|telegram|tg|twitter|twt|tik ?tok|twitch|steam|reddit|psn"
    "|xbox|gamertag|kik|venmo|cash ?app|soundcloud|spotify|tumblr|bluesky|bsky|threads|roblox|minecraft|pinterest"
    "|youtube|facebook|fb|line|onlyfans|grindr|tinder|hinge|bumble|wattpad|ao3|strava|user ?name|screen ?name|handle)"
)
_CUE = re.compile(rf"(?<![a-z]){_NETWORK}(?![a-z])")
_REACH_BEFORE, _REACH_BEHIND = 34, 26
_SENTENCE_END = re.compile(r"[!?\n。！？]|\.\s")
# A name of letters with a figure, an underscore or a full stop inside: no word is written so.
_MARKED = re.compile(
    r"(?<![a-z0-9_@./-])(?=[a-z0-9._-]*[0-9_.-][a-z0-9_])(?=[0-9._-]*[a-z])[a-z0-9_][a-z0-9._-]{2,29}(?<![.-])"
)
# Amounts, times, abbreviations, compounds, files and sites.
_NO_NAME = re.compile(
    r"[0-9]+[a-z]{1,4}|[0-9]+-[a-z]+|[0-9][0-9.,-]*[a-z]{0,3}|[a-z]{1,3}[0-9]{1,2}|[a-z]\.[a-z.]+|[a-z]+(?:-[a-z]+)+|v[0-9.]+"
    r"|covid-?19|iphone.*|av[0-9]+|bv1[a-z0-9]{9}|(?:www\.|https?).*|.*\.(?:com|net|org|io|co|uk|cn|me|tv|gg|ly|be|app|xyz|jpe?g|png|gif|pdf|zip)"
)
_PARTS = re.compile("[-.]")
# A name without such a mark, where the sentence says that it is one.
_TOLD = re.compile(
    rf"(?<![a-z]){_NETWORK}(?:'s| id| name| user| username| handle| tag| acc| account| profile)*\s?"
    r"(?:is|was|:|=|called|named| -)+\s*[\"'“]?(?P<after>[a-z0-9_][a-z0-9_.-]{3,29})(?![\w@])"
    r"|(?:called|named|as|on|is) [\"'“]?(?P<before>[a-z0-9_][a-z0-9_.-]{4,29})[\"'”]? (?:on|or did)"
    rf"[^.!?\n]{{0,16}}? {_NETWORK}(?![a-z])"
)
_CHINESE_CUE = re.compile(
    "抖音|微博|小红书|b站|哔哩哔哩|快手|推特|油管|知乎|贴吧|豆瓣|网易云|电报|王者|原神|探探|陌陌|昵称|网名|用户名|游戏名|[小大新老旧]号|[账帐我]号"
    rf"|(?<![a-z])(?:{_NETWORK}|lol|soul|id)(?![a-z])"
)
# What leads from the cue to the name: 号改成了, 搜, 也有 叫.
_LEAD = re.compile(
    '(?:号|id|昵称|名字|名|主页|关注|找|加|搜|我|呀|吧|上|里|也|有|是|为|就|都|改|换|成|了|以前|现在|叫|做|[:,，\\s@"“「]){0,12}'
)
_LATIN_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{3,29}(?:[\u4e00-\u9fff]{1,12}(?=就是|就行|[，。！？,!?\s]|$))?")
_HAN_NAME = re.compile(r"(?=[\w·丶]*[\u4e00-\u9fff])[\w·丶]{2,15}?(?=就是|就行|[\"”」，。！？,!?\s~（(]|$)")
_CALLED = re.compile(
    '(?<![么啥首部种款本位歌剧片书戏曲])(?:叫做?|名是|昵称是|id|改成了?|搜)[ :："“「]?(?!做?[啥什谁哪])'
)
_NO_HAN_NAME = re.compile("一下|一[首部个]|[啥什谁哪我你他她它不没这那了吗个的得]")
_CALLED_REACH = 24


def mention_spans(text: str) -> Iterator[Span]:
    """Spans of `@name` that begin a word and are no address at a domain."""
    for found in _AT.finditer(text):
        name = found.group()[1:].rstrip(".-")
        domain = "." in name and is_ending(name.rpartition(".")[2])
        if not domain and name not in _PLACES and name not in _public() and not name.isdigit():
            yield Span(found.start(), found.start() + 1 + len(name), "HANDLE", 0.9)


def handle_spans(text: str, language: str) -> Iterator[Span]:
    """Other spans of HANDLE in a plain text in lower case; some overlap."""
    if "u/" in text:
        yield from (Span(*found.span(), "HANDLE", 0.95) for found in _REDDIT.finditer(text))
    if "#" in text:
        yield from (Span(*found.span(), "HANDLE", 0.95) for found in _DISCORD.finditer(text))
    cues = [found.span() for found in (_CHINESE_CUE if language == "zh" else _CUE).finditer(text)]
    if cues:
        yield from _marked(text, cues)
        yield from _told(text)
        if language == "zh":
            yield from _chinese(text, cues)
    for found in _HAN_AT.finditer(text) if "@" in text else ():
        near = slice(max(found.start() - _HAN_AT_REACH, 0), found.end() + _HAN_AT_REACH)
        if _HAN_AT_CUE.search(text[near]) or _CHINESE_CUE.search(text[near]):
            yield Span(*found.span(), "HANDLE", 0.8)


def _marked(text: str, cues: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Names that are no words, near a cue in the same sentence."""
    starts = [start for start, _ in cues]
    for found in _MARKED.finditer(text):
        if _NO_NAME.fullmatch(found.group()) or _is_two_words(found.group()):
            continue
        behind = bisect_left(starts, found.end())
        before = bisect_left(starts, found.start()) - 1
        between = text[cues[before][1] : found.start()] if before >= 0 else None
        after = text[found.end() : cues[behind][0]] if behind < len(cues) else None
        if _leads(between, _REACH_BEFORE) or _leads(after, _REACH_BEHIND):
            yield Span(*found.span(), "HANDLE", 0.8)


def _is_two_words(name: str) -> bool:
    """Whether a space is missing behind a full stop, or two words are joined by a hyphen."""
    parts = _PARTS.split(name)
    return all(part.isalpha() and is_word(part) for part in parts)


def _leads(between: str | None, reach: int) -> bool:
    return between is not None and len(between) <= reach and not _SENTENCE_END.search(between)


def _told(text: str) -> Iterator[Span]:
    for found in _TOLD.finditer(text):
        group = "after" if found["after"] else "before"
        name = found[group].rstrip(".-")
        if not is_word(name) and name not in _public() and not _NO_NAME.fullmatch(name):
            yield Span(found.start(group), found.start(group) + len(name), "HANDLE", 0.7)


def _chinese(text: str, cues: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """A name in Latin letters right behind a cue, and any that somebody is "called" (叫) behind one."""
    for _, end in cues:
        lead = _LEAD.match(text, end)
        start = lead.end() if lead else end
        found = _LATIN_NAME.match(text, start)
        name = found.group().rstrip(".-") if found else ""
        if len(name) > 3 and not name.isdigit() and not _NO_NAME.fullmatch(name) and not is_word(name):
            yield Span(start, start + len(name), "HANDLE", 0.75)
    ends = [end for _, end in cues]
    for called in _CALLED.finditer(text):
        before = bisect_right(ends, called.start()) - 1
        found = _HAN_NAME.match(text, called.end())
        if before < 0 or found is None or _NO_HAN_NAME.match(found.group()) or found.group() in _public():
            continue
        if _leads(text[ends[before] : called.start()], _CALLED_REACH):
            yield Span(*found.span(), "HANDLE", 0.7)


@cache
def _public() -> frozenset[str]:
    """Public figures as their accounts are called: their names in one word."""
    return frozenset("".join(name) for names in words().known.values() for name in names)
