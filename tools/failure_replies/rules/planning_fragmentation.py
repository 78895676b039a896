"""Planning fragmentation: a reply that contradicts the companion's plan, or that is broken as a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from content_words import content_words
from known import Known, phrases

from h2htalk.data.languages import Language, find_language

DAY = 24 * 60  # minutes
_SENTENCE = re.compile(r"(?:[^.!?。！？;；\n]|(?<=[\dm])\.(?=\d|m))+")
_LINE = re.compile(r"(?<![\d:])(\d{1,2})[:：](\d\d)(?:\s*(?:-|–|—|~|to|until|至|到)\s*(\d{1,2})[:：](\d\d))?")
_HOURS = ("one two three four five six seven eight nine ten eleven twelve", "一 二 三 四 五 六 七 八 九 十 十一 十二")
_NUMBERS = {name: number for names in _HOURS for number, name in enumerate(names.split(), 1)}
_NUMBERS |= {"两": 2, "noon": 12, "midday": 12, "midnight": 0}
_MINUTES = {"half past": 30, "half": 30, "quarter past": 15, "quarter to": -15, "半": 30, "一刻": 15, "三刻": 45}
# An activity of the schedule with its start and end, in minutes after midnight.
_Slot = tuple[int, int, str]


def planning_fragmentation(reply: str, known: Known, language: Language) -> bool:
    """Whether a reply contradicts the schedule, or is no plan where one was asked for, or a broken one."""
    if known.request and len(_times(reply, language)) < 2:
        return True
    starts = [60 * int(entry.time[:2]) + int(entry.time[3:]) for entry in known.schedule]
    slots = [(*span, entry.activity) for span, entry in zip(pairwise([*starts, DAY]), known.schedule, strict=True)]
    # The block that a request is to split: from the first entry whose time it names to the last.
    asked = {time for _, times in _times(known.request, language) for time in times}
    named = [slot for slot in slots if slot[0] in asked]
    lines = [found for line in reply.splitlines() if (found := _LINE.search(line))]
    if len(lines) > 1 and _broken(lines, (named[0][0], max(named[0][1], named[-1][0])) if named else (0, DAY)):
        return True
    # The schedule says nothing about what a block holds when it is split.
    return not named and _contradicts(reply, slots, known.current_activity, language)


def _broken(lines: Sequence[re.Match[str]], block: tuple[int, int]) -> bool:
    """Whether the times of a plan run backwards, overlap, or leave the block that was to be split."""
    first, before = -1, block[0]
    for line in lines:
        hour, minute, end_hour, end_minute = (int(group or 0) for group in line.groups())
        start = 60 * hour + minute
        end = 60 * end_hour + end_minute if line[3] else start
        if start <= first or not before <= start <= end <= block[1]:
            return True
        first, before = start, end
    return False


def _contradicts(reply: str, slots: Sequence[_Slot], current: str, language: Language) -> bool:
    """Whether a reply puts an activity at the time of another one, or says that another one than the current goes on.

    A time and an activity belong together where they stand in one sentence, up to the next time.
    """
    said = phrases(language)
    for sentence in _SENTENCE.findall(reply):
        # One content word alone is no activity: "at nine, promise". A line of a plan begins with its time.
        own = said["own"].search(sentence) or _LINE.match(sentence.strip())
        found = _times(sentence, language)
        for number, ((_, times), (end, _)) in enumerate(pairwise([*found, (len(sentence), frozenset[int]())])):
            part = sentence[found[number][0] if number else 0 : end]
            then = [slot for slot in slots if any(slot[0] <= time < slot[1] for time in times)]
            if then and _unrelated(part, " ".join(slot[2] for slot in then), language):
                words = content_words(part, language)
                if any(words & content_words(slot[2], language) for slot in slots if slot not in then):
                    return True
                begins = any(slot[0] in times and not said["free"].search(slot[2]) for slot in then)
                if own and begins and len(words) > 1:
                    return True
        now = current and not found and said["now"].search(sentence)
        if now and len(content_words(sentence, language)) > 1 and _unrelated(sentence, current, language):
            return True
    return False


def _unrelated(text: str, activity: str, language: Language) -> bool:
    """Whether a text has content, but no content word of an activity; without spaces, no character of one."""
    own, others = content_words(text, language), content_words(activity, language)
    if not find_language(language).spaced:
        return bool(own) and set("".join(own)).isdisjoint("".join(others))
    return bool(own) and own.isdisjoint(others)


def _times(text: str, language: Language) -> list[tuple[int, frozenset[int]]]:
    """The times in a text: where each begins, and its minutes after midnight; both where half of the day is open."""
    found = []
    for match in phrases(language)["time"].finditer(text):
        part = {name.split("_")[0]: value.lower() for name, value in match.groupdict().items() if value}
        hour, minute, half = part["hour"], part.get("minute", part.get("before", "0")), part.get("half", "")
        time = 60 * (_NUMBERS[hour] if hour in _NUMBERS else int(hour)) + (_MINUTES.get(minute) or int(minute))
        if half and phrases(language)["late"].search(half):
            times = {time % (DAY // 2) + DAY // 2}
        elif half or time >= DAY // 2 + 60 or hour[0] == "0":
            times = {time % DAY}
        else:
            times = {time % DAY, (time + DAY // 2) % DAY}
        found.append((match.start(), frozenset(times)))
    return found
