"""Word borders that the segmenter misplaced, moved: 充电|器, 掉头|发, 揉面|团, 把|地|板擦, 看场|电影."""

from __future__ import annotations

from h2htalk.analysis import chinese_words as lists

# A part of the text: its characters, the parser's tag ("" where the part is no word of the parser's), and the place
# of its word in the doc.
Part = tuple[str, str, int]

FUNCTION_CHARACTERS = frozenset("的得地把将给被、")
_AFTER_PLACES = lists.FREE_VERBS | {"去", "来"}
_PLEASANT = frozenset("听看吃玩喝闻用")
# Verb with classifier, where the dictionary has the two as one word.
_VERB_AND_MEASURE = frozenset(
    f"{verb}{measure}"
    for verbs, measures in (
        ("喝泡倒沏买点", "杯壶瓶口碗"),
        ("看", "场部本集"),
        ("吃", "口顿碗"),
        ("读写", "本篇首"),
    )
    for verb in verbs
    for measure in measures
)
# First characters of a word whose second may belong to the next one.
_SPLIT_BEFORE = lists.FREE_VERBS | frozenset("老旧新大小热")


def rejoined(words: list[Part]) -> list[Part]:
    """The words with their borders moved; joined, they are the same text."""
    found: list[Part] = []
    for part in words:
        moved: Part | None = part
        if found and _placed(found, part[0]):
            found.append((part[0][0], "ADP", part[2]))
            moved = (part[0][1], "VERB", part[2])
        elif found:
            moved = _rest_of_long(found, part) if len(found[-1][0]) > 1 else _rest_of_short(found, part)
        if moved is not None:
            found.append(moved)
    return found


def _rest_of_long(found: list[Part], part: Part) -> Part | None:
    """What is left of a word behind a word of several characters; None where that one takes it all.

    Characters that belong to the word before are moved there, in `found`.
    """
    text, tag, token = part
    last, last_tag, last_token = found[-1]
    if len(text) == 1:
        if text == "感" and len(last) == 2 and last_tag in ("NOUN", "VERB", "ADJ", "KEPT"):
            found[-1] = (last + text, "KEPT", token)  # 掌控|感
            return None
        if last[0] == "地" and len(found) > 1 and _opens_way(found[-2][0], last, text):
            found[-1] = ("地", "PART", last_token)  # 更好|地面|对
            return last[1] + text, "VERB", token
    if len(last) == 2 and last[0] in lists.FREE_VERBS and _takes_measure(last, text):
        found[-1:] = [(last[0], "VERB", last_token), (last[1], "", last_token)]
        return part
    if len(text) == 1 and (last not in lists.KNOWN or (last in lists.TIMES and tag == "NOUN")):
        return _end_of_noun(found, part)
    return part


def _end_of_noun(found: list[Part], part: Part) -> Part | None:
    """A character that ends the noun before it (充电|器 gives None), or takes its last one (掉头|发 gives 头发)."""
    text, tag, token = part
    last, _, last_token = found[-1]
    if not _may_end_word(text, tag):
        return part
    if lists.is_noun(last + text):
        found[-1] = (last + text, "NOUN", token)
        return None
    if len(last) == 2 and last[0] != last[1] and last[0] in _SPLIT_BEFORE and lists.is_noun(last[1] + text):
        found[-1] = (last[0], "VERB" if last[0] in lists.FREE_VERBS else "ADJ", last_token)
        return last[1] + text, "NOUN", token
    return part


def _rest_of_short(found: list[Part], part: Part) -> Part | None:
    """The same behind a word of one character."""
    text, tag, token = part
    last, last_tag, last_token = found[-1]
    if (last == "好" and text in _PLEASANT) or last + text == "想念":
        found[-1] = (last + text, "ADJ" if last == "好" else "VERB", token)
        return None
    if text in ("口气", "一口气") and last in "喘松叹舒了":
        found += [(character, "NUM", token) for character in text[:-1]]
        return "气", "NOUN", token
    if len(text) != 2:
        return part
    if text[1] in lists.AUXILIARIES and last + text[0] in lists.TIMES:
        found[-1] = (last + text[0], "ADV", last_token)  # 有|时会
        return text[1], "AUX", token
    if tag == "NOUN" and last_tag in ("NOUN", "PART", "PROPN") and lists.is_noun(last + text):
        found[-1] = (last + text, "NOUN", token)
        return None
    if text[1] in lists.FREE_VERBS and len(found) > 1:
        if found[-2][0] in "把将" and lists.is_noun(last + text[0]):
            found[-1] = (last + text[0], "NOUN", token)
            return text[1], "VERB", token
    elif text[0] == last and last in lists.FREE_VERBS:
        return text[1], "NOUN", token
    return part


def _opens_way(before: str, last: str, text: str) -> bool:
    """Whether the 地 of an adverb was taken into the next word."""
    if len(last) != 2 or last[0] != "地" or len(text) != 1 or lists.word_class(last[1] + text) != "v":
        return False
    return len(before) > 1 and before not in lists.KNOWN and lists.word_class(before)[:1] != "n"


def _takes_measure(word: str, noun: str) -> bool:
    """Whether a word is a verb with its bare classifier, as the noun behind it tells: 看场|电影, 喝杯|咖啡."""
    if len(word) != 2 or word[0] not in lists.FREE_VERBS or word[1] not in lists.MEASURES:
        return False
    if noun[-1] in lists.COMPOUNDS.get(word[0], ""):
        return True
    return lists.is_noun(noun) and word in _VERB_AND_MEASURE


def _placed(before: list[Part], text: str) -> bool:
    """Whether 上 or 后 at the start of a word belongs to what stands before it: 在|操场|上弹, 下班|后去."""
    if len(text) != 2 or text[0] not in "上里中后前" or text[1] not in _AFTER_PLACES:
        return False
    if text[0] in "后前":
        return text in ("后去", "后来到", "前去") and before[-1][1] in ("NOUN", "VERB")
    return (
        len(before) > 1
        and any(part[0] in ("在", "往", "从") for part in before[-4:-1])
        and before[-1][1] == "NOUN"
    )


def _may_end_word(text: str, tag: str) -> bool:
    """Whether a single character can be the end of the noun before it; 学 can when the parser calls it a suffix."""
    if (
        text in FUNCTION_CHARACTERS
        or text in lists.ASPECTS
        or text in lists.PARTICLES
        or (text in lists.LOCALIZERS and text != "间")
    ):
        return False
    return tag == "PART" or text not in lists.FUNCTIONAL
