"""WeChat ids, which are letters and digits beside a cue, or `wxid_`. Ids of digits alone: `identities`."""

from __future__ import annotations

import re

from h2htalk.curation.pii.cues import Cue, Cues
from h2htalk.curation.pii.normalize import Reading
from h2htalk.curation.pii.places import Places
from h2htalk.curation.pii.spans import Span

_WXID = re.compile(r"wxid_[a-z0-9_-]{6,30}")
_PIECE = re.compile(r"[a-z0-9_-]+")
# Between a cue and its id: marks, and the few words that lead there.
_LEAD = re.compile(
    r"(?:[\s:,.!?~<>\[\]()\"'=+。❤-]|号码?|是|就是|为|叫|id|账号|帐号|搜索?|加|直接|可以|一下|这个|我的?|换成?了?|现在|新的?|改成?|吧|呗|哈|嘛|啊|呀|咯|的|名|上|"
    r"你|也|备注|先|有|了|吗|信|芯|❤|呢|哦|给你|发你|is|my|it'?s|add|me|on|名字|联系|就行|请|小号|大号|常用|找|聊|at|the|was|here|name|handle|user){0,14}"
)
_BACK = re.compile(
    r"[\s,，\"')\]】]{0,3}(?:[(\[<]|(?:这|那)?(?:个|串)?(?:也|就|才)?(?:是|为)(?:我|他|她|你|咱)?(?:们|妈|爸|姐|哥)?的?"
    r"|is my |那?是?)\s?$"
)
_NO_IDS = frozenset(
    [
        "iphone",
        "ipad",
        "android",
        "windows",
        "online",
        "offline",
        "please",
        "thanks",
        "hello",
        "wechat",
        "weixin",
        "whatsapp",
        "facebook",
        "twitter",
        "instagram",
        "telegram",
        "group",
        "moments",
        "video",
        "message",
        "password",
        "google",
        "number",
        "account",
        "friend",
        "friends",
        "because",
        "everyone",
        "something",
        "anything",
        "nothing",
        "github",
        "emoji",
        "qqmail",
        "vxwx",
        "official",
        "request",
        "before",
        "instead",
        "really",
        "should",
    ]
)


def wechat_spans(reading: Reading, cues: Cues, taken: Places) -> list[Span]:
    """Spans (places of the reading) of WeChat ids that hold a letter, outside of what is taken, which they join."""
    text = reading.text
    found = (
        taken.keep(Span(*m.span(), "WECHAT", 0.98) for m in _WXID.finditer(text)) if "wxid" in text else []
    )
    for cue in [*cues.found, *_glued(text)]:
        if cue.kind == "wechat":
            span = _behind(text, cue) or _before(text, cue)
            if span is not None:
                found += taken.keep([span])
    return found


def _glued(text: str) -> list[Cue]:
    """Cues in Latin letters that stand at the id itself: `vxlin88`, 加vlin88, `wx_lin`."""
    if "v" not in text and "wx" not in text:
        return []
    pattern = r"(?<![a-z])(?:vx|wx|wechat|weixin)(?=[a-z0-9])(?!id_)|(?<=[加+我薇➕个])v(?=[a-z0-9]{5})"
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
    if stripped in _NO_IDS or (stripped.replace("-", "").isdigit()):
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
