"""Employers and schools without a word that says what they are: 在…上班, 入职…."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from h2htalk.curation.pii.chinese_address_parts import divisions
from h2htalk.curation.pii.chinese_dictionary import tags, usual
from h2htalk.curation.pii.chinese_organization_words import (
    BRANCH,
    context_of,
    ends_name,
    only_generic,
    suffixes,
)
from h2htalk.curation.pii.chinese_segments import Segment
from h2htalk.curation.pii.chinese_words import words

_LONGEST_BARE = 8  # characters of a name that no suffix ends
_BARE_BEFORE = re.compile(
    r"(?:入职|跳槽到|跳槽去|就职于|供职于|任职于|毕业于|就读于|待过|公司叫|学校叫|单位叫|店叫|应聘了?|加入了?|面试了?|(?<![现实存内自潜所正好还就都])在|报了|从)"
)
_BARE_AFTER = re.compile(
    r"(?:上班|工作|实习|打工|任职|兼职|当[^时然初天晚年]|做[^梦]|干了|读[书大高初研博]|念书|上学|住院|裁员|裁了|倒闭|的?offer|的HR|的hr|辞职|离职|的(?:司机|员工|同事|客户经理|导游|护士))"
)


def unsuffixed(text: str, read: Sequence[Segment]) -> Iterator[tuple[int, int, float]]:
    """A name without a suffix between 在 and 上班."""
    starts = {segment.start: segment for segment in read}
    for hit in _BARE_BEFORE.finditer(text):
        at = hit.end()
        strange = 0
        while at - hit.end() < _LONGEST_BARE and at in starts:
            segment = starts[at]
            word = text[segment.start : segment.end]
            tag = tags().get(word, "")
            if (at > hit.end() and _BARE_AFTER.match(text, at)) or word in ends_name() or not word.isalnum():
                break
            if tag in _BARE_ENDS or (segment.shape in ("full", "title") and segment.cue >= 2):
                break
            if word in _INNER or (len(word) > 1 and tag in ("v", "a", "d") and usual(word)):
                strange = -9
            strange += len(word) == 1 or tag in ("nz", "nt", "nr", "nrt", "")
            at = segment.end
        unusual = strange > 0
        core = text[hit.end() : at]
        sure = hit.group() in _SURE and (
            at == len(text) or not "\u4e00" <= text[at] <= "\u9fff" or text[at] in "的了"
        )
        closed = _BARE_AFTER.match(text, at) is not None
        if unusual and len(core) > 1 and (closed or sure) and not only_generic(core) and not _place(core):
            yield hit.end(), at, 0.65
    for hit in _brands().finditer(text):
        branch = BRANCH.match(text, hit.end())
        if hit.lastgroup or branch or context_of(text, hit.start(), hit.end()) > 2:
            yield hit.start(), branch.end() if branch else hit.end(), 0.6


# No employer is called by what a time or a place inside something ends with.
_INNER = frozenset("中里上下前后外内间时着过边处面个些们天年月号")
_BARE_ENDS = frozenset({"m", "t", "q", "f", "s", "r", "p", "c", "u", "uj", "ul", "y", "e", "o"})


@cache
def _brands() -> re.Pattern[str]:
    found = words("organizations", "brands", "words")
    listed = "|".join(sorted(found, key=lambda word: (-len(word), word)))
    return re.compile(f"(?P<bureau>中[铁建交水电][一二三四五六七八九十0-9]{{1,3}}局)|{listed}")


_SURE = frozenset(
    {"入职", "跳槽到", "跳槽去", "就职于", "供职于", "任职于", "待过", "公司叫", "店叫", "面试了", "应聘"}
)


def _place(core: str) -> bool:
    if any(core.endswith(word) for word in suffixes()):
        return True
    return core in divisions() or tags().get(core) in ("ns", "s", "t", "n", "f", "v", "m")
