"""WeChat ids, which are letters and digits beside a cue, or `wxid_`. Ids of digits alone: `identities`."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured import domains
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues

_WXID = re.compile(r"wxid_[a-z0-9_-]{6,30}")
_TOKEN = re.compile(r"(?<![a-z0-9_@/.-])[a-z0-9][a-z0-9_-]{2,24}(?![a-z0-9_@/-]|\.[a-z]|:/)")
# What is no id, whatever it stands beside: models of things, sizes, versions, codes of films.
_NO_ID = re.compile(
    r"qq?[0-9]{5,11}$|qq[0-9]+$|(?:iphone|ipad|huawei|xiaomi|redmi|mate|oppo|vivo|honor|galaxy|rtx|gtx"
    r"|macbook|airpods|switch|windows|win|ps|nova|reno|find|"
    r"covid|cet|tem|gb|iso|http|www|img|dsc|wx_camera|mmexport|screenshot|version|python"
    r"|chatgpt|gpt|deepseek|mp|isbn|sars|h[0-9]n)"
    r"[0-9._-]*(?:pro|max|plus|ultra|mini|se|air|promax|s|x)*(?![a-z])|[0-9]+[a-z]{1,3}$"
    r"|[a-z]{1,2}[0-9]{1,4}$|[0-9-]+$|(?:19|20)[0-9]{2}-"
)
# Cues of values that are no WeChat ids.
_ELSEWHERE = frozenset(["other", "account", "plate"])
_CLOSE = 8
_HAN_IN_WORD = re.compile(rf"(?<=[a-z0-9_])[{HAN}]{{2,}}(?![\u4e00-\u9fff])|(?<=[a-z0-9_])[{HAN}]{{3,}}")
_SPACED_FIGURES = re.compile(r"[ \n][0-9]{2,8}(?![0-9a-z])")
_QQ = re.compile(r"qq[0-9]+")
_PIECE = re.compile(r"[a-z0-9_-]+")
# Between a cue and its id: marks, and the few words that lead there.
_LEAD = re.compile(
    r"(?:[\s:,.!?~<>\[\]()\"'=+。❤-]|号码?|是|就是|为|叫|id|账号|帐号|搜索?|加|直接|可以|一下|这个|我的?|换成?了?|现在|新的?|改成?|吧|呗|哈|嘛|啊|呀|咯|的|名|上|"
    r"你|也|备注|先|有|了|吗|信|芯|❤|呢|哦|给你|发你|is|my|it'?s|add|me|on|名字|联系|就行|请|小号|大号|常用|找|聊|at|the"
    r"|was|here|name|handle|user){0,14}"
)
_BACK = re.compile(
    r"[\s,，\"')\]】]{0,3}(?:[(\[<]|(?:这|那)?(?:个|串)?(?:也|就|才)?(?:是|为)(?:我|他|她|你|咱)?(?:们|妈|爸|姐|哥)?的?"
    r"|is my |那?是?)\s?$"
)
_NO_IDS = domains.words("no_wechat")


def wechat_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of WeChat ids that hold a letter, outside of what is taken, which they join."""
    text = _figured(normalized)
    spans = taken.keep(Span(*m.span(), "WECHAT", 0.98) for m in _WXID.finditer(text)) if "wxid" in text else []
    for cue in [*cues.found, *_glued(text)]:
        if cue.kind == "wechat":
            span = _behind(text, cue) or _before(text, cue)
            if span is not None:
                spans += taken.keep([span])
    return spans + taken.keep(_about(text, cues))


def _about(text: str, cues: Cues) -> Iterator[Span]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    if not any(cue.kind in ("wechat", "adding") for cue in cues.found):
        return
    for match in _TOKEN.finditer(text):
        value, end = match.group(), match.end()
        more = _SPACED_FIGURES.match(text, end) if value.isalpha() else None
        if more and len(value) + len(more.group()) > 6:
            value, end = value + more.group()[1:], more.end()
        if not 6 <= len(value) <= 20 or value in _NO_IDS or _NO_ID.match(value) or not re.search("[a-z]", value):
            continue
        near = cues.near(*match.span())
        if near.nearest in _ELSEWHERE and near.kinds[0][1] <= _CLOSE:
            continue
        direct = near.distance("wechat") is not None
        if _marked(value) or "-" in value:
            if direct or "wechat" in near.around:
                yield Span(match.start(), end, "WECHAT", 0.85 if direct else 0.75)
            elif "adding" in near.around and near.nearest in ("", "phone", "url", "qq") and _beside(cues, match):
                yield Span(match.start(), end, "WECHAT", 0.65)
        elif (direct or _beside(cues, match)) and "wechat" in near.around and _is_pinyin(value):
            yield Span(match.start(), end, "WECHAT", 0.7)


def _figured(normalized: NormalizedText) -> str:
    """The text, with Han digits that stand in a Latin word as digits: coco八八."""
    text = normalized.text
    return text if text.isascii() else _HAN_IN_WORD.sub(lambda m: normalized.digits[m.start() : m.end()], text)


def _beside(cues: Cues, match: re.Match[str]) -> bool:
    """Whether a word for adding somebody stands within a clause or two."""
    first = bisect_left(cues.starts, match.start() - 24)
    last = bisect_right(cues.starts, match.end() + 20)
    return any(cue.kind == "adding" for cue in cues.found[first:last])


@cache
def _syllables() -> re.Pattern[str]:
    """A word made of Chinese syllables in Latin letters, or of such with a little more."""
    starts = "b|p|m|f|d|t|n|l|g|k|h|j|q|x|zh|ch|sh|r|z|c|s|y|w"
    finals = (
        "iang|iong|uang|ang|eng|ing|ong|iao|ian|uai|uan|ai|ei|ao|ou|an|en|in|un|ia|ie|iu|ui|ua|uo|ue|er|a|o|e|i|u|v"
    )
    return re.compile(rf"(?:(?:{starts})(?:{finals})|a|ai|an|ao|e|er|en|ou){{2,8}}")


def _is_pinyin(value: str) -> bool:
    return _syllables().fullmatch(value) is not None


def _glued(text: str) -> list[Cue]:
    """Cues in Latin letters that stand at the id itself: `vxlin88`, 加vlin88, `wx_lin`."""
    if "v" not in text and "w" not in text:
        return []
    pattern = r"(?<![a-z])(?:v[. -]?x|w[. -]?x|wechat|weixin)(?=[a-z0-9])(?!id_)|(?<=[加+我薇➕个])v(?=[a-z0-9]{5})"
    return [Cue(m.start(), m.end(), "wechat") for m in re.finditer(pattern, text)]


def _behind(text: str, cue: Cue) -> Span | None:
    lead = _LEAD.match(text, cue.end)
    start = lead.end() if lead else cue.end
    while start > cue.end and re.match(r"[a-z0-9_-]", text[start - 1]):
        start -= 1  # a word of the lead that is the beginning of the id
    return _id(text, start)


def _id(text: str, start: int) -> Span | None:
    """The id at `start`: one piece, or pieces with single spaces while it is still too short."""
    first = _PIECE.match(text, start)
    if first is None:
        return None
    end = first.end()
    whole = first.group()
    while True:
        further = re.compile(r"(?:[ \n]|下划线|_ | _|杠)(?=[a-z0-9_-])").match(text, end)
        piece = _PIECE.match(text, further.end()) if further else None
        if further is None or piece is None:
            break
        joined = whole + ("_" if further.group() == "下划线" else "") + piece.group()
        short = len(whole) < 6
        if len(joined) > 20 or not (
            short or further.group() == "下划线" or piece.group().isdigit() or len(piece.group()) < 3
        ):
            break
        if not short and not _marked(piece.group()) and len(piece.group()) > 2:
            break
        whole, end = joined, piece.end()
    stripped = whole.rstrip("-_")
    if not 6 <= len(stripped) <= 20 or (
        not stripped[0].isalpha() and not (_marked(stripped) and not stripped.isdigit())
    ):
        return None
    if stripped in _NO_IDS or _QQ.fullmatch(stripped.replace(" ", "")) or (stripped.replace("-", "").isdigit()):
        return None
    return Span(start, end - (len(whole) - len(stripped)), "WECHAT", 0.93 if _marked(stripped) else 0.8)


def _marked(value: str) -> bool:
    return any(char.isdigit() or char == "_" for char in value)


def _before(text: str, cue: Cue) -> Span | None:
    """The id in front of its cue: "lin_8899是我微信", "lin8899（微信）"."""
    window = text[max(0, cue.start - 16) : cue.start]
    link = _BACK.search(window)
    if link is None or not link.group().strip(" ，,"):
        return None
    end = max(0, cue.start - 16) + link.start()
    start = end
    while start > 0 and re.match(r"[a-z0-9_-]", text[start - 1]) and end - start < 21:
        start -= 1
    value = text[start:end]
    if not 6 <= len(value) <= 20 or not value[0].isalpha() or value in _NO_IDS or value.isdigit():
        return None
    return Span(start, end, "WECHAT", 0.9 if _marked(value) else 0.7)
