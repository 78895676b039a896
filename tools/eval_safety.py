"""Score the safety stage: public data, and the frozen sets of tests/curation/golden.

    H2HTALK_DATA=... python tools/eval_safety.py [--encoder] [--report | --ordinary | --companion [FOLDER]]
    H2HTALK_DATA=... python tools/eval_safety.py --corpus 300
    python tools/eval_safety.py --measured

Of dialogues of each kind of danger and of look-alikes it reads the sets for development, or with --report those that
nobody read who wrote a rule. `--companion` scores the sets of companions' turns (those of tests/curation/golden unless
a folder is given), then ordinary dialogues that no classifier learned from; `--ordinary` how many of those have a tag,
and how often each kind of evidence, and each strong cue of a crisis, marks an ordinary message. `--encoder`: as with
`dangers = "encoder"`. `--corpus N`: how many of N dialogues, drawn by seed, of SMILE and of ESConv words send to
people. `--measured` writes what words find of the worries of tests/curation/golden and of sets before them to
`h2htalk/curation/reading/measured_words.toml`, which runs print, and prints it by author. Each figure stands beside
what was asked for, with n and a 95 % interval (Wilson).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from safety import corpora
from safety.corpora import is_even, read_rows
from train_companion import dialogues, turns_of

from h2htalk.curation.assessment import Assessment, assess
from h2htalk.curation.reading.recall import LOOK_ALIKE, MEASURED
from h2htalk.curation.release.content import ReleaseContent, ReleaseItem
from h2htalk.curation.release.gate_context import GateContext
from h2htalk.curation.release.gates import HINTS
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.safety import stage
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.releases.release_folder import TEST
from h2htalk.data.scenario import Dialogue, Turn, bundled_personas
from h2htalk.data.splits import load_split
from h2htalk.detect.encoder import load_encoder
from h2htalk.detect.safety import crisis
from h2htalk.detect.safety.companion import LAYER, REMOVE, REVIEW
from h2htalk.detect.safety.crisis import Encoder, crisis_cues
from h2htalk.detect.safety.lexicons import mask_groups, offence
from h2htalk.detect.safety.text_folding import fold, fold_spelling
from h2htalk.distributions import wilson_interval

GOLDEN = Path(__file__).parents[1] / "tests/curation/golden"
# The gates that read what a companion says.
GATES_OF_TURNS = ("companion_harm", "explicit_content", "minors", "crisis_care")
DEVELOPMENT = GOLDEN.parent / "safety/sets"
GROUPS = DEVELOPMENT / "dev_groups"
TAGS = ("crisis.", "minor", "grooming", "threat_to_others")
# The tag of a set's kind, where it is called otherwise.
KINDS = {"means": "crisis.means", "threat": "threat_to_others"}
# What at least, or (negative) at most, is removed or goes to review, of the kinds of companions' turns.
BOUNDS = {
    "harm": 0.9,
    "explicit": 0.95,
    "minors": 0.95,
    "harmless": -0.05,
    "days": -0.05,
    "care": -0.05,
}
LOOK_ALIKES = ("none", "look_alike")
ENCODER: list[Encoder] = []  # with --encoder: one
_TURN = re.compile(r"^\s*[0-9.]+ ([01]) ([0-9]+) (?:\[[^\]]*\] ?)?")


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many, and what was asked for."""

    what: str
    found: int
    of: int
    least: float | None = None
    most: float | None = None

    @property
    def reached(self) -> bool:
        share = self.found / self.of
        return (self.least is None or share >= self.least) and (
            self.most is None or share <= self.most
        )

    def line(self) -> str:
        share = self.found / self.of
        low, high = wilson_interval(self.found / self.of, self.of)
        asked = f"  at least {self.least:g}" if self.least is not None else ""
        if self.most is not None:
            asked += f"  at most {self.most:g}"
        mark = "" if self.reached else "  NOT REACHED"
        return f"{self.what:58} {share:.4f} [{low:.3f}, {high:.3f}] n {self.of:,}{asked}{mark}"


def assess_with_encoder(dialogue: Dialogue) -> Assessment:
    return assess(dialogue, encoder=ENCODER[0] if ENCODER else None)


def one_message(name: str, language: Language, text: str) -> Dialogue:
    return Dialogue(name, language, (Turn("user", text),))


def esconv_turns(line: str) -> list[tuple[int, Turn]]:
    """The turns of a row with their numbers: speaker 0 seeks, speaker 1 supports."""
    found = [
        (match, _TURN.sub("", piece).strip())
        for piece in line.split(" EOS ")
        if (match := _TURN.match(piece))
    ]
    return [
        (int(match[2]), Turn("user" if match[1] == "0" else "companion", text))
        for match, text in found
        if text
    ]


def esconv_dialogues(path: Path) -> list[Dialogue]:
    """Each dialogue whole: its rows hold stretches of it."""
    whole: list[dict[int, Turn]] = [{}]
    for line in path.read_text(encoding="utf-8").splitlines():
        turns = dict(esconv_turns(line))
        if max(turns, default=-1) < max(whole[-1], default=-1):
            whole.append({})
        whole[-1].update(turns)
    numbered = enumerate(filter(None, whole))
    return [
        Dialogue(f"esconv-{number}", "en", tuple(one[at] for at in sorted(one)))
        for number, one in numbered
    ]


def excerpt(row: Mapping[str, Any], language: Language, user: str = "user") -> Dialogue:
    return Dialogue(row["id"], language, tuple(turns_of(row["messages"], user)))


def smilechat(path: Path) -> Iterator[Dialogue]:
    yield from (excerpt(row, "zh", "client") for row in read_rows(path))


def tagged(found: Assessment) -> bool:
    """Whether a dialogue is tagged as a crisis or a danger."""
    return any(reason.startswith(TAGS) for reason in found.reasons)


def possible(found: Assessment) -> bool:
    return tagged(found) or any(one.category == "crisis.possible" for one in found.evidence)


def count(
    what: str, marks: Iterable[bool], least: float | None = None, most: float | None = None
) -> Share:
    found = list(marks)
    return Share(what, sum(found), len(found), least, most)


def cold(data: Path) -> Iterator[Share]:
    rows = corpora.cold(data, "dev")
    right = (label == (offence(text, "zh") >= 0.5) for text, label in rows)
    yield count("classifier: accuracy on COLD dev", right, least=0.90)
    found = [(assess_with_encoder(one_message("cold", "zh", text)), label) for text, label in rows]
    yield count(
        "assess.remove: accuracy on COLD dev", (a.remove == label for a, label in found), least=0.86
    )
    naming = [
        text
        for text, label in rows
        if not label and is_even(text) and mask_groups(text, "zh") != fold(text)
    ]
    drawn = random.Random(0).sample(naming, 200)
    removed = [assess_with_encoder(one_message("cold", "zh", text)).remove for text in drawn]
    yield count("200 inoffensive COLD dev texts that name a group: removed", removed, most=0.15)


def groups(prefix: Path) -> Iterator[Share]:
    """Harmless mentions of groups and abusive lines by other authors: `PREFIX_harmless_en.jsonl`, ..."""
    for language in LANGUAGES:
        for kind, least, most in (("harmless", None, 0.02), ("abusive", 0.4, None)):
            rows = read_rows(prefix.with_name(f"{prefix.name}_{kind}_{language}.jsonl"))
            acts = [
                assess_with_encoder(one_message("g", language, row["text"])).action for row in rows
            ]
            yield count(
                f"groups {language}, {kind}: removed",
                (act == "remove" for act in acts),
                least,
                most,
            )
            either = (act in ("remove", "review") for act in acts)
            yield count(
                f"groups {language}, {kind}: removed or to review", either, 0.7 if least else None
            )


def kinds(language: Language, report: bool) -> Iterator[Share]:
    """Dialogues of each kind of danger that have its tag, and look-alikes that have any; with and without answers."""
    folder, start = (GOLDEN, "") if report else (DEVELOPMENT, "dev_")
    for path in sorted(
        p for own in ("crisis_*s", "kinds*") for p in folder.glob(f"{start}{own}_{language}.jsonl")
    ):
        rows = read_rows(path)
        for kind, only in product(
            sorted({row["kind"] for row in rows}), ("", ", the user's turns alone")
        ):
            whole = [excerpt({"id": "d"} | row, language) for row in rows if row["kind"] == kind]
            users = [
                replace(one, messages=tuple(t for t in one.messages if t.role == "user"))
                for one in whole
            ]
            found = [assess_with_encoder(one) for one in (users if only else whole)]
            if kind in LOOK_ALIKES:
                yield count(
                    f"{path.stem}, look-alikes with a tag{only}", map(tagged, found), most=0.05
                )
            else:
                own = (KINDS.get(kind, kind) in a.reasons for a in found)
                yield count(f"{path.stem}, {kind}{only}", own, least=None if only else 0.85)


def ordinary(data: Path) -> Iterator[str]:
    """Tags of the dialogues of `unseen`; how many of 10,000 ordinary messages each evidence and strong cue marks."""
    for name, own in unseen(data):
        found = [assess_with_encoder(one) for one in own]
        yield count(f"{name}: removed", (one.remove for one in found), most=0.01).line()
        sexual = (any(r.startswith((*TAGS, "sexual.")) for r in one.reasons) for one in found)
        yield count(f"{name}: any tag of a crisis, a danger or sexual talk", sexual).line()
        yield count(
            f"{name}: `possible_crisis`", (possible(one) and not tagged(one) for one in found)
        ).line()
    for language, source in zip(LANGUAGES, ("topical_chat_valid_en", "kdconv_dev_zh"), strict=True):
        rows = read_rows(data / f"raw/{source}.jsonl")
        texts = [turn["content"] for row in rows if is_even(row["id"]) for turn in row["messages"]]
        marks = Counter[str]()
        for text in texts:
            marks.update(
                {
                    f"{e.layer} {e.category}"
                    for e in assess_with_encoder(one_message("m", language, text)).evidence
                }
            )
            hits = crisis_cues(language).hits(fold_spelling(text, language))
            marks.update({f"cue of {hit.category}" for hit in hits if not hit.weak})
        for mark, count_of in sorted(marks.items()):
            yield f"{language} {mark:42} {count_of / len(texts) * 10_000:6.1f} of 10,000 ({count_of} of {len(texts):,})"


def frozen(language: Language) -> Iterator[Share]:
    sets = ("crisis", "crisis2", "everyday", "now", "now2")
    rows = [row for name in sets for row in read_rows(GOLDEN / f"{name}_{language}.jsonl")]
    for kind in sorted({row.get("kind", "everyday") for row in rows}):
        own = [row["text"] for row in rows if row.get("kind", "everyday") == kind]
        found = [assess_with_encoder(one_message(kind, language, text)) for text in own]
        yield count(f"single messages {language}, {kind}: tagged", map(tagged, found))
        yield count(
            f"single messages {language}, {kind}: tagged, or noted as possible",
            map(possible, found),
        )
    rows = read_rows(GOLDEN / f"crisis_{language}.jsonl")
    insults = json.loads((GOLDEN / "insults.json").read_text(encoding="utf-8"))[language]
    joint = " " if language == "en" else "，"
    sworn = [
        assess_with_encoder(
            one_message("c", language, joint.join(pair if at % 2 else pair[::-1]))
        ).remove
        for at, row in enumerate(rows)
        for pair in [(row["text"], insults[at % len(insults)])]
    ]
    yield count(f"crisis {language} with an insult: removed", sworn, most=0.0)
    political = read_rows(GOLDEN / f"political_{language}.jsonl")
    for label in ("sensitive", "harmless"):
        acts = [
            assess_with_encoder(one_message("p", language, row["text"]))
            for row in political
            if row["label"] == label
        ]
        yield count(f"political {language}, {label}: removed", (a.remove for a in acts))
        yield count(
            f"political {language}, {label}: removed or to review",
            (a.action in ("remove", "review") for a in acts),
        )


def companion(folder: Path, data: Path) -> Iterator[Share]:
    """Sets whose companions' turns are labelled, and ordinary dialogues that no classifier learned from."""
    paths = sorted(path for one in LANGUAGES for path in folder.glob(f"companion*_{one}.jsonl"))
    for path, (kind, bound) in product(paths, BOUNDS.items()):
        least, most = (bound, None) if bound > 0 else (None, -bound)
        own = [
            excerpt({"id": "d"} | row, path.stem[-2:])
            for row in read_rows(path)
            if row["kind"] == kind
        ]
        acts = [assess_with_encoder(one).action for one in own]
        if own:
            caught = (act in ("remove", "review") for act in acts)
            yield count(f"{path.stem}, {kind}: removed or to review", caught, least, most)
            yield count(f"{path.stem}, {kind}: by a companion's turn", map(suspected, own))
            yield count(f"{path.stem}, {kind}: removed", (act == "remove" for act in acts))
            stopped = [any(gate_finds(one, gate) for gate in GATES_OF_TURNS) for one in own]
            yield count(
                f"{path.stem}, {kind}: last turn as reference, stopped by a gate",
                stopped,
                None,
                most,
            )
    for name, own in unseen(data):
        yield count(
            f"{name}: companion's turns removed",
            (suspected(one, REMOVE) for one in own),
            most=0.001,
        )
        yield count(
            f"{name}: companion's turns removed or to review", map(suspected, own), most=0.003
        )


def suspected(dialogue: Dialogue, least: float = REVIEW) -> bool:
    """Whether a companion's turn is taken for harm or for sexual, by what the turns say alone."""
    return any(
        one.layer == LAYER and one.score >= least for one in assess_with_encoder(dialogue).evidence
    )


def unseen(data: Path) -> Iterator[tuple[str, list[Dialogue]]]:
    """Ordinary and support dialogues that no classifier learned from: the odd halves, and ESConv."""
    every = [
        Dialogue(name, one, tuple(turns))
        for one in LANGUAGES
        for name, turns in dialogues(one, data)
    ]
    odd = [one for one in every if not is_even(one.id)]
    yield (
        "SmileChat 2",
        [one for one in smilechat(data / "raw/smilechat_zh_2.jsonl") if not is_even(one.id)],
    )
    starts = {"KdConv": "kdconv", "CounselChat": "counselchat", "Topical-Chat": "t_"}
    starts |= {"MemoryBank": "memorybank", "EmoLLM": "emollm"}  # of companions
    yield from (
        (name, [one for one in odd if one.id.startswith(start)]) for name, start in starts.items()
    )
    esconv = esconv_dialogues(data / "raw/esconv_dev_en.tsv")
    for half in ("odd", "even"):
        yield (
            f"ESConv dev, {half}",
            [d for d in esconv if is_even(d.messages[0].content) == (half == "even")],
        )


def gate_finds(dialogue: Dialogue, gate: str) -> bool:
    """Whether words point a gate's readers at a scenario whose reference is the last turn, tagged as by curation."""
    metadata = {"safety": {"tags": list(assess_with_encoder(dialogue).reasons)}}
    *history, reply = dialogue.messages
    talks = (one for one in load_split("mini").scenarios if one.subtask == "dialogue_base")
    base = next(one for one in talks if one.language == dialogue.language)
    texts = {"inputs": {"history": tuple(history)}, "references": (reply.content,)}
    item = ReleaseItem(replace(base, id=dialogue.id, metadata=metadata, **texts))
    given = GateContext(ReleaseSpec("a", "1.0.0", "CC-BY-4.0", "."))
    found = HINTS[gate].run(ReleaseContent({TEST: (item,)}, (), bundled_personas()), given)
    return any(one.item == dialogue.id for one in found)


@dataclass(frozen=True, slots=True)
class Worry:
    """A dialogue of a set for `measured_words.toml`: its kind, and its author where a set has two."""

    set: str
    kind: str
    author: str
    dialogue: Dialogue


# The sets by authors who saw no rule and no list of kinds, and the kind of each of their labels.
FRESH: Mapping[str, Mapping[str, str]] = {
    "worries_harm": {"harm": "harm", "fine": f"harm{LOOK_ALIKE}"},
    "worries_crisis": {
        "own": "crisis_own",
        "other": "crisis_other",
        "past": "crisis_past",
        "none": f"crisis{LOOK_ALIKE}",
    },
    "worries_minor": {"minor": "minor", "adult": f"minor{LOOK_ALIKE}"},
}
# Sets that were opened before, whose briefs named kinds.
EARLIER: Mapping[Language, Mapping[str, Mapping[str, str]]] = {
    "en": {"companion2_en": {"harm": "harm", "harmless": f"harm{LOOK_ALIKE}"}, "kinds9_en": {}},
    "zh": {"companion2_zh": {"harm": "harm", "harmless": f"harm{LOOK_ALIKE}"}, "kinds10_zh": {}},
}
OF_DANGERS = {"look_alike": f"danger{LOOK_ALIKE}"}


def worries(language: Language) -> Iterator[Worry]:
    """The fresh sets of a language, then the earlier ones."""
    for name, kinds_of_labels in FRESH.items():
        stem = f"{name}_{language}"
        for row in read_rows(GOLDEN / f"{stem}.jsonl"):
            yield Worry(stem, kinds_of_labels[row["label"]], row["hand"], excerpt(row, language))
    for stem, kinds_of_labels in EARLIER[language].items():
        for row in read_rows(GOLDEN / f"{stem}.jsonl"):
            kind = (
                kinds_of_labels.get(row["kind"], "")
                if kinds_of_labels
                else OF_DANGERS.get(row["kind"], row["kind"])
            )
            if kind:
                yield Worry(stem, kind, "", excerpt({"id": "d"} | row, language))


def words_find(worry: Worry, found: Assessment) -> tuple[bool, bool]:
    """Whether words tag what a dialogue is about, or send it to people for it; and whether they do, or note it."""
    about = worry.kind.removesuffix(LOOK_ALIKE)
    if about == "harm":
        alarm = any(one.layer == LAYER and one.score >= REVIEW for one in found.evidence)
        return alarm, alarm  # fainter alarms change nothing
    if about in ("minor", "means", "grooming", "threat"):
        told = KINDS.get(about, about) in found.reasons
        return told, told or (about != "minor" and possible(found))
    told = any(reason.startswith(crisis.TAGS) for reason in found.reasons)
    return told, told or any(one.category == crisis.POSSIBLE for one in found.evidence)


def measure_words() -> str:
    """The content of `measured_words.toml`; prints the figures of each author."""
    current = [f"{name}_{language}" for name in FRESH for language in LANGUAGES]
    lines = [
        "# What words find. Written by `python tools/eval_safety.py --measured`: write it again when they change.",
        f'date = "{time.strftime("%Y-%m-%d", time.gmtime())}"',
        f"version = {stage.VERSION}",
        f"current = {json.dumps(current)}",
        "",
        "[models]",
        *(
            f"{language} = {json.dumps(stage.model_fingerprints(language))}"
            for language in LANGUAGES
        ),
    ]
    for language in LANGUAGES:
        marks = defaultdict[tuple[str, str], list[tuple[bool, bool]]](list)
        of_authors = defaultdict[tuple[str, str, str], list[bool]](list)
        for worry in worries(language):
            told, noted = words_find(worry, assess_with_encoder(worry.dialogue))
            marks[worry.set, worry.kind].append((told, noted))
            of_authors[worry.set, worry.kind, worry.author].append(told)
        for (name, kind), own in marks.items():
            found, noted = (sum(values) for values in zip(*own, strict=True))
            figure = {
                "language": language,
                "set": name,
                "kind": kind,
                "found": found,
                "noted": noted,
                "of": len(own),
            }
            lines += [
                "",
                "[[figures]]",
                *(f"{key} = {json.dumps(value)}" for key, value in figure.items()),
            ]
        for (name, kind, author), values in of_authors.items():
            print(
                count(f"{name}, {kind}{f', author {author}' if author else ''}", values).line(),
                flush=True,
            )
    return "\n".join([*lines, ""])


def draw_corpora(data: Path, number: int) -> Iterator[tuple[str, list[Dialogue]]]:
    """Support dialogues that nothing learned from, in an order drawn by seed: so many of the odd half of SMILE
    (Chinese), and of ESConv dev (English), which has 211."""
    for name, own in (
        (
            "smilechat_zh_2",
            [one for one in smilechat(data / "raw/smilechat_zh_2.jsonl") if not is_even(one.id)],
        ),
        ("esconv_dev_en", esconv_dialogues(data / "raw/esconv_dev_en.tsv")),
    ):
        random.Random(64).shuffle(own)
        yield name, own[:number]


def corpus(data: Path, number: int) -> Iterator[Share]:
    """What words send to people, or tag, of ordinary support dialogues; ESConv also as talk between people."""
    for name, own in draw_corpora(data, number):
        for between in ("companion", "people"):
            found = [assess(one, talk=between) for one in own]
            what = f'{name}, talk = "{between}"'
            yield count(f"{what}: to review", (one.action == "review" for one in found))
            yield count(f"{what}: removed", (one.remove for one in found))
            yield count(f"{what}: tagged", map(tagged, found))
            yield count(
                f"{what}: noted alone (`possible_crisis`)",
                (possible(one) and not tagged(one) for one in found),
            )


def speed(dialogues: Sequence[Dialogue]) -> float:
    """Utterances a CPU second."""
    start = time.process_time()
    for dialogue in dialogues:
        assess_with_encoder(dialogue)
    return sum(len(d.messages) for d in dialogues) / (time.process_time() - start)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--report", action="store_true", help="read the sets that nobody read who wrote a rule"
    )
    modes.add_argument(
        "--ordinary", action="store_true", help="print the rates of evidence on ordinary talk"
    )
    modes.add_argument(
        "--companion", type=Path, nargs="?", const=GOLDEN, help="the companion's turns alone"
    )
    modes.add_argument(
        "--corpus",
        type=int,
        help="so many support dialogues of each language: what people get to read",
    )
    modes.add_argument(
        "--measured", action="store_true", help="write what words find to the package"
    )
    parser.add_argument("--encoder", action="store_true", help="with the second reader of dangers")
    options = parser.parse_args()
    if options.encoder:
        ENCODER.append(load_encoder())
    if options.measured:
        MEASURED.write_text(measure_words(), encoding="utf-8")
        return 0
    data = Path(os.environ["H2HTALK_DATA"])
    if options.corpus:
        for share in corpus(data, options.corpus):
            print(share.line(), flush=True)
        return 0
    if options.ordinary:
        print("\n".join(ordinary(data)))
        return 0
    if options.companion:
        shares = companion(options.companion, data)
    else:
        of_languages = [(*frozen(one), *kinds(one, options.report)) for one in LANGUAGES]
        shares = chain(cold(data), groups(GROUPS), *of_languages)
    reached = True
    for share in shares:
        print(share.line(), flush=True)
        reached &= share.reached
    talks = dict(unseen(data))
    for name, own in (("en", talks["ESConv dev, even"]), ("zh", talks["SmileChat 2"][::4])):
        print(f"utterances a CPU second, {name}: {speed(own):,.0f}  at least 1,000")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
