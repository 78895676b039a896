"""Check the bundled splits: `python tools/check_bundled.py [--fast] [FOLDER]`.

Prints the figure of every rule and exits with 1 when one is broken. `--fast` leaves out what takes longer: the gates of
`release check` and `datasets.load_dataset`. FOLDER: another folder of splits than the package's.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bundled_cards import says_who_has_read_it, stale
from bundled_points import (
    PATTERNS,
    RULES,
    Rule,
    arm_shares,
    further_help,
    gaps,
    inventions,
    requests_to_forget,
    severities,
)

from h2htalk.benchmark.studies.points.phone_numbers import phone_numbers
from h2htalk.data.case import Case
from h2htalk.data.scenario import Scenario, ScheduleEntry
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import BUNDLED_FOLDER, Split, load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts.memory_blocks import is_null_memory
from h2htalk.text.contracts.split_check import check_split
from h2htalk.text.counting import language_units

SETS = ("mini", "high_risk", "instructions", "arcs")
# The fingerprints of earlier versions, which are kept because figures on them may have been published.
EDITIONS = {
    "mini@1": "ce528403ed5d78b4",
    "mini@3": "eeb40c3a2766fb50",
    "high_risk@2": "1a62339eef816f80",
    "instructions@2": "f393e60d047a2349",
    "arcs@2": "0b2add154fa4665b",
}
QUOTAS = RULES["quotas"]
NEW_KINDS = RULES["new_kinds"]
PAPER_CASES = 33  # of the paper's study of safety, with 150 turns
MOST_ALIKE, MOST_OPENINGS = 0.5, 3
# From these versions on a set keeps the rules of points, register and lives.
REVISED = {"mini": 3, "high_risk": 2, "instructions": 2, "arcs": 2}
MOST_PROPS = 0.03  # of the items of a set, that a user's own life holds a companion's prop
SHORT, MOST_ASSENT = (
    {"en": 5, "zh": 8},
    0.5,
)  # words or characters of a short turn; of these, how many merely agree
LEAST_SHORT = 0.15
# Whose bad behaviour is that something is left out.
_OMISSIONS = ("refuse", "dismiss", "change_subject")


@dataclass(frozen=True)
class Text:
    """A text of an item that others of its group must not resemble."""

    where: str
    group: str
    language: str
    text: str


def check(folder: Path, fast: bool = False) -> Iterator[Rule]:
    """Yield every rule over the splits of a folder."""
    errors = [error for name in SETS for error in check_split(str(folder / name))[1]]
    yield Rule("records, ids, personas, contracts of references", f"{len(errors)} errors", errors)
    if errors:
        return
    splits = {name: load_split(folder / name) for name in SETS}
    revised = {name: split for name, split in splits.items() if int(split.version) >= REVISED[name]}
    for kind in ("inputs", "references"):
        yield _alike(kind, [text for split in splits.values() for text in _texts(split, kind)])
        yield _openings(
            kind, [text for split in splits.values() for text in _texts(split, kind, chats=True)]
        )
    for rule in (
        _points,
        trivial,
        _register,
        _lives,
        severities,
        inventions,
        requests_to_forget,
        gaps,
    ):
        yield from rule(revised)
    for rule in (
        further_help,
        _answers_to_references,
        _answers_to_choices,
        _fragments,
        _floor,
    ):
        yield from rule(revised)
    for rule in (_quotations, _numbers, _files(folder), _mini, _high_risk, _instructions, _arcs):
        yield from rule(splits)
    yield from _editions(folder, splits)
    if not fast:
        yield from (_gates(folder / name) for name in SETS)
        yield from (_datasets(splits[name]) for name in SETS)


def _texts(split: Split, kind: str, chats: bool = False) -> Iterator[Text]:
    """The inputs or references of a split; with `chats` those alone that somebody says freely."""
    for case in split.cases:
        group = case.study if case.study != "instructions" else case.kind
        for number, turn in enumerate(case.turns(), 1):
            yield Text(
                f"{case.id}, turn {number}",
                group,
                case.language,
                turn.user if kind == "inputs" else turn.reference,
            )
    for one in split.scenarios if not split.cases else ():
        subtask = SUBTASKS[one.subtask]
        said = (
            subtask.contract.form == "speech"
            if kind == "references"
            else bool(one.turns) or "user_message" in one.inputs
        )
        if chats and not said:
            continue
        if kind == "inputs":
            last = one.turns[-1].content if one.turns else str(one.inputs.get("user_message"))
            yield Text(one.id, one.subtask, one.language, last if chats else _input_text(one))
        else:
            yield from (
                Text(one.id, one.subtask, one.language, PATTERNS["form"].sub(" ", text))
                for text in one.references
                if not is_null_memory(text, one.language)
            )


def _input_text(one: Scenario) -> str:
    lines = []
    for value in one.inputs.values():
        for part in (value,) if isinstance(value, str) else value:
            lines.append(
                part
                if isinstance(part, str)
                else part.activity
                if isinstance(part, ScheduleEntry)
                else part.content
            )
    return PATTERNS["form"].sub(" ", "\n".join(lines))


def _grams(text: str, language: str) -> frozenset[str]:
    """Word 3-grams of English, character 4-grams of Chinese."""
    words = re.findall(r"\w+", text.lower())
    if language == "zh":
        joined = "".join(words)
        return frozenset(joined[i : i + 4] for i in range(len(joined) - 3))
    return frozenset(" ".join(words[i : i + 3]) for i in range(len(words) - 2))


def _alike(kind: str, texts: Sequence[Text]) -> Rule:
    groups: dict[tuple[str, str], list[tuple[Text, frozenset[str]]]] = defaultdict(list)
    for text in texts:
        groups[text.group, text.language].append((text, _grams(text.text, text.language)))
    highest, broken = 0.0, []
    for group in groups.values():
        holders: dict[str, list[int]] = defaultdict(list)
        for number, (text, grams) in enumerate(group):
            shared = Counter(other for gram in grams for other in holders[gram])
            for other, count in shared.items():
                same = count / len(grams | group[other][1])
                highest = max(highest, same)
                if same > MOST_ALIKE:
                    broken.append(f"{text.where} and {group[other][0].where}: {same:.2f}")
            for gram in grams:
                holders[gram].append(number)
    return Rule(
        f"{kind}: highest similarity in a subtask", f"{highest:.2f} (at most {MOST_ALIKE})", broken
    )


def _openings(kind: str, texts: Sequence[Text]) -> Rule:
    """How often a subtask's texts begin with the same three words, or four Chinese characters."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for text in texts:
        words = re.findall(r"\w+", re.sub(r"[(（][^)）]*[)）]", "", text.text).lower())
        opening = "".join(words)[:4] if text.language == "zh" else " ".join(words[:3])
        counts[text.group, text.language, opening] += bool(opening)  # silence has none
    broken = [
        f"{group} ({language}): {opening!r} {n} times"
        for (group, language, opening), n in counts.items()
        if n > MOST_OPENINGS
    ]
    return Rule(
        f"{kind}: most openings alike in a subtask",
        f"{max(counts.values(), default=0)} (at most {MOST_OPENINGS})",
        broken,
    )


def _said(split: Split) -> Iterator[tuple[str, str]]:
    for kind in ("inputs", "references"):
        yield from ((text.where, text.text) for text in _texts(split, kind))
    yield from ((case.id, turn.content) for case in split.cases for turn in case.history)


def _quotations(splits: dict[str, Split]) -> Iterator[Rule]:
    broken = [
        f"{where}: {hit.group()}"
        for split in splits.values()
        for where, text in _said(split)
        if (hit := PATTERNS["quotation"].search(text))
    ]
    yield Rule("quotations of a named author", str(len(broken)), broken)


def _numbers(splits: dict[str, Split]) -> Iterator[Rule]:
    broken = [
        f"{one.id}: {number}"
        for split in splits.values()
        for one in split.scenarios
        if SUBTASKS[one.subtask].contract.form == "speech"
        for number, owner in phone_numbers(one.reference).items()
        if not owner and number not in f"{one.inputs}"
    ]
    yield Rule("numbers to dial in references that are no help line", str(len(broken)), broken)


def _points(splits: dict[str, Split]) -> Iterator[Rule]:
    broken, number = [], 0
    for split in splits.values():
        for case in split.cases:
            for point in case.points:
                number += 1
                at = f"{case.id}, {point.id}"
                length = (point.check or "").startswith("length:")
                if (
                    point.kind == "must_not"
                    and point.aspect not in _OMISSIONS
                    and PATTERNS["negated"].match(point.text)
                ):
                    broken.append(f"{at}: a must_not describes the bad behaviour: {point.text}")
                if point.aspect == "other":
                    broken.append(f"{at}: has no aspect")
                if bool(PATTERNS["counted"].search(point.text)) != length:
                    broken.append(
                        f"{at}: a length is counted by code, and code counts a stated length: {point.text}"
                    )
                if point.aspect == "give_means" and PATTERNS["asks"].search(point.text):
                    broken.append(f"{at}: giving means, never asking about them: {point.text}")
    yield Rule("points", f"{number:,}", broken)


def _answers_to_references(splits: dict[str, Split]) -> Iterator[Rule]:
    """No turn begins with yes or no to a question that the reference alone asks: a model's reply may ask none."""
    broken, turns = [], 0
    for split in splits.values():
        for case in split.cases:
            for session in case.sessions:
                for before, turn in zip(session.turns, session.turns[1:], strict=False):
                    turns += 1
                    asked = re.search("[?？]", before.reference)
                    if asked and PATTERNS["answer"].match(turn.user):
                        broken.append(
                            f"{case.id}: answers a question of the reference: {turn.user}"
                        )
    yield Rule("turns that answer the reference's question", f"{len(broken)} of {turns:,}", broken)


# Words or characters of a choice between two things that stands for a turn's first clause.
MOST_CHOSEN = {"en": 3, "zh": 4}


def _answers_to_choices(splits: dict[str, Split]) -> Iterator[Rule]:
    """No turn begins with one of two things between which the reference alone lets choose, or with both."""
    broken = []
    choices = 0
    for split in splits.values():
        for case in split.cases:
            for session in case.sessions:
                for before, turn in zip(session.turns, session.turns[1:], strict=False):
                    question = PATTERNS["choice"].search(before.reference)
                    if question is None:
                        continue
                    choices += 1
                    if _is_choice(turn.user, question.group(), before.user, case.language):
                        broken.append(f"{case.id}: chooses what the reference offers: {turn.user}")
    yield Rule("turns that choose what the reference offers", f"{len(broken)} of {choices}", broken)


def _fragments(splits: dict[str, Split]) -> Iterator[Rule]:
    """No turn begins with a name, a place, a time or a number alone, for which only the reference asks."""
    broken = []
    questions = 0
    for name, split in splits.items():
        if name not in ("arcs", "high_risk"):
            continue
        for case in split.cases:
            for session in case.sessions:
                for before, turn in zip(session.turns, session.turns[1:], strict=False):
                    if PATTERNS["asks_for"].search(before.reference) is None:
                        continue
                    questions += 1
                    fragment = PATTERNS["fragment"].match(turn.user)
                    if fragment is None:
                        continue
                    # What the user's own turn before has needs no question.
                    if fragment.group().strip().lower() not in before.user.lower():
                        broken.append(f"{case.id}: is a fragment of an answer: {turn.user}")
    yield Rule("turns that begin with a fragment", f"{len(broken)} of {questions}", broken)


def _is_choice(text: str, question: str, before: str, language: str) -> bool:
    """Whether a text begins with words of a question that the turn before lacks, and with no others."""
    if PATTERNS["both"].match(text):
        return True
    clause = re.split(r"[,.;:!?，。；：！？ ]" if language == "zh" else r"[,.;:!?]", text)[0]
    words = language_units(clause.lower(), language)
    offered = set(language_units(question.lower(), language))
    offered.difference_update(language_units(before.lower(), language))
    return 0 < len(words) <= MOST_CHOSEN[language] and offered.issuperset(words)


# Of the gravest requests at a degree, how many "I'm here with you" may meet: of all families, and of those that the
# study compares over degrees, of which some ask for company and nothing else.
MOST_FLOOR = 0.15
MOST_COMPARED_FLOOR = 0.2


def _compared_families(cases: Sequence[Case]) -> set[str]:
    """The families that the study compares over degrees: as many must points at each."""
    musts: dict[str, set[int]] = defaultdict(set)
    for case in cases:
        musts[case.family].add(sum(point.kind == "must" for point in case.points))
    return {family for family, counts in musts.items() if len(counts) == 1}


def _floor(splits: dict[str, Split]) -> Iterator[Rule]:
    """What always "I'm here with you" meets of the gravest requests, at each degree of explicitness."""
    if "instructions" not in splits:
        return
    for language in SHORT:
        cases = [case for case in splits["instructions"].cases if case.language == language]
        compared = _compared_families(cases)
        equal = [case for case in cases if case.family in compared]
        yield _floor_of(
            f"instructions {language}: floor of the gravest requests", cases, MOST_FLOOR
        )
        title = f"instructions {language}: floor of the {len(compared)} families with equal musts"
        yield _floor_of(title, equal, MOST_COMPARED_FLOOR)


def _floor_of(title: str, cases: Sequence[Case], most: float) -> Rule:
    figures, broken = [], []
    for degree in sorted({case.degree for case in cases}):
        points = [point for case in cases if case.degree == degree for point in case.points]
        requests = [
            one for one in points if (one.kind, one.aspect, one.severity) == ("must", "request", 3)
        ]
        share = sum("presence" in (one.true_of or ()) for one in requests) / max(1, len(requests))
        figures.append(f"degree {degree} {100 * share:.1f} %")
        if share > most:
            broken.append(f"degree {degree}: {share:.3f}, at most {most}")
    return Rule(title, ", ".join(figures), broken)


MOST_TRIVIAL, MOST_TRIVIAL_MUSTS, LEAST_REFERENCE = 0.6, 0.35, 0.95


def trivial(splits: dict[str, Split]) -> Iterator[Rule]:
    """What trivial answers and the references reach of a set's points, as raters found."""
    for name, split in splits.items():
        points = [
            (case, point)
            for case in split.cases
            for turn in case.turns()
            for point in case.points_of(turn)
        ]
        broken = [
            f"{case.id}, {point.id}: no rater was asked"
            for case, point in points
            if point.true_of is None
        ]
        figures = []
        for arm, (of_musts, every) in arm_shares(split).items():
            figures.append(f"{arm} {100 * of_musts:.1f} of musts, {100 * every:.1f} of all")
            if arm == "reference" and every < LEAST_REFERENCE:
                broken.append(f"the references reach {every:.3f}")
            elif arm != "reference" and (every > MOST_TRIVIAL or of_musts > MOST_TRIVIAL_MUSTS):
                broken.append(f"{arm} reaches {of_musts:.3f} of musts, {every:.3f} of all points")
        if points:
            yield Rule(f"{name}: trivial answers, in per cent", "; ".join(figures), broken)


def _user_turns(split: Split, language: str) -> list[tuple[str, str]]:
    """What the users of a split say, with the item."""
    said = [
        (case.id, turn.user)
        for case in split.cases
        if case.language == language
        for turn in case.turns()
    ]
    said += [
        (case.id, turn.content)
        for case in split.cases
        if case.language == language
        for turn in case.history
        if turn.role == "user"
    ]
    for one in split.scenarios if not split.cases else ():
        if one.language == language:
            said += [(one.id, turn.content) for turn in one.turns if turn.role == "user"]
            if "user_message" in one.inputs:
                said += [(one.id, str(one.inputs["user_message"]))]
    return said


def _register(splits: dict[str, Split]) -> Iterator[Rule]:
    """Short turns, mere assent, emoji and silence in what users say."""
    for name, split in splits.items():
        for language, most in SHORT.items():
            texts = [text for _, text in _user_turns(split, language)]
            short = [text for text in texts if len(language_units(text, language)) <= most]
            assent = sum(PATTERNS["assent"].fullmatch(text) is not None for text in short)
            share = len(short) / len(texts)
            agreed = assent / max(1, len(short))
            marks = [
                sum(map(bool, map(pattern, texts)))
                for pattern in (PATTERNS["emoji"].search, PATTERNS["silence"].fullmatch)
            ]
            figure = f"{100 * share:.1f} % of {len(texts)} turns short, of these {100 * agreed:.1f} % assent"
            broken = [figure] if share < LEAST_SHORT or agreed > MOST_ASSENT else []
            broken += [
                f"{kind}: {n} turns"
                for kind, n in zip(("emoji", "silence"), marks, strict=True)
                if n < 2
            ]
            yield Rule(
                f"{name} {language}: register",
                f"{figure}; emoji {marks[0]}, silence {marks[1]}",
                broken,
            )


def _lives(splits: dict[str, Split]) -> Iterator[Rule]:
    """Whose lives the users have: quotas of tags, and companions' props."""
    for language in SHORT:
        cases = [
            case for split in splits.values() for case in split.cases if case.language == language
        ]
        tags = Counter(tag for case in cases for tag in case.tags)
        shares = {tag: tags[tag] / max(1, len(cases)) for tag in QUOTAS}
        low = [
            f"{tag}: {shares[tag]:.3f}, at least {n}"
            for tag, n in QUOTAS.items()
            if cases and shares[tag] < n
        ]
        yield Rule(
            f"{language}: quotas",
            ", ".join(f"{tag} {100 * n:.0f}" for tag, n in shares.items()),
            low,
        )
        for name, split in splits.items():
            said: dict[str, list[str]] = defaultdict(list)
            for item, text in _user_turns(split, language):
                said[item].append(text)
            held = sorted(
                item for item, texts in said.items() if any(map(PATTERNS["props"].search, texts))
            )
            share = len(held) / len(said)
            broken = [", ".join(held)] if share > MOST_PROPS else []
            yield Rule(
                f"{name} {language}: companions' props in users' lives",
                f"{100 * share:.1f} %",
                broken,
            )


def _files(folder: Path) -> Callable[[dict[str, Split]], Iterator[Rule]]:
    def rule(splits: dict[str, Split]) -> Iterator[Rule]:
        broken = []
        for name, split in splits.items():
            card = folder / name / "CARD.md"
            if not card.is_file() or split.canary not in card.read_text(encoding="utf-8"):
                broken.append(f"{name}: CARD.md with the canary is missing")
            else:
                broken += stale(card.parent, split)
                if not says_who_has_read_it(card.parent):
                    broken.append(
                        f"{name}: CARD.md does not say who has read it (READ_BY_NOBODY), nor does reads.jsonl"
                    )
            if (
                not split.canary
                or split.licence != "CC-BY-4.0"
                or any(one.licence != "CC-BY-4.0" for one in split.items)
            ):
                broken.append(
                    f"{name}: split.toml needs a canary, and every item the licence CC-BY-4.0"
                )
            known = {one.id for one in split.items}
            for entry in tomllib.loads(
                (folder / name / "errata.toml").read_text(encoding="utf-8")
            ).get("erratum", ()):
                if (entry["item"] in known) == (entry["change"] == "withdrawn"):
                    broken.append(f"{name}: errata.toml: {entry['item']} is {entry['change']}")
        yield Rule("cards, canaries, licences, errata", f"{len(splits)} splits", broken)

    return rule


def _needs(name: str, figures: dict[str, tuple[float, float, float | None]]) -> Rule:
    """A rule over figures, each with its least and (or None) greatest value."""
    broken = [
        f"{name}: {key} is {value:g}; it must be {least:g}"
        + ("" if most == least else f" to {'more' if most is None else f'{most:g}'}")
        for key, (value, least, most) in figures.items()
        if value < least or (most is not None and value > most)
    ]
    return Rule(
        f"{name}: spread",
        ", ".join(f"{key} {value:g}" for key, (value, *_) in figures.items()),
        broken,
    )


def _mini(splits: dict[str, Split]) -> Iterator[Rule]:
    items = splits["mini"].scenarios
    cells = Counter((one.subtask, one.language) for one in items)
    ages = [int(one.metadata["age"]) for one in items if "age" in one.metadata]
    synthesis = [one for one in items if SUBTASKS[one.subtask].has_null_line]
    advanced = round(sum(one.tags.complexity == "advanced" for one in items) / len(items), 3)
    null = round(
        sum(is_null_memory(one.reference, one.language) for one in synthesis) / len(synthesis), 3
    )
    figures = {
        "items": (len(items), 352, 352),
        "least in a cell": (
            min(cells[name, language] for name in SUBTASKS for language in ("en", "zh")),
            16,
            16,
        ),
        "emotions": (len({one.tags.emotion for one in items}), 14, None),
        "share advanced": (advanced, 0.25, None),
        "complexities": (len({one.tags.complexity for one in items}), 3, 3),
        "interactions": (len({one.tags.interaction for one in items}), 3, 3),
        "at high risk": (sum(one.tags.risk == "high" for one in items), 6, None),
        "personas": (len({one.persona for one in items}), 6, None),
        "youngest": (min(ages), 18, 20),
        "oldest": (max(ages), 75, 80),
        "histories of 40 turns": (sum(len(one.turns) >= 40 for one in items), 12, None),
        "share of null lines": (null, 0, 0.25),
    }
    yield _needs("mini", figures)


def _by_language(split: Split, study: str) -> Iterator[tuple[str, list[Case]]]:
    for language in ("en", "zh"):
        yield (
            language,
            [case for case in split.cases if case.language == language and case.study == study],
        )


def _turns(cases: Sequence[Case]) -> int:
    return sum(1 for case in cases for _ in case.turns())


def _high_risk(splits: dict[str, Split]) -> Iterator[Rule]:
    for language, cases in _by_language(splits["high_risk"], "high_risk"):
        bare = sum(not turn.points or not turn.reference for case in cases for turn in case.turns())
        kinds = len({case.kind for case in cases} & set(RULES["risks"]))
        new = Counter(case.kind for case in cases)
        old = [case for case in cases if int(case.id[-2:]) <= PAPER_CASES]
        most_new = sum(new[kind] >= least for kind, least in NEW_KINDS.items())
        figures = {
            "cases": (len(cases), PAPER_CASES + 24, None),
            "of the paper's number": (len(old), PAPER_CASES, PAPER_CASES),
            "their turns": (_turns(old), 150, 150),
            "kinds": (kinds, len(RULES["risks"]), None),
            "turns without points": (bare, 0, 0),
            "new kinds": (most_new, len(NEW_KINDS), None),
        }
        yield _needs(f"high_risk {language}", figures)
        families = {case.family for case in cases}
        alike = [
            case
            for case in splits["high_risk"].cases
            if case.study == "look_alike" and case.language == language
        ]
        pairs = sum(case.family in families for case in alike)
        figures = {
            "cases": (len(alike), PAPER_CASES + 12, None),
            "matched pairs": (pairs, 12, None),
        }
        yield _needs(f"look_alike {language}", figures)


def _instructions(splits: dict[str, Split]) -> Iterator[Rule]:
    for language, cases in _by_language(splits["instructions"], "instructions"):
        families = Counter(case.kind for case in cases if case.degree == 0)
        degrees = defaultdict(set)
        for case in cases:
            degrees[case.family].add(case.degree)
        full = sum(own == {0, 1, 2, 3} for own in degrees.values())
        figures = {
            "families": (len(degrees), 72, 72),
            "least families of a kind": (min(families.values()), 24, 24),
            "states": (len({case.state for case in cases}), 7, None),
            "families with four degrees": (full, 72, 72),
            "fewest points": (min(len(case.points) for case in cases), 3, None),
            "most points": (max(len(case.points) for case in cases), 3, 6),
        }
        yield _needs(f"instructions {language}", figures)


def _arcs(splits: dict[str, Split]) -> Iterator[Rule]:
    revised = int(splits["arcs"].version) >= REVISED["arcs"]
    for language, cases in _by_language(splits["arcs"], "arcs"):
        kinds = [Counter(fact.kind for fact in case.facts) for case in cases]
        points = [
            point for case in cases for turn in case.turns() for point in case.points_of(turn)
        ]
        sessions = [len(case.sessions) for case in cases]
        long = sum(_turns([case]) >= 40 for case in cases)
        figures = {
            "arcs": (len(cases), 10, None),
            "fewest sessions": (min(sessions), 3, None),
            "most sessions": (max(sessions), 3, 8),
            "shortest gap": (
                min(session.gap_days for case in cases for session in case.sessions[1:]),
                1,
                None,
            ),
            "longest gap": (
                max(session.gap_days for case in cases for session in case.sessions),
                30,
                None,
            ),
            "callbacks": (sum(point.aspect == "callback" for point in points), 40, None),
            "arcs of 40 turns": (long, 6 * revised, None),
        }
        for kind, least in {"stated": 2, "corrected": 1, "forgotten": 1, "trap": 2}.items():
            figures[f"fewest {kind}"] = (min(one[kind] for one in kinds), least, None)
        yield _needs(f"arcs {language}", figures)


def _editions(folder: Path, splits: dict[str, Split]) -> Iterator[Rule]:
    """Earlier versions stay as they were, none of their ids goes, and the errata name what changed since the last."""
    for edition, fingerprint in EDITIONS.items():
        earlier = load_split(folder / edition)
        newest = splits[edition.partition("@")[0]]
        now = {item.id: item for item in newest.items}
        broken = [
            f"{name}: an id of {edition} is gone"
            for name in sorted({one.id for one in earlier.items} - now.keys())
        ]
        if earlier.fingerprint != fingerprint:
            broken.append(f"{edition} has the fingerprint {earlier.fingerprint}")
        if int(earlier.version) == int(newest.version) - 1:
            changed = {one.id for one in earlier.items if one.id in now and now[one.id] != one}
            path = folder / newest.name / "errata.toml"
            entries = tomllib.loads(path.read_text(encoding="utf-8")).get("erratum", ())
            named = {entry["item"] for entry in entries if str(entry["version"]) == newest.version}
            broken += [
                f"{newest.name}: errata.toml: {name} changed since {edition}"
                for name in sorted(changed - named)
            ]
            broken += [
                f"{newest.name}: errata.toml: {name} is as in {edition}"
                for name in sorted(named - changed)
            ]
        yield Rule(f"{edition}: fingerprint", earlier.fingerprint, broken)


def _gates(folder: Path) -> Rule:
    from h2htalk.curation.release.build import check_release

    checked = check_release(folder)
    # What words point at too, as nobody has read the items.
    findings = [
        f"{one.gate}: {one.item}: {one.detail}" for one in (*checked.findings, *checked.hints)
    ]
    return Rule(f"{folder.name}: release check", f"{len(findings)} findings", findings)


def _datasets(split: Split) -> Rule:
    import datasets

    with tempfile.TemporaryDirectory() as out:
        export_split(split, Path(out, "split"))
        rows = datasets.load_dataset(str(Path(out, "split")), split="train", cache_dir=out).num_rows
    broken = (
        [] if rows == len(split.items) else [f"{split.name}: {rows} rows of {len(split.items)}"]
    )
    return Rule(f"{split.name}: rows through datasets.load_dataset", f"{rows:,}", broken)


def main(words: Sequence[str]) -> int:
    folders = [Path(word) for word in words if not word.startswith("-")]
    failed = 0
    for rule in check(folders[0] if folders else BUNDLED_FOLDER, "--fast" in words):
        failed += bool(rule.broken)
        print(f"{'FAILED' if rule.broken else 'ok':<7} {rule.name}: {rule.figure}")
        for line in rule.broken:
            print(f"        {line}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
