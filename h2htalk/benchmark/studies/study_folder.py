"""A study as a folder: that of a run (`data/run_folder.py`) whose manifest is `study.json` and whose items are cases.

inputs/split                 the cases that were asked
calls.jsonl                  every reply of the model as it came; `id` is `ARM/PART/CASE/PLACE`
judgements/                  the judge and its replies (`benchmark/judge/judgements.py`)
adjudication/                what people were asked and answered; `answer` is `CASE/PLACE/HASH:QUESTION`
observations.parquet, summary.json, report.html, tables/, figures/
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from h2htalk.benchmark.evaluate import subject_of
from h2htalk.benchmark.run import RunWriter, require_agreement
from h2htalk.benchmark.studies.applications import read_adapter
from h2htalk.benchmark.studies.conversations import StudyPrompts
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.engines import model_identity
from h2htalk.data.case import Case, turn_scenarios
from h2htalk.data.files import sha256_of
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError


class StudyFolder(RunFolder):
    """The folder of a study."""

    kind: ClassVar[str] = "study"
    score_again: ClassVar[str] = "run `h2htalk study score` again"

    def scores(self, signature: Signature) -> Path:
        return self.path / "observations.parquet"


@dataclass(frozen=True, slots=True)
class Study:
    """A study: its folder, specification, cases and prompts."""

    folder: StudyFolder
    spec: StudySpec
    split: Split
    prompts: StudyPrompts
    signature: Signature

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.split.cases

    def answers_of(self, arm: str) -> list[Response | FailedResponse]:
        """The stored outcome of each request of an arm."""
        return [one for (name, _), one in self.folder.answers().items() if name.startswith(f"{arm}/")]


def plan_study(spec: StudySpec) -> Study:
    """A study before anything is written. Raises ConfigError or DataError for a wrong name in the specification."""
    split, prompts = select_cases(load_split(spec.ask.split), spec), StudyPrompts.load(spec.ask.prompts)
    engine, _, name = spec.ask.model.partition(":")
    protocol = {"study": spec.study, "items": split.fingerprint, "prompts": prompts.fingerprint}
    if spec.study == "memory":
        protocol["window"] = str(spec.window)
    model = {"engine": engine, "model": name if spec.is_app else model_identity(spec.ask.model)}
    if spec.app is not None:
        read_adapter(spec.app)
        model["adapter"] = sha256_of(Path(spec.app))[:16]
    signature = Signature(protocol, subject_of(spec.ask, model, "of the study", spec.ask.sap))
    return Study(StudyFolder(spec.ask.out_path), spec, split, prompts, signature)


def open_study(study: Study) -> tuple[Study, RunWriter]:
    """Make the folder of a planned study, or open the one that is there: other arms and another judge may join.

    Erased cases are not asked again. Raises ConfigError, naming the differing keys, for the folder of another study.
    """
    folder, signed = study.folder, study.signature
    if folder.manifest.exists() and folder.signature().protocol.get("items") == signed.protocol["items"]:
        study = replace(study, split=folder.split())
        signed = replace(signed, protocol={**signed.protocol, "items": study.split.fingerprint})
    spec = study.spec.to_dict()
    writer = RunWriter(folder, spec, signed, study.split, {})
    try:
        folder.write_facts("spec", spec)
    except BaseException:  # passed on, with the lock given back
        writer.close()
        raise
    return study, writer


def read_study(path: Path) -> Study:
    """Open the study that a folder holds. Raises DataError: there is none, or its cases are not those it signed."""
    folder = StudyFolder(path)
    spec = StudySpec.from_dict(folder.read_run()["spec"], str(folder.manifest))
    spec = replace(spec, ask=replace(spec.ask, out=str(path)))  # it may have been moved
    split, signature = folder.split(), folder.signature()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    return Study(folder, spec, split, StudyPrompts.load(spec.ask.prompts), signature)


def select_cases(split: Split, spec: StudySpec) -> Split:
    """Choose the cases of a study and a language. Raises ConfigError for none.

    With a limit, families of about so many cases by a hash of their names, in turn over studies, languages and kinds.
    """
    kinds = CASES[spec.study]
    cases = [case for case in split.cases if case.study in kinds]
    if not cases:
        listed = f"holds no case of {', '.join(kinds)}, which this study needs, as {kinds[0]} does"
        raise ConfigError(f"split {split.name}: {listed}")
    families: dict[tuple[str, str, str, str], list[str]] = {}
    for case in cases:
        if spec.ask.language in (None, case.language):
            families.setdefault((case.study, case.language, case.kind, case.family), []).append(case.id)
    order = sorted(families, key=lambda one: hashlib.sha256(one[3].encode()).digest())
    for length in (3, 2):  # families of one kind take turns with those of another, then studies and languages
        seen, turn = Counter[tuple[str, ...]](), {}
        for one in order:
            turn[one] = seen[one[:length]]
            seen[one[:length]] += 1
        order.sort(key=lambda one: (turn[one], one[:length]))
    chosen: set[str] = set()
    for one in order:
        if chosen and spec.ask.limit is not None and len(chosen) + len(families[one]) > spec.ask.limit:
            break
        chosen.update(families[one])
    if not chosen:
        raise ConfigError(f"split {split.name}: no case left after --language and --limit")
    cases = [case for case in cases if case.id in chosen]
    turns = tuple(scenario for case in cases for scenario in turn_scenarios(case))
    personas = {name: split.personas[name] for name in sorted({case.persona for case in cases})}
    return replace(split, cases=tuple(cases), scenarios=turns, personas=personas)
