"""Organisations in English by the words before: "at Crumb Theory", "our bakery, X", "hired by NovaTech"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from h2htalk.curation.anonymize.english.token_features import CAPITAL, INITIAL, LOWER, UPPER, Tokens
from h2htalk.curation.anonymize.english.word_lists import COMMON, folded, hint, is_word, words

_WORD = r"[A-Z][\w'’.&-]{0,24}(?<![.,'’-])"
_NAME = (
    rf"(?:(?:The|the) )?{_WORD}(?:(?: (?:of|for|on|de|la|by) (?:the )?| (?:and|n|&|the) | )(?:{_WORD}"
    rf"|\d{{1,3}}(?!\d))){{0,5}}"
    r"(?: (?:Assoc|Inc|Co|Ltd|Corp|Bros|Univ|Dept)\b\.?)?"
)
_KIND = (
    "bakery|shelter|company|firm|startup|start-up|band|choir|church|school|college|uni|university"
    "|hospital|clinic|practice|ward|hospice|gym|studio"
    "|salon|shop|store|restaurant|cafe|café|diner|pub|bar|charity|nonprofit|non-profit|agency|club"
    "|league|team|society|nursery|daycare|preschool"
    "|kindergarten|factory|plant|mill|mine|warehouse|farm|garage|dealership|hotel|motel|care home"
    "|nursing home|rest home|group home|foster agency"
    "|temple|mosque|synagogue|parish|ministry|fellowship|lab|theatre|theater|gallery|museum|library"
    "|bookshop|bookstore|pharmacy|chemist|surgery"
    "|funeral place|funeral home|funeral parlour|parlour|place|outfit|union|local|chapter|lodge|troop"
    "|program|programme|rehab|retreat|academy|camp"
    "|paper|magazine|station|label|network|office|business|employer|workplace|bank|landlord|housing "
    "association|food bank|food truck|pantry|co-op|coop|orchestra"
)
_CALLED = re.compile(
    rf"\b(?:[Mm]y|[Oo]ur|[Tt]he|[Aa]n?|[Tt]his|[Hh]er|[Hh]is|[Tt]heir)(?: [a-z][\w'’-]{{0,14}}){{0,3}}? "
    rf"(?:{_KIND})s?"
    rf"(?P<gap>, | \(| - | – | — |: | is called | was called | called | named | is named | "
    rf")(?P<name>{_NAME})(?P<end>['’]s\b)?(?=[\s,.)!?;:\"]|$)"
)
_WORK = (
    r"work|works|worked|working|job|gig|shift|shifts|intern|interns|interned|interning|internship"
    r"|placement|volunteer|volunteers|volunteered|volunteering"
    r"|nurse|nursing|teach|teaches|teaching|taught|ta|study|studies|studied|studying|enrolled|enrol"
    r"|enroll|hired|fired|sacked|interview|interviewed|interviewing|offer"
    r"|rejected|rejection|transferred|transfer|apprentice|apprenticeship|temp|temping|cashier|barista"
    r"|manager|janitor|cleaner|receptionist|waitress|waiter|server|cook|chef|line"
    r"|member|counsellor|counselor|therapist|gp|doctor|dentist|vet|admitted|discharged|inpatient"
    r"|outpatient|treated|ward|list|appointment|group|mass|class|classes"
    r"|lessons|rehab|detox|sober|signed|sign|start|started|starting|graduated|graduate|dropout|dropped"
    r"|expelled|suspended|kicked|accepted|nights|nightshift|nails|hair|shelves|sing|play|plays|train|trains"
    r"|coach|coaches|pray|worship|donate|donated|contract|contracted|freelance|consult|accountant"
    r"|lawyer|paralegal|secretary|supervisor|foreman|driver|drive|drives|deliver|delivers|security"
    r"|guard|warehouse|stocking|stock|cashiering|dishes|bartend|bartends|bartending|served|scholarship"
    r"|degree|phd|masters|residency|professor|principal|freshman|sophomore|semester"
)
_AT = re.compile(
    rf"\b(?P<work>{_WORK})\b(?P<between>(?: [a-z0-9][\w'’-]{{0,14}}){{0,6}}?) (?:at|for|with|from|by"
    rf"|w/?|into|under) (?P<name>{_NAME})"
)
_GOT_INTO = re.compile(
    rf"\b(?:got|get|gets|getting|accepted|admitted|signed) (?:back )?(?:into|in to|on w|on with|w|with"
    rf"|to) (?P<name>{_NAME})"
)
_LEFT = re.compile(
    rf"\b(?:quit|left|joined|joining|leaving|sued|suing|founded|run|runs|own|owns|opened|manage"
    rf"|manages) (?P<name>{_NAME})"
)
_AT_ALONE = re.compile(rf"(?P<before>[A-Za-z'’]+)[,]? at (?P<name>{_NAME})")
_ANSWER = re.compile(
    r"(?i:where do (?:you|u) work|who do (?:you|u) work for|which (?:school|company"
    r"|hospital))[?\"”' :,]{1,6}(?P<name>[A-Za-z][\w'’-]{2,24}(?: [A-Z][\w'’-]{1,24}){0,3})(?=[.,!?\"”]|$)"
)
_AIMED_WORDS = (
    "mad angry yell yells yelled yelling scream screams screamed screaming look looks looked looking "
    "laugh laughs laughed laughing shout shouted shouting snap snapped snaps smile smiled stare stared staring"
    " lash lashed pissed furious annoyed upset good bad great terrible back swear swore out glare "
    "glared wave waved throw threw hurt disappointed disgusted point pointed not"
)
_AIMED = frozenset(_AIMED_WORDS.split())
_LETTERS_WORDS = (
    "mit nyu ucla usc lse ucl kcl asu fsu lsu uiuc unc ucsd ucsb uva ut byu smu bu bc tcu uic suny cuny "
    "rmit nus ntu uct hku ubc eth"
)
_LETTERS = frozenset(_LETTERS_WORDS.split())
_SITES_WORDS = (
    "youtube tiktok linkedin whatsapp playstation facetime onlyfans chatgpt paypal github okcupid "
    "facebook instagram twitter reddit snapchat tinder hinge netflix google amazon discord zoom "
    "tumblr pinterest imessage messenger telegram english math maths spanish french german gcse alevels "
    "covid adhd ptsd ocd bpd cbt dbt iphone tv aa na er icu hr it cv xmas uk us usa nhs ok la nyc dc"
)
_SITES = frozenset(_SITES_WORDS.split())


def cued_organizations(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each, in no order; they may overlap."""
    for hit in _CALLED.finditer(text):
        bare = hit["gap"] == " "
        if bare and (hit[0][:2].lower() in ("a ", "an", "th") or " " not in hit["name"]):
            continue
        if _named(hit["name"], loose=hit["gap"].strip() in ("", ",", "(", "-", "–", "—", ":")):
            yield hit.start("name"), hit.end("end") if hit["end"] else hit.end("name"), 0.65
    for pattern in (_AT, _GOT_INTO):
        for hit in pattern.finditer(text):
            if _named(hit["name"], loose=True):
                yield hit.start("name"), hit.end("name"), 0.6
    for hit in _LEFT.finditer(text):
        parts = [part.lower().strip(".") for part in hit["name"].split()]
        if (
            len(parts) > 1
            and (parts[-1] in org_words()["suffix"] or " of " in hit["name"])
            and _named(hit["name"], True)
        ):
            yield hit.start("name"), hit.end("name"), 0.6
    for hit in _AT_ALONE.finditer(text):
        told = len(hit["name"].split()) > 1 or not is_word(hit["name"].lower())
        if hit["before"].lower() not in _AIMED and told and _named(hit["name"], loose=True):
            yield hit.start("name"), hit.end("name"), 0.55
    for hit in _ANSWER.finditer(text):
        if _named(hit["name"].title(), loose=True):
            yield hit.start("name"), hit.end("name"), 0.6


def _named(name: str, loose: bool) -> bool:
    """Whether words in capitals can be an organisation's: no person's, no town's, no day's, no site's."""
    lists = words()
    parts = [part.lower().replace("'s", "").replace("’s", "").strip(".") for part in name.split()]
    if parts[0] == "the":
        parts = parts[1:]
    if not parts or parts[0] in hint("not_names") or parts[0] in _SITES or parts[0] in lists.hints["kin"]:
        return False
    inner = [part for part in parts if part not in ("of", "the", "and", "&", "for", "n", "on")]
    if inner[-1] in org_words()["suffix"] and len(inner) > 1:
        return True
    if all(part in lists.hints["places"] or part in ("new", "north", "south", "east", "west") for part in inner):
        return False
    if parts[0] in lists.hints["titles"] or parts[0] in hint("months"):
        return False
    person = lists.given.get(inner[0], 0) >= COMMON or (lists.given.get(inner[0], 0) > 0 and len(inner) == 1)
    if (
        person
        and (len(inner) == 1 or (len(inner) == 2 and not is_word(inner[1])))
        and "'" not in name
        and "’" not in name
    ):
        return False
    if inner[0] in _LETTERS and name.isupper():
        return True
    if len(inner) == 1 and name.isupper() and len(name) < 5:
        return False
    return not (len(inner) == 1 and loose and (is_word(inner[0]) or inner[0] in hint("stop")))


# "Morton, Hale & Dunn": surnames, the last after "&".
_PARTNERS = re.compile(r", [A-Z][\w'’-]{1,20}(?:, [A-Z][\w'’-]{1,20}){0,3},? & [A-Z][\w'’-]{1,20}")


def by_sentence(tokens: Tokens, index: int) -> tuple[int, int, float] | None:
    """A name because the sentence says so: "work at X", "my company, X"."""
    lists = org_words()
    word = tokens.words[index]
    first = index + 1
    if first < len(tokens) and tokens.words[first] == "the" and tokens.spaced[first]:
        first += 1
    if first >= len(tokens) or tokens.blocked[first] or tokens.opens[first]:
        return None
    gap = tokens.text[tokens.ends[index] : tokens.starts[index + 1]]
    if word in PLACE:
        if gap != " " or not (_is_work(tokens, index) or tokens.word(index - 1) in lists["suffix"]):
            return None
    elif not _announced(tokens, index, gap):
        return None
    if word in ("called", "named") and tokens.word(index - 1) in lists["called"] and is_capital(tokens, first):
        return index + 1, last_word(tokens, first) + 1, PLACED
    if word in ("called", "named") and tokens.word(index - 2) not in lists["called"]:
        return None
    if not is_capital(tokens, first):
        return _lower_case_employer(tokens, index, first) if word in STRICT and first == index + 1 else None
    return _named_employer(tokens, index, first)


def _announced(tokens: Tokens, index: int, gap: str) -> bool:
    """ "quit X", "joined X"; "my company, X": an owner before, a comma or "is" between."""
    word = tokens.words[index]
    if word in ("quit", "joined", "attend", "attends", "attended", "attending"):
        return gap == " "
    owned = tokens.word(index - 1) in ("my", "our", "her", "his", "their", "old") or tokens.possessive[index - 1]
    return word != "left" and gap in (", ", " - ", ": ") and owned


def _is_work(tokens: Tokens, index: int) -> bool:
    """Whether up to six words before "at" or "for" in the sentence speak of work, study or care."""
    work = org_words()["work"]
    allowed = 8 if tokens.words[index] in STRICT else 2
    for back in range(index - 1, max(-1, index - 1 - allowed), -1):
        if tokens.words[back] in work:
            return True
        if tokens.opens[back]:
            return False
    return False


def _named_employer(tokens: Tokens, index: int, first: int) -> tuple[int, int, float] | None:
    lists, general = org_words(), words()
    end = last_word(tokens, first) + 1
    # "Morton, Hale & Dunn": a list of surnames closed by "&".
    tail = _PARTNERS.match(tokens.text, tokens.ends[end - 1])
    while tail and end < len(tokens) and tokens.starts[end] < tail.end():
        end += 1
    inner = tokens.words[first:end]
    where = tokens.words[index]
    if len(inner) == 1:
        word = inner[0]
        if tokens.shapes[first] == UPPER and len(word) < 6 and where != "at":
            return None
        if (
            word in hint("not_names")
            or word in general.hints["places"]
            or word in general.hints["titles"]
            or word in lists["generic"]
        ):
            return None
        if general.given.get(word) == COMMON or (word in general.words and where not in STRICT):
            return None
        if where in ("of", "by", "in", "to", "into", "with", "as", "off", "called", "named"):
            return None
    elif all(word in general.hints["places"] or word in ("new", "of", "the") for word in inner) or (
        inner[0] in general.hints["titles"]
        or (general.given.get(inner[0]) == COMMON and len(inner) == 2 and inner[1] in general.surnames)
    ):
        return None
    moved = tokens.word(index - 1) in (
        "transferred",
        "transfer",
        "accepted",
        "applied",
        "got",
        "apply",
        "commute",
    )
    if (
        where in ("in", "to", "into", "of", "by", "with", "as", "off")
        and not set(inner) & lists["suffix"]
        and not moved
    ):
        return None
    return first, end, PLACED


def _lower_case_employer(tokens: Tokens, index: int, first: int) -> tuple[int, int, float] | None:
    """ "i work at mcallister tires": up to three words in lower case, one of them in no list of English words."""
    general = words()
    if tokens.word(index - 1) not in hint("at_work"):
        return None
    end = first
    while end < min(first + 3, len(tokens)) and (end == first or tokens.spaced[end]):
        word = tokens.words[end]
        if (
            word in PLACE | hint("not_names")
            or (word in org_words()["generic"] and end == first)
            or tokens.shapes[end] != LOWER
        ):
            break
        if word in hint("after_employer"):
            break
        end += 1
    strange = [
        w
        for w in tokens.words[first:end]
        if (not is_word(w) or w in hint("makes")) and len(w) > 3 and w not in general.given and w not in hint("counts")
    ]
    if end - first == 1 and tokens.words[first].endswith("s") and tokens.words[index] == "for":
        return None
    last = max(
        (p for p in range(first, end) if tokens.words[p] in strange or tokens.words[p] in org_words()["suffix"]),
        default=-1,
    )
    return (first, last + 1, PLACED) if strange else None


_FILE = Path(__file__).parent / "words" / "organization_words.toml"
NAMED, PLACED = 0.8, 0.65  # by its own words, by the sentence
LONGEST = 6  # words of a name on either side of its kind
PLACE = frozenset(("at", "for", "from", "with", "of", "by", "in", "to", "into", "called", "named", "off", "as"))
STRICT = frozenset(("at", "for"))


@cache
def org_words() -> dict[str, frozenset[str]]:
    with _FILE.open("rb") as file:
        return {key: frozenset(folded(w) for w in value.split()) for key, value in tomllib.load(file).items()}


def joined(tokens: Tokens, index: int) -> bool:
    """Whether a word and the one before it can stand in one name."""
    if index >= len(tokens) or index < 1 or tokens.blocked[index]:
        return False
    gap = tokens.text[tokens.ends[index - 1] : tokens.starts[index]]
    if tokens.possessive[index - 1]:
        gap = gap[2:]
    return gap in (" ", " & ", "&", "-") or (gap == ". " and tokens.words[index - 1] == "st")


def is_part(tokens: Tokens, index: int) -> bool:
    """Whether a word can be inside a name: capitalised, or a small word between such."""
    word = tokens.words[index]
    if tokens.blocked[index]:
        return False
    if is_capital(tokens, index):
        return word not in hint("not_names")
    return word in ("of", "and", "st") and index > 0 and is_capital(tokens, index - 1) and joined(tokens, index)


def is_capital(tokens: Tokens, index: int) -> bool:
    return 0 <= index < len(tokens) and tokens.shapes[index] in (CAPITAL, UPPER, INITIAL) and tokens.words[index] != "i"


def last_word(tokens: Tokens, index: int) -> int:
    """The last word of the name whose word at `index` is surely in it."""
    last = index
    while last - index < LONGEST and last + 1 < len(tokens):
        after = last + 1
        if joined(tokens, after) and is_capital(tokens, after) and tokens.words[after] not in hint("not_names"):
            last = after
        elif (
            tokens.words[after] in ("of", "and", "de", "the")
            and tokens.spaced[after]
            and is_capital(tokens, after + 1)
            and joined(tokens, after + 1)
            and tokens.words[after + 1] not in hint("not_names")
            and (tokens.words[after] == "of" or tokens.words[after + 1] in org_words()["suffix"])
        ):
            last = after + 1
        elif (further := _of_the(tokens, last)) > last:
            last = further
        else:
            break
    return last


def _of_the(tokens: Tokens, last: int) -> int:
    """The word in capitals after "of the", after "for" behind a kind: Institute for Coastal Studies."""
    small = tokens.word(last + 1)
    kind = tokens.words[last] in org_words()["suffix"] | hint("fronted")
    if small not in ("of", "for", "on") or (small != "of" and not kind) or not tokens.spaced[last + 1]:
        return last
    at = last + 3 if tokens.word(last + 2) == "the" else last + 2
    if at >= len(tokens) or not is_capital(tokens, at) or not joined(tokens, at) or not tokens.spaced[at - 1]:
        return last
    return at if tokens.words[at] not in hint("not_names") else last
