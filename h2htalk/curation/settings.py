"""The specification of a curation: one TOML file, read into frozen records, a section a stage.

Every field has a default that works offline, but the sources. Paths are relative to the file; `$NAME` in a path is an
environment variable.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.chat.engines import ENGINES
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import ConfigError, quoted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


SourceFormat = Literal[
    "messages", "persona", "questions", "memory_bank", "contexts", "openai", "sharegpt", "dialogues"
]


@dataclass(frozen=True, slots=True)
class Source:
    """One file of raw conversations: what it is called, where it lies, in which form and under which licence.

    `licence` is an SPDX identifier (`CC0-1.0`, `MIT`, `CC-BY-NC-4.0`). `limit`: the first so many dialogues.
    `companions`: names that the companion or its maker goes by in it; they stay, while other names are replaced.
    """

    name: str
    path: str
    format: SourceFormat
    language: Language
    licence: str
    limit: int | None = None
    companions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SimulateSettings:
    """Dialogues made by two models, a user and a companion, over a grid of kinds.

    `user` and `companion` are models as in `h2htalk evaluate` (`embedded`, `openai:gpt-4o`, `scripted:FILE`).
    `dialogues` of each language; every cell of interaction x emotion x complexity gets its equal share. `licence` is
    that of what the models write (SPDX): their makers' terms decide it. `max_cost` is for both models together.
    """

    user: str = ""
    companion: str = ""
    dialogues: int = 0
    turns: int = 6
    languages: tuple[Language, ...] = LANGUAGES
    personas: tuple[str, ...] = ()
    emotions: tuple[str, ...] = ("joy", "sadness", "loneliness", "anxiety", "anger", "calm")
    licence: str = "CC-BY-4.0"
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class GatherSettings:
    """What comes in. `licence` is the release's: a source that it does not allow is refused before anything is read.

    `stand_in`: dialogues generated where a source's path names an environment variable that is not set, so that an
    example runs without the data; 0 makes that an error.
    """

    sources: tuple[Source, ...] = ()
    simulate: SimulateSettings = field(default_factory=SimulateSettings)
    licence: str = "CC-BY-4.0"
    stand_in: int = 0


@dataclass(frozen=True, slots=True)
class AnonymizeSettings:
    """`allow`: names that stay (personas, public figures) beside the bundled lists. `ner`: `bundled`, `none`, or an
    extra recogniser of names: `spacy:en_core_web_sm`, `gliner:MODEL`."""

    allow: tuple[str, ...] = ()
    ner: str = "bundled"


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """`guard`: a model that is asked about the undecided: `vllm:Qwen/Qwen3Guard-Gen-4B`, `server:...`,
    `openai:omni-moderation-latest`; empty for none. `sensitive`: a file of politically sensitive terms of one's own."""

    guard: str = ""
    sensitive: str = ""
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class DedupSettings:
    """`against`: splits whose items must not come back (decontamination). `threshold`: share of the text left unedited
    (0.65 to 1) from which two dialogues are one."""

    against: tuple[str, ...] = ("mini",)
    threshold: float = 0.7


@dataclass(frozen=True, slots=True)
class ComposeSettings:
    """`model` writes inputs and references that a dialogue does not hold; empty: only what can be cut from it.
    `personas`: the companion of the scenarios of each language, chosen by the dialogue's id. `references`: how many a
    model writes to a scenario, and how many of other people's answers to the same question are taken beside its own.
    `batch`: by batch jobs of a hosted model, at half the price."""

    model: str = ""
    personas: tuple[str, ...] = ("nora", "ren")
    subtasks: tuple[str, ...] = ()
    references: int = 1
    max_cost: float | None = None
    batch: bool = False


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """`model` reviews. `samples`: evidence samples k of each order (FairEval). `hand_off`: share of the compared
    candidates with the highest entropy that people decide; `audit`: share of all, drawn at random. `gold`: a file of
    comparisons whose answer is known, on which the reviewer must beat chance before it compares (`review_gate`)."""

    model: str = ""
    samples: int = 3
    margin: float = 0.0
    hand_off: float = 0.2
    audit: float = 0.05
    accept: float = 4.0
    temperature: float = 1.0
    max_cost: float | None = None
    batch: bool = False
    gold: str = ""


@dataclass(frozen=True, slots=True)
class CurateSpec:
    """A whole curation. `workspace`: its folder. `part`: dialogues a part, the unit of work that a kill can cost.

    `prompts`: a folder of templates over the bundled ones. `prices`: a file of models' prices over the bundled ones.
    """

    workspace: str
    gather: GatherSettings
    seed: int = 0
    processes: int | None = None
    part: int = 250
    prompts: str = ""
    prices: str = ""
    anonymize: AnonymizeSettings = field(default_factory=AnonymizeSettings)
    safety: SafetySettings = field(default_factory=SafetySettings)
    dedup: DedupSettings = field(default_factory=DedupSettings)
    compose: ComposeSettings = field(default_factory=ComposeSettings)
    review: ReviewSettings = field(default_factory=ReviewSettings)


def read_spec(path: Path, *, workspace: Path | None = None, processes: int | None = None) -> CurateSpec:
    """Read a specification; `workspace` and `processes` stand in for the file's own.

    Raises:
        ConfigError: it cannot be read, or a field is missing, unknown or wrong; names file and field.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))  # some editors begin with a byte order mark
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not TOML of this kind: nested too deeply") from error
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise ConfigError(f"{path}: not TOML: {error}") from error
    if workspace is not None:
        raw["workspace"] = "."  # set below, as the shell gave it: a `$` in it is no variable
    if processes is not None:
        raw["processes"] = processes
    spec = _validate(raw, path)
    check_limits(spec, path)
    try:
        spec = _with_places(spec, path.resolve().parent)
    except KeyError as unset:
        raise ConfigError(f"{path}: ${unset.args[0]} is not set; set it, or write the path out") from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return replace(spec, workspace=str(workspace.resolve())) if workspace is not None else spec


def resolve(path: str, base: Path) -> Path:
    """A path of a specification: its variables filled in, relative ones beside the file (`base` is its folder).

    Raises:
        KeyError: a variable that is not set; the argument is its name.
        ConfigError: no path can be so.
    """
    filled = "/".join(os.environ[part[1:]] if part.startswith("$") else part for part in path.split("/"))
    try:
        if "\0" in filled:
            raise ValueError("it holds a null character")
        found = base / Path(filled).expanduser()
        found.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long; `~nobody`
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{quoted(path)} cannot be a path: {why}") from error
    return found


def model_kind(name: str) -> str:
    """What the model's name may be, of an engine or of a recogniser of names: see `Engine.model_is`."""
    if name in ("spacy", "gliner"):
        return "folder"
    return ENGINES[name].model_is if name in ENGINES else "name"


def _with_places(spec: CurateSpec, base: Path) -> CurateSpec:
    """The specification with the paths of its other files as they are from anywhere."""

    def at(path: str) -> str:
        return str(resolve(path, base)) if path else ""

    def model(name: str) -> str:
        backend, _, path = name.partition(":")
        kind = model_kind(backend)
        # A name of the Hub begins with none of these.
        folder = kind == "folder" and path.startswith((".", "/", "~", "$"))
        return f"{backend}:{at(path)}" if path and (kind == "file" or folder) else name

    def split(name: str) -> str:
        # A bundled split's name has no such sign; a folder of one's own may stand beside the file.
        return at(name) if {"/", ".", "$", "~"} & set(name) else name

    simulate = spec.gather.simulate
    simulate = replace(simulate, user=model(simulate.user), companion=model(simulate.companion))
    return replace(
        spec,
        workspace=str(resolve(spec.workspace, base)),
        prompts=at(spec.prompts),
        prices=at(spec.prices),
        gather=replace(spec.gather, simulate=simulate),
        anonymize=replace(spec.anonymize, ner=model(spec.anonymize.ner)),
        safety=replace(spec.safety, sensitive=at(spec.safety.sensitive), guard=model(spec.safety.guard)),
        dedup=replace(spec.dedup, against=tuple(map(split, spec.dedup.against))),
        compose=replace(spec.compose, model=model(spec.compose.model)),
        review=replace(spec.review, model=model(spec.review.model), gold=at(spec.review.gold)),
    )


def _validate(raw: dict[str, Any], path: Path) -> CurateSpec:
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic import with_config as configured

    for record in (
        Source,
        SimulateSettings,
        GatherSettings,
        AnonymizeSettings,
        SafetySettings,
        DedupSettings,
        ComposeSettings,
        ReviewSettings,
        CurateSpec,
    ):
        configured(ConfigDict(extra="forbid"))(record)
    try:
        # As JSON, whose lists may be strict tuples: no true is 1 and no "4" is 4.
        return TypeAdapter(CurateSpec).validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_told(error.errors(include_url=False)[0])}") from error


def _told(error: ErrorDetails) -> str:
    where = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"{where} is missing"
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"{where}: no such setting; docs/curation.md names them"
    return f"{where}: {error['msg']}, not {quoted(error['input'])}"


_MOST_DOLLARS = 1_000_000
_MOST_DIALOGUES = 10_000_000


def check_limits(spec: CurateSpec, path: Path) -> None:
    """See that every number can be meant, and that there is something to curate.

    Raises:
        ConfigError: names `path`, the setting and what it may be.
    """
    gather, review = spec.gather, spec.review
    limits: dict[str, tuple[float | None, float, float]] = {
        "seed": (spec.seed, -(2**63), 2**63 - 1),
        "part": (spec.part, 1, 1_000_000),
        "processes": (spec.processes, 1, 1024),
        "gather.stand_in": (gather.stand_in, 0, _MOST_DIALOGUES),
        "gather.simulate.dialogues": (gather.simulate.dialogues, 0, _MOST_DIALOGUES),
        "gather.simulate.turns": (gather.simulate.turns, 2, 1000),
        "gather.simulate.max_cost": (gather.simulate.max_cost, 0, _MOST_DOLLARS),
        "safety.max_cost": (spec.safety.max_cost, 0, _MOST_DOLLARS),
        # Each side must be 0.6 alike whatever is asked for, so that a lower one would change next to nothing.
        "dedup.threshold": (spec.dedup.threshold, 0.65, 1),
        "compose.references": (spec.compose.references, 1, 100),
        "compose.max_cost": (spec.compose.max_cost, 0, _MOST_DOLLARS),
        "review.samples": (review.samples, 1, 100),
        "review.margin": (review.margin, 0, 9),  # scores go from 1 to 10
        "review.hand_off": (review.hand_off, 0, 1),
        "review.audit": (review.audit, 0, 1),
        "review.accept": (review.accept, 1, 5),
        "review.temperature": (review.temperature, 0, 2),
        "review.max_cost": (review.max_cost, 0, _MOST_DOLLARS),
    }
    for name, (value, least, most) in limits.items():
        # So written that nan, which is neither below nor above, does not pass.
        if value is not None and not least <= value <= most:
            raise ConfigError(f"{path}: {name} is {quoted(value)}; it must be between {least:,} and {most:,}")
    names = [source.name for source in gather.sources]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path}: two sources of one name; ids begin with it, so give each its own")
    if not names and not gather.simulate.dialogues:
        raise ConfigError(f"{path}: no [[gather.sources]] and nothing to simulate: name what to curate")
