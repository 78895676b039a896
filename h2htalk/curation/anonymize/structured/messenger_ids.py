"""WeChat ids, which are letters and digits beside a cue, or `wxid_`. Ids of digits alone: `identity_numbers`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured.number_cues import Cue, Cues
from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns

_RE = patterns("messenger_ids")
_ELSEWHERE = frozenset(["other", "account", "plate"])
_SHORTEST, _LONGEST = 6, 20


def wechat_spans(normalized: NormalizedText, cues: Cues, taken: TakenCharacters) -> list[Span]:
    """Spans (places of the reading) of WeChat ids that hold a letter, outside of what is taken, which they join."""
    text = normalized.text
    if not text.isascii():  # Han digits in a Latin word are digits: coco八八
        text = _RE["han_digits"].sub(lambda m: normalized.digits[m.start() : m.end()], text)
    spans = taken.keep(Span(*m.span(), "WECHAT", 0.98) for m in _RE["wxid"].finditer(text))
    glued = [cue.end() for cue in _RE["glued"].finditer(text)]
    ends = [*(cue.end for cue in cues.found if cue.kind == "wechat"), *glued]
    spans += taken.keep(span for end in ends for span in _behind(text, end))
    return spans + taken.keep(_about(text, cues))


def _about(text: str, cues: Cues) -> Iterator[Span]:
    """Ids in a message that speaks of WeChat, or of adding somebody, wherever the cue stands."""
    adding = [cue for cue in cues.found if cue.kind == "adding"]
    if not adding and not any(cue.kind == "wechat" for cue in cues.found):
        return
    for match in _RE["token"].finditer(text):
        value, end = match.group(), match.end()
        more = _RE["spaced_figures"].match(text, end) if value.isalpha() else None
        if more and len(value) + len(more.group()) > _SHORTEST:
            value, end = value + more.group()[1:], more.end()
        if not _may_be_id(value):
            continue
        near = cues.near(*match.span())
        if near.nearest in _ELSEWHERE:
            continue
        direct = near.distance("wechat") is not None
        if not _is_marked(value) and "-" not in value:
            said = direct or _stands_beside(adding, match.start(), match.end())
            if said and "wechat" in near.around and _RE["pinyin"].fullmatch(value):
                yield Span(match.start(), end, "WECHAT", 0.7)
        elif direct or "wechat" in near.around:
            yield Span(match.start(), end, "WECHAT", 0.85 if direct else 0.75)
        elif near.nearest in ("", "phone", "url", "qq") and _stands_beside(adding, match.start(), match.end()):
            yield Span(match.start(), end, "WECHAT", 0.65)


def _may_be_id(value: str) -> bool:
    return (
        _SHORTEST <= len(value) <= _LONGEST
        and value not in internet_words("no_wechat")
        and not _RE["no_id"].match(value)
        and any("a" <= char <= "z" for char in value)
    )


def _is_marked(value: str) -> bool:
    """Whether a figure or an underscore says that it is no word."""
    return any(char.isdigit() or char == "_" for char in value)


def _stands_beside(adding: list[Cue], start: int, end: int) -> bool:
    """Whether a word for adding somebody stands within a clause or two."""
    starts = [cue.start for cue in adding]
    return bisect_left(starts, start - 24) < bisect_right(starts, end + 20)


def _behind(text: str, cue_end: int) -> Iterator[Span]:
    """The id behind a cue."""
    lead = _RE["lead"].match(text, cue_end)
    start = lead.end() if lead else cue_end
    while start > cue_end and _RE["piece"].match(text[start - 1]):
        start -= 1  # a word of the lead that is the beginning of the id
    piece = _RE["piece"].match(text, start)
    whole, end = "", start
    while piece:
        added = piece.group()
        short = len(whole) < _SHORTEST
        if whole and (len(whole) + len(added) > _LONGEST or not (short or added.isdigit() or len(added) < 3)):
            break
        whole, end = whole + added, piece.end()
        further = _RE["further"].match(text, end)
        piece = _RE["piece"].match(text, further.end()) if further else None
    value = whole.rstrip("-_")
    lettered = value[:1].isalpha() or (_is_marked(value) and not value.isdigit())
    is_qq = value.startswith("qq") and value[2:].isdigit()
    if _SHORTEST <= len(value) <= _LONGEST and lettered and not is_qq and value not in internet_words("no_wechat"):
        yield Span(start, end - (len(whole) - len(value)), "WECHAT", 0.93 if _is_marked(value) else 0.8)
