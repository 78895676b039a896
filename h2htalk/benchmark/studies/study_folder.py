"""A study as a folder: the request, the cases, every call, and what was computed from them.

study.json                   spec, signature, sessions
cases/                       the cases that were asked, as a split's folder
calls.jsonl                  the call store: every reply of the model as it came, `id` is `ARM/PART/CASE/PLACE`
judgements/                  the judge and its replies (`benchmark/judge/judgements.py`)
people.jsonl                 what people answered in rounds
observations.parquet, summary.json, report.html, tables/, figures/
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from h2htalk.benchmark.studies.apps.app_adapter import read_adapter
from h2htalk.benchmark.studies.settings import CASES, SPLITS, StudySpec
from h2htalk.benchmark.studies.study_prompts import StudyPrompts
from h2htalk.chat.model_identity import model_identity
from h2htalk.data.case import Case, turn_scenarios
from h2htalk.data.erasure.filter_files import ERASED, read_erased, require_erased
from h2htalk.data.erasure.folder_kinds import require_folder_kind
from h2htalk.data.files import read_json_object, read_jsonl, refuse_links, write_json, write_jsonl
from h2htalk.data.links import add_link, link_folder
from h2htalk.data.persona import Persona
from h2htalk.data.responses import CALLS, FailedResponse, Response, read_answers
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.split_output.export import export_split
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError
from h2htalk.version import __version__, installed_versions

MANIFEST = "study.json"
PEOPLE = "people.jsonl"
OBSERVATIONS = "observations.parquet"
LOCK = "study"  # study.lock: one process at a time asks for a study
_LEFT = re.compile(r"cases|study\.lock|\.study\.json\..*")  # by a start that was killed before its manifest was written


@dataclass(frozen=True, slots=True)
class Study:
    """A study folder with its specification, cases, personas and prompts."""

    path: Path
    spec: StudySpec
    split: Split
    prompts: StudyPrompts
    signature: Signature

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.split.cases

    @property
    def personas(self) -> Mapping[str, Persona]:
        return self.split.personas

    def replies(self) -> dict[str, Response | FailedResponse]:
        """The stored outcome of each request, by id."""
        return {key: one for (key, _), one in read_answers(self.path / CALLS).items()}

    def erased_lines(self) -> list[dict[str, Any]]:
        """The lines of `erased.jsonl`: id of a case, fingerprint of those that are left, hashes of its replies."""
        return _erased(self.path)

    def erased_ids(self) -> frozenset[str]:
        """The ids of the cases that were erased from it."""
        return frozenset(str(line["id"]) for line in _erased(self.path))

    def erased_replies(self) -> frozenset[str]:
        """The hashes of the replies that were erased from it."""
        return frozenset(str(one) for line in _erased(self.path) for one in line["replies"])

    def people(self) -> dict[tuple[str, str], float]:
        """What people answered, by reply and question: the mean over all their answers."""
        sums: dict[tuple[str, str], tuple[float, int]] = {}
        for line in self.people_lines():
            key = (str(line["reply"]), str(line["question"]))
            total, number = sums.get(key, (0.0, 0))
            sums[key] = (total + float(line["value"]) * int(line["raters"]), number + int(line["raters"]))
        return {key: total / number for key, (total, number) in sums.items()}

    def people_lines(self) -> list[dict[str, Any]]:
        """The lines of `people.jsonl`: reply, question, value (a mean), raters, round."""
        path = self.path / PEOPLE
        lines = list(read_jsonl(path)) if path.exists() else []
        for where, line in lines:
            value, raters = line.get("value"), line.get("raters")
            known = type(raters) is int and raters > 0 and isinstance(value, int | float) and abs(value) < 1e9
            if not known or not {"reply", "question", "round"} <= line.keys():
                raise DataError(f"{where}: needs reply, question, round, value and raters; restore it")
        return [line for _, line in lines]


def plan_study(spec: StudySpec) -> Study:
    """A study before anything is written. Raises ConfigError or DataError for a wrong name in the specification."""
    split = select_cases(load_split(spec.ask.split), spec)
    prompts = StudyPrompts.load(Path(spec.ask.prompts) if spec.ask.prompts else None)
    return Study(spec.path, spec, split, prompts, _signature(spec, split, prompts))


def open_study(spec: StudySpec) -> Study:
    """Make a study's folder, or open the study that it holds to continue it: other arms and another judge may join.

    Raises:
        ConfigError: the split has no cases, or the folder holds another study (the differing keys are named).
        DataError: the folder holds something else, or cannot be read or written.
    """
    study = plan_study(spec)
    path, signature = study.path, study.signature
    manifest = _read_manifest(path)
    if manifest is None:
        _require_free(path)
    else:
        refuse_links(path)
        signed = Signature.from_dict(manifest.get("signature"), str(path / MANIFEST))
        sessions_of(path)
        keys = differing_keys(_flat(signed), _flat(signature))
        if keys:
            raise ConfigError(f"{path}: holds another study: {', '.join(keys)} differ; choose another --out")
    if (source := link_folder(spec.ask.split)) is not None:
        add_link(source, "study", path)
    if manifest is None:
        export_split(study.split, path / "cases")
    record = {"spec": spec.to_dict(), "signature": signature.to_dict(), "package_version": __version__}
    write_json(path / MANIFEST, (manifest or {"sessions": []}) | record)
    if _erased(path):  # what was erased is not asked again, although the split that is named may still hold it
        study = replace(study, split=load_split(str(path / "cases")))
    return study


def _require_free(path: Path) -> None:
    """Raise DataError unless a new study can use the folder; what a killed start left there is removed."""
    names = {one.name for one in path.iterdir()} if path.is_dir() else set()
    if path.exists() and (not path.is_dir() or any(not _LEFT.fullmatch(name) for name in names)):
        raise DataError(f"{path}: holds other files and no {MANIFEST}; name a new folder with --out")
    shutil.rmtree(path / "cases", ignore_errors=True)


def read_study(path: Path) -> Study:
    """Open the study that a folder holds.

    Raises:
        DataError: it holds none, its cases are not those of its signature, or its prompts are of another version.
    """
    require_folder_kind(path, "study")
    manifest = _read_manifest(path)
    if manifest is None:
        raise DataError(f"{path}: not a study: it holds no {MANIFEST}")
    refuse_links(path)
    raw = manifest.get("spec")
    spec = StudySpec.from_dict(raw if isinstance(raw, dict) else {}, str(path / MANIFEST))
    spec = replace(spec, ask=replace(spec.ask, out=str(path)))  # it may have been moved
    split = load_split(str(path / "cases"))
    prompts = StudyPrompts.load(Path(spec.ask.prompts) if spec.ask.prompts else None)
    signature = Signature.from_dict(manifest.get("signature"), str(path / MANIFEST))
    erased = [line["items"] for line in _erased(path)]
    if split.fingerprint not in (signature.protocol.get("items"), *erased):
        raise DataError(f"{path / 'cases'}: these are not the cases of the study's signature; put them back")
    return Study(path, spec, split, prompts, signature)


def _erased(path: Path) -> list[dict[str, Any]]:
    """Ids of erased cases, each with the fingerprint of those that are left."""
    lines = [dict(line) for line in read_erased(path / ERASED).values()]
    if not all(isinstance(line.get("items"), str) and isinstance(line.get("replies"), list) for line in lines):
        raise DataError(f"{path / ERASED}: each line needs id, items and replies; restore it")
    return lines


def record_session(path: Path, started: datetime, packages: Sequence[str]) -> None:
    """Write down when a study was asked, with which versions."""
    manifest = _read_manifest(path) or {}
    sessions = sessions_of(path)
    ended = datetime.now(UTC).isoformat(timespec="seconds")
    session = {
        "started": started.isoformat(timespec="seconds"),
        "ended": ended,
        "versions": installed_versions(*packages),
    }
    write_json(path / MANIFEST, manifest | {"sessions": [*sessions, session]})


def sessions_of(path: Path) -> list[dict[str, Any]]:
    """When a study was asked: started, ended, versions."""
    sessions: Any = (_read_manifest(path) or {}).get("sessions", [])
    known = isinstance(sessions, list) and all(isinstance(one, dict) and "started" in one for one in sessions)
    if not known or not all(isinstance(one.get("versions", {}), dict) for one in sessions):
        raise DataError(f"{path / MANIFEST}: sessions must be a list with started and ended; restore it")
    return list(sessions)


def add_people(path: Path, lines: Iterable[Mapping[str, Any]], round_name: str) -> None:
    """Store what people answered in a round, in place of what the same round gave before."""
    target = path / PEOPLE
    others = [line for _, line in read_jsonl(target) if line.get("round") != round_name] if target.exists() else []
    write_jsonl(target, [*others, *lines])


def _read_manifest(path: Path) -> dict[str, Any] | None:
    require_erased(path)
    try:
        return read_json_object(path / MANIFEST)
    except FileNotFoundError:
        return None


def _signature(spec: StudySpec, split: Split, prompts: StudyPrompts) -> Signature:
    ask, own = spec.ask, spec.ask.sampling_temperature is None
    engine, _, name = ask.model.partition(":")
    protocol = {"study": spec.study, "items": split.fingerprint, "prompts": prompts.fingerprint}
    if spec.study == "memory":
        protocol["window"] = str(spec.window)
    model = name if spec.is_app else model_identity(ask.model)
    subject = {"engine": engine, "model": model} | {
        key: "model's own" if own else str(getattr(ask, key)) for key in ("temperature", "top_p", "seed")
    }
    if spec.app is not None:
        read_adapter(Path(str(spec.app)))
        subject["adapter"] = hashlib.sha256(Path(str(spec.app)).read_bytes()).hexdigest()[:16]
    subject |= {"max_tokens": str(ask.max_tokens or ""), "thinking": str(ask.thinking or "")}
    if spec.study != "sap":
        subject["sap"] = ask.sap
    return Signature(protocol, subject)


def _flat(signature: Signature) -> dict[str, str]:
    return {**signature.protocol, **signature.subject}


def select_cases(split: Split, spec: StudySpec) -> Split:
    """Choose the cases of a language and, with a limit, whole families of them, spread over studies, languages and
    kinds by a hash of their names.

    Raises:
        ConfigError: none is left, or the split holds scenarios.
    """
    default = SPLITS[spec.study]
    if not split.cases:
        raise ConfigError(f"split {split.name}: holds scenarios, and a study needs cases, such as those of {default}")
    own = [case for case in split.cases if case.study in CASES[spec.study]]
    if not own:
        kinds = ", ".join(CASES[spec.study])
        raise ConfigError(f"split {split.name}: holds no case of {kinds}, which this study needs, as {default} does")
    cases = [case for case in own if spec.ask.language in (None, case.language)]
    if spec.ask.limit is not None:
        cases = _sample(cases, spec.ask.limit)
    if not cases:
        raise ConfigError(f"split {split.name}: no case left after --language and --limit")
    turns = tuple(scenario for case in cases for scenario in turn_scenarios(case))
    personas = {name: split.personas[name] for name in sorted({case.persona for case in cases})}
    return replace(split, cases=tuple(cases), scenarios=turns, personas=personas)


def _sample(cases: Sequence[Case], limit: int) -> list[Case]:
    groups: dict[tuple[str, str], dict[str, dict[str, list[Case]]]] = {}
    for case in cases:
        group = groups.setdefault((case.study, case.language), {})
        group.setdefault(case.kind, {}).setdefault(case.family, []).append(case)
    queues = [
        list(_in_turn([sorted(kind.items(), key=_place) for _, kind in sorted(group.items())]))
        for _, group in sorted(groups.items())
    ]
    chosen: set[str] = set()
    for _, family in _in_turn(queues):
        if len(chosen) + len(family) > max(limit, len(family)):
            break
        chosen |= {case.id for case in family}
    return [case for case in cases if case.id in chosen]


def _place(family: tuple[str, list[Case]]) -> bytes:
    return hashlib.sha256(family[0].encode()).digest()


def _in_turn(queues: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """The first of every queue, then the second of every queue, and so on."""
    for depth in range(max(map(len, queues), default=0)):
        yield from (queue[depth] for queue in queues if depth < len(queue))
