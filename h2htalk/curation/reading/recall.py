"""What is known of how much each reader of a curation finds: the lines at the end of a run.

Words and classifiers were measured on sets by authors who saw no rule (`measured_words.toml`, which
`tools/eval_safety.py --measured` writes); a guard and the reviewer by their certificates in the workspace. None of
these figures is about the owner's own dialogues: what people found in a sample of these is (`samples`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from pydantic import NonNegativeInt

from h2htalk.curation.reading.samples import read_samples, sample_lines
from h2htalk.curation.stage_folder import KEPT, StageFolder
from h2htalk.curation.stage_records import StageFile, read_checked
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_toml
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.model_names import without_path
from h2htalk.data.readers.certificates import (
    HARMFUL_TALKS,
    HARMLESS_TALKS,
    Certificate,
    CertificateFigure,
    read_certificates,
)
from h2htalk.data.readers.check_set import check_set_fingerprint
from h2htalk.data.records import Text, read_record, strict_record

MEASURED = Path(__file__).with_name("measured_words.toml")
LOOK_ALIKE = "_look_alike"  # behind a kind: the figure of texts that only look like it
# What the figures of labelled talks are about that a run prints.
TALKS: Mapping[str, str] = {HARMFUL_TALKS: "harmful", HARMLESS_TALKS: "harmless"}
# What a figure is about, by its kind.
NAMES: Mapping[str, str] = {
    "harm": "harm by the companion",
    "crisis_own": "crises of the user",
    "crisis_other": "crises of others",
    "crisis_past": "past crises",
    "crisis_look_alike": "look-alikes of crises",
    "minor": "users under 18",
    "explicit": "explicit content, by its mark",
    "personal_data": "personal data",
}


@strict_record
class WordFigure:
    """How many dialogues of a kind the words tagged, removed or sent to people, and how many more they noted.

    `noted`: with those that they only noted (`possible_crisis`), for which nothing is decided.
    """

    language: Language
    kind: Text
    set: Text
    found: NonNegativeInt
    of: NonNegativeInt
    noted: NonNegativeInt = 0


@strict_record
class MeasuredWords:
    """The figures of the words of the safety stage.

    Attributes:
        date: when they were measured.
        version: of the stage's rules.
        models: the fingerprints of its classifiers, by language.
        current: the sets whose figures a run prints; the others were seen when rules were made.
        figures: by language, set and kind.
    """

    date: Text
    version: int
    models: Mapping[Language, tuple[str, ...]]
    current: tuple[str, ...]
    figures: tuple[WordFigure, ...]


@cache
def measured_words() -> MeasuredWords:
    """Read the figures of the words, once a process."""
    return read_record(MeasuredWords, read_toml(MEASURED, 1 << 20), str(MEASURED))


def recall_lines(workspace: Workspace) -> list[str]:
    """What is known of recall, by reader and language; nothing before the safety stage.

    Raises DataError where a file of the workspace is damaged.
    """
    folder = workspace.stage("safety")
    if not folder.begun:
        return []
    samples = sample_lines(workspace.path, read_samples(workspace.path))
    return [*_word_lines(folder), *_model_lines(workspace), *samples]


def card_lines(workspace: Workspace) -> list[str]:
    """What a release's card says of words, and of the samples that people read; nothing before the safety stage."""
    folder = workspace.stage("safety")
    if not folder.begun:
        return []
    return [*_word_lines(folder), *sample_lines(workspace.path, read_samples(workspace.path))]


def _word_lines(folder: StageFolder) -> Iterator[str]:
    measured = measured_words()
    stored = read_checked(StageFile, folder.path / "stage.json")["version"]
    rules = f"rules of version {measured.version}, {measured.date}"
    if stored != measured.version:
        rules += f"; this workspace was made by version {stored}"
    for language in languages_of(folder):
        own = [
            one
            for one in measured.figures
            if one.language == language and one.set in measured.current
        ]
        counts = {one.kind: one for one in own}
        texts = []
        for kind in (kind for kind in NAMES if kind in counts):
            figure = counts[kind]
            noted = f", {figure.noted} with notes" if figure.noted > figure.found else ""
            alike = counts.get(kind + LOOK_ALIKE)
            alarms = f", look-alikes {alike.found} of {alike.of}" if alike is not None else ""
            texts.append(f"{NAMES[kind]} {figure.found} of {figure.of}{noted}{alarms}")
        yield f"words found, {language}: {'; '.join(texts)} (sets by authors who saw no rule; {rules})"


def languages_of(folder: StageFolder) -> list[Language]:
    """The languages of the dialogues that a stage has kept; of a stage that has kept nothing yet, all."""
    found: set[Language] = set()
    for part in folder.parts():
        for record in folder.part_records(part, KEPT):
            found.add(record["language"])
            if len(found) == len(LANGUAGES):
                return list(LANGUAGES)
    return [language for language in LANGUAGES if language in found] or list(LANGUAGES)


def _model_lines(workspace: Workspace) -> Iterator[str]:
    """A line for each certificate and language, and one for a reviewer without any (`summary` names such guards)."""
    of_all = read_certificates(workspace.path)
    certificates = [certificate for certificate in of_all if not certificate.is_of_talks]
    for certificate in certificates:
        others = (
            ""
            if certificate.set == check_set_fingerprint()
            else ", with other dialogues: check it again"
        )
        for language in LANGUAGES:
            own = [one for one in certificate.figures if one.language == language]
            shares = list(_shares(own))
            if shares:
                checked = f"checked {certificate.date}{others}"
                yield f"{certificate.reader} found, {language}: {'; '.join(shares)} ({checked})"
    for certificate in of_all:
        if certificate.is_of_talks:
            yield from _talk_lines(certificate)
    reviewer = _reviewer(workspace)
    if reviewer and reviewer not in {certificate.reader for certificate in certificates}:
        command = "h2htalk curate check-guard MODEL --reader review"
        yield f"{reviewer} was not checked, so what it read counts for no gate: {command}"


def _talk_lines(certificate: Certificate) -> Iterator[str]:
    """A line a language for a check with talks that the owner labelled, which counts for no gate."""
    for language in LANGUAGES:
        texts: list[str] = []
        for figure in certificate.figures:
            if figure.language == language and figure.kind in TALKS:
                texts.append(f"{TALKS[figure.kind]} {figure.found} of {figure.of}")
        if texts:
            yield (
                f"{certificate.reader} found something in labelled talks of yours, {language}: "
                f"{', '.join(texts)} ({certificate.set}, checked {certificate.date})"
            )


def _shares(figures: Sequence[CertificateFigure]) -> Iterator[str]:
    counts = {one.kind: one for one in figures}
    for kind in (kind for kind in NAMES if kind in counts):
        alike = counts.get(kind + LOOK_ALIKE)
        alarms = f", look-alikes {alike.found} of {alike.of}" if alike is not None else ""
        yield f"{NAMES[kind]} {counts[kind].found} of {counts[kind].of}{alarms}"


def _reviewer(workspace: Workspace) -> str:
    """The reviewer's name as a reader; empty before the review has begun."""
    identity = str(workspace.stage("review").settings().get("model", ""))
    name = identity.partition(", sha256 ")[0]
    return f"review:{without_path(name)}" if name else ""
