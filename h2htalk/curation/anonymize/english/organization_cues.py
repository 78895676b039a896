"""Organisations in English by the words before: "at Crumb Theory", "our bakery, X", "hired by NovaTech"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.curation.anonymize.english.organization_parts import org_words
from h2htalk.curation.anonymize.english.word_lists import COMMON, hint, is_word, words

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
    if all(
        part in lists.hints["places"] or part in ("new", "north", "south", "east", "west") for part in inner
    ):
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
