"""The settings of a curation, a record for each section of its TOML file, and the one table of its stages.

Adding a stage is a record in `STAGES`, with its settings, and the module that it names. pydantic checks and resolves
settings when the file is read. A relative path is relative to the file's folder, which `read_spec` passes as pydantic's
context; `$NAME` as a part of a path is an environment variable. Only the sources of `gather` have no default.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo

from h2htalk.chat.engines import model_kind, parse_model, require_model
from h2htalk.data.files import read_toml
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import read_record, require, strict_record
from h2htalk.data.releases.release_folder import HUB
from h2htalk.data.scenario import Role
from h2htalk.errors import ConfigError, MissingExtraError, quoted, suggest
from h2htalk.extras import (
    ANONYMIZATION,
    DANGER_ENCODER,
    DEDUPLICATION,
    GATHERING,
    SAFETY,
    Requirement,
)

T = TypeVar("T")
SIMULATED = "simulated"  # the name of the source of simulated dialogues
_EMOTIONS = ("joy", "sadness", "loneliness", "anxiety", "anger", "calm")
_NAME = re.compile(r"\w[\w.-]{0,59}")


def resolve_path(path: str, folder: Path) -> Path:
    """Fill in the environment variables of a path; a relative path is relative to `folder`.

    Raises KeyError, with its name, where a variable is not set, ValueError where the text cannot be a path.
    """
    filled = "/".join(
        os.environ[part[1:]] if part.startswith("$") else part for part in path.split("/")
    )
    try:
        if "\0" in filled:
            raise ValueError("it contains a null character")
        resolved = folder / Path(filled).expanduser()
        resolved.exists()
    except (OSError, RuntimeError, ValueError) as error:  # too long; `~nobody`
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{quoted(path)} cannot be a path: {reason}") from error
    return resolved


def _resolve(value: str, info: ValidationInfo) -> str:
    if not value:
        return value
    try:
        return str(resolve_path(value, (info.context or {})["folder"]))
    except KeyError as unset:
        raise ValueError(f"${unset.args[0]} is not set; set it, or write the path out") from None


def _resolve_model(value: str, info: ValidationInfo) -> str:
    engine, _, name = value.partition(":")
    kind = model_kind(engine)
    # The name of a model on the Hub starts with none of these.
    is_folder = kind == "folder" and name.startswith((".", "/", "~", "$"))
    return f"{engine}:{_resolve(name, info)}" if name and (kind == "file" or is_folder) else value


def _resolve_split(value: str, info: ValidationInfo) -> str:
    # The name of a bundled split contains none of these.
    is_path = {"/", ".", "$", "~"} & set(value) and not value.startswith(HUB)
    return _resolve(value, info) if is_path else value


def _resolve_release(value: str, info: ValidationInfo) -> str:
    return value if value.startswith(HUB) else _resolve(value, info)


FilePath = Annotated[str, AfterValidator(_resolve)]
ReleaseName = Annotated[str, AfterValidator(_resolve_release)]  # a folder, or `hub:OWNER/NAME@TAG`
ModelName = Annotated[str, AfterValidator(_resolve_model)]
SplitName = Annotated[str, AfterValidator(_resolve_split)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000)]
Share = Annotated[float, Field(ge=0, le=1)]


def _unique(values: tuple[T, ...]) -> tuple[T, ...]:
    names = [getattr(value, "name", value) for value in values]
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{', '.join(map(repr, repeated))} is given twice; give each once")
    return values


ColumnName = Literal[
    "id",
    "messages",
    "person",
    "name",
    "system",
    "language",
    "licence",
    "question",
    "title",
    "answer",
    "question_id",
    "role",
    "content",
    "conversation",
    "speaker",
    "text",
    "time",
    "order",
]
Format = Literal[
    "messages",
    "dialogues",
    "question_answers",
    "memory_bank",
    "turns",
    "whatsapp",
    "telegram",
    "sillytavern",
    "chatgpt",
    "claude",
    "open_webui",
    "librechat",
    "character_ai",
    "chat_log",
]
_LanguageCode = Annotated[
    str, require(LANGUAGES.__contains__, f"no language {{}}; choose from {', '.join(LANGUAGES)}")
]
_LowerCase = AfterValidator(
    lambda roles: {name.strip().lower(): role for name, role in roles.items()}
)
_NAME_RULE = "{} must be at most 60 letters, digits, . - and _, as ids begin with it"
_BeginsIds = require(
    lambda name: _NAME.fullmatch(name) and unicodedata.is_normalized("NFC", name), _NAME_RULE
)
_IsFree = require(
    lambda name: name != SIMULATED, "{} is the name of simulated dialogues; choose another one"
)
_SourceName = Annotated[str, _BeginsIds, _IsFree]


@strict_record
class Source:
    """Raw conversations: a file, the files of a folder or of a glob pattern, or a data set."""

    name: _SourceName  # the start of the ids of its dialogues
    # As in the TOML file; files may be compressed (`.gz`, `.zst`) or Parquet; a folder that `datasets` saved and
    # `hub:OWNER/NAME@COMMIT` are data sets, with `#SPLIT` behind them where they have several.
    path: str
    format: Format  # of its records (`formats.READERS`), or the program of an export (`exports.programs`)
    language: _LanguageCode  # of all its dialogues
    licence: str  # an SPDX identifier (`CC0-1.0`, `MIT`, `CC-BY-NC-4.0`)
    limit: Annotated[int, Field(ge=1)] | None = None  # read this many dialogues at most
    companions: tuple[str, ...] = ()  # names of the companion or its maker, which anonymize keeps
    # Whose telephone numbers anonymize looks for beside the usual ones (ISO 3166: `DE`).
    countries: tuple[Annotated[str, Field(pattern="^[A-Z]{2}$")], ...] = ()
    talk: Literal["", "personal", "public"] = (
        ""  # as in [anonymize], for this source; empty: as that says
    )
    # `user` or `companion` for names of roles that the file uses beside the usual ones.
    roles: Annotated[Mapping[str, Role], _LowerCase] = field(default_factory=dict, hash=False)
    columns: Mapping[ColumnName, str] = field(
        default_factory=dict, hash=False
    )  # keys of its records for our names
    encoding: Literal[
        "", "utf-8", "utf-16", "cp1252", "gb18030", "big5", "cp932", "cp949", "cp1251"
    ] = ""  # of its files; empty: they decide
    companion: str = ""  # the name of the speaker who is the companion, in exports of chat programs
    date_order: Literal["", "dmy", "mdy", "ymd"] = (
        ""  # of day, month and year; empty: each file decides
    )
    silence: Annotated[float, Field(gt=0, le=24 * 366)] = (
        12.0  # hours after which a chat's next dialogue begins
    )
    pattern: str = ""  # of the lines of a `chat_log`, with the groups `speaker` and `text`
    # What is no message: values of columns of `turns` (`"*"`: any), or words of `lines` of a `chat_log`.
    leave_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@strict_record
class SimulateSettings:
    """Dialogues between two models, a user and a companion, over a grid of kinds of conversation."""

    user: ModelName = ""  # as in `h2htalk evaluate` (`embedded`, `openai:gpt-4o`, `scripted:FILE`)
    companion: ModelName = ""  # likewise
    # Of each language; every interaction x emotion x complexity gets the same number.
    dialogues: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    turns: Annotated[int, Field(ge=2, le=1000)] = 6  # messages of a dialogue at most
    # Of the dialogues: `en`, `zh`.
    languages: Annotated[
        tuple[_LanguageCode, ...], Field(min_length=1), AfterValidator(_unique)
    ] = LANGUAGES
    personas: Annotated[
        tuple[str, ...], AfterValidator(_unique)
    ] = ()  # of the companion; empty: all bundled ones
    # Of the user.
    emotions: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_unique)] = _EMOTIONS
    licence: str = (
        "CC-BY-4.0"  # of what the models write (SPDX), which the terms of their makers decide
    )
    max_cost: Dollars | None = None  # of both models together
    engine_options: Mapping[str, str] = field(
        default_factory=dict, hash=False
    )  # of both (docs/reference/servers.md)


@strict_record
class GatherSettings:
    """Where dialogues come from."""

    sources: Annotated[tuple[Source, ...], AfterValidator(_unique)] = ()  # raw conversations
    # Dialogues between two models, beside or instead of raw ones.
    simulate: SimulateSettings = field(default_factory=SimulateSettings)
    licence: str = "CC-BY-4.0"  # of the release; a source that it does not allow is refused before anything is read


OperatorName = Literal["surrogate", "mask", "hash", "redact", "keep"]


@strict_record
class AnonymizeSettings:
    """How personal data are found and replaced.

    `operators`: what stands in for the values of a type: a seeded surrogate (as for types that are not named), a mask,
    a hash, nothing, or the value itself.
    """

    allow: tuple[str, ...] = ()  # names that stay, beside the bundled lists
    recognizers: FilePath = (
        ""  # a registry file in Presidio's format with recognisers of the user's own
    )
    trust_recognizers: bool = False  # the registry may name classes of the user's own code
    operators: Mapping[str, OperatorName] = field(default_factory=dict, hash=False)
    public_figures: Literal["keep", "replace"] = (
        "keep"  # whether names of public and invented people stay
    )
    # What dialogues are about: people's own lives, where one sign makes a name private, or public matters: two do.
    talk: Literal["personal", "public"] = "personal"
    # Keys of a record, of its `metadata` or its `user` with the user's name, beside those of `role_names.toml`; it is
    # replaced everywhere in the dialogue.
    name_keys: tuple[str, ...] = ()


@strict_record
class SafetySettings:
    """How harm is looked for, and who reads.

    Attributes:
        guard: a chat model that reads dialogues, such as `anthropic:claude-sonnet-5` or `vllm:Qwen/Qwen3Guard-Gen-4B`.
        guard_scope: which dialogues it reads: all that are kept (None: as `all`), or the doubtful ones alone.
        guard_form: how it is asked: by its name (`auto`), in Qwen3Guard's or Llama Guard's form, or the plain question.
        sensitive: a file of your own politically sensitive terms.
        explicit: whether plain sexual content between adults removes a dialogue (the rest is for review), or all of it
            is a tag for annotators who agreed to it.
        dangers: what looks for crises, children and threats: the words, or an encoder too, whose weights are a package.
        talk: `people` where no companion answers, as in support chat: alarms about a companion's turns are then hints.
        max_cost: the most that the guard's calls may cost, in US dollars.
        batch: whether its calls are batch jobs of a hosted model, at half the price.
        engine_options: forms of requests that its server takes (docs/reference/servers.md).
    """

    guard: ModelName = ""
    guard_scope: Literal["all", "doubtful"] | None = None
    guard_form: Literal["auto", "qwen3guard", "llama_guard", "question"] = "auto"
    sensitive: FilePath = ""
    explicit: Literal["remove", "tag"] = "remove"
    dangers: Literal["words", "encoder"] = "words"
    talk: Literal["companion", "people"] = "companion"
    max_cost: Dollars | None = None
    batch: bool = False
    engine_options: Mapping[str, str] = field(default_factory=dict, hash=False)


@strict_record
class DedupSettings:
    """What a dialogue may not repeat.

    Attributes:
        contamination_splits: splits whose items must not be in the result.
        threshold: the similarity from which two dialogues are duplicates. A lower one than .65 would change next to
            nothing: each side must have a similarity of .6 in any case.
    """

    contamination_splits: tuple[SplitName, ...] = ("mini",)
    threshold: Annotated[float, Field(ge=0.65, le=1)] = 0.7


@strict_record
class ComposeSettings:
    """What is composed, and by which model; without one a run ends before this stage."""

    model: ModelName = ""  # writes inputs and references that a dialogue does not contain
    personas: tuple[str, ...] = (
        "nora",
        "ren",
    )  # companions of the scenarios; the dialogue's id decides which
    subtasks: tuple[str, ...] = ()  # to compose; empty: all
    # That the model writes for a scenario; at most as many replies of other dialogues to the same question join them.
    # With 0 a candidate has the original reply alone.
    references: Annotated[int, Field(ge=0, le=100)] = 1
    max_cost: Dollars | None = None  # the most that its calls may cost, in US dollars
    batch: bool = False  # send the calls as batch jobs of a hosted model, at half the price
    # Forms of requests that the model's server takes, such as `temperature = "none"` (docs/reference/servers.md).
    engine_options: Mapping[str, str] = field(default_factory=dict, hash=False)


@strict_record
class ReviewSettings:
    """Who reviews, and what people decide."""

    model: ModelName = ""  # the reviewer; without one a run ends before this stage
    samples: Annotated[int, Field(ge=1, le=100)] = 3  # evidence samples k in each order (FairEval)
    margin: Annotated[float, Field(ge=0, le=9)] = (
        0.0  # two answers whose scores (1 to 10) differ by at most this tie
    )
    escalate: Share = (
        0.2  # of the compared candidates, those of the highest entropy, which people decide
    )
    audit: Share = 0.05  # of all candidates, drawn at random, which people decide
    accept: Annotated[float, Field(ge=1, le=5)] = (
        4.0  # least mean of the criteria (1 to 5) of an accepted candidate
    )
    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0  # of the comparisons
    max_cost: Dollars | None = None  # the most that its calls may cost, in US dollars
    batch: bool = False  # send the calls as batch jobs of a hosted model, at half the price
    gold: FilePath = ""  # comparisons with known answers: without beating chance on them a reviewer compares nothing
    engine_options: Mapping[str, str] = field(default_factory=dict, hash=False)  # as of `compose`


@dataclass(frozen=True, slots=True)
class Stage:
    """A curation stage, and what the rest of the package must know of it."""

    name: str  # of its folder in the workspace, of its section in the TOML file, and in commands
    module: str  # in this folder; its `make_stage(spec, workspace, key)` returns a `run.StageRun`
    settings: type[Any]  # the record of its TOML section
    reads: str = "dialogues"  # or `candidates`
    required: str = ""  # the setting without which a run ends before this stage; empty for none
    example: str = '"anthropic:claude-sonnet-5"'  # a value of it
    compares: bool = (
        False  # the result for a record depends on others: an erasure then removes all parts
    )
    temporary: tuple[
        str, ...
    ] = ()  # files and folders in its folder that are removed when the stage is finished
    needs: Requirement | None = None  # beside a plain installation and the packages of its model

    def make(self, *arguments: Any) -> Any:
        """Call the module's `make_stage`."""
        return import_module(f"h2htalk.curation.{self.module}").make_stage(*arguments)


_FREE_OR_PAID = '"anthropic:claude-sonnet-5", or "embedded", which costs nothing,'
# In the order in which records pass through them.
STAGES: Mapping[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage("gather", "gather.stage", GatherSettings, needs=GATHERING),
        Stage("anonymize", "anonymize.stage", AnonymizeSettings, needs=ANONYMIZATION),
        Stage("safety", "safety.stage", SafetySettings, needs=SAFETY),
        Stage(
            "dedup",
            "dedup.stage",
            DedupSettings,
            compares=True,
            temporary=("duplicates.jsonl", "work"),
            needs=DEDUPLICATION,
        ),
        Stage("compose", "compose.stage", ComposeSettings, required="model", example=_FREE_OR_PAID),
        Stage(
            "review",
            "review.stage",
            ReviewSettings,
            reads="candidates",
            required="model",
            compares=True,
        ),
    )
}
FIRST_STAGE = next(iter(STAGES))


def find_stage(name: str) -> Stage:
    """The record of a stage; raises ConfigError for an unknown name."""
    if name not in STAGES:
        raise ConfigError(
            f"no stage {quoted(name)}; {suggest(name, STAGES)}choose from {', '.join(STAGES)}"
        )
    return STAGES[name]


def require_stages(names: Iterable[str] = ()) -> None:
    """Raise MissingExtraError where a package of these stages, or of all, is not installed. Nothing is read."""
    for name in names or STAGES:
        stage = find_stage(name)
        if stage.needs is not None:
            stage.needs.require()


def require_stage_models(spec: CurateSpec, name: str) -> None:
    """Raise MissingExtraError or ConfigError where a model that a stage's settings name lacks a package or a key."""
    section: Any = spec.section(find_stage(name).settings)
    for model in _models_of(section):
        require_model(model)
    if isinstance(section, SafetySettings) and section.dangers == "encoder":
        DANGER_ENCODER.require()


def missing_packages(spec: CurateSpec, name: str) -> list[str]:
    """What packages of the models of a stage are not installed, each with the command that installs them.

    Keys of hosted models are not asked for. Raises ConfigError for an unknown engine.
    """
    section: Any = spec.section(find_stage(name).settings)
    needs = [parse_model(model)[0].needs for model in _models_of(section)]
    if isinstance(section, SafetySettings) and section.dangers == "encoder":
        needs.append(DANGER_ENCODER)
    messages: list[str] = []
    for requirement in dict.fromkeys(needs):
        try:
            if requirement is not None:
                requirement.require()
        except MissingExtraError as error:
            messages.append(str(error))
    return messages


def _models_of(section: Any) -> list[str]:
    """The models that the settings of a stage name."""
    models = [getattr(section, "model", ""), getattr(section, "guard", "")]
    if isinstance(section, GatherSettings):
        models += [section.simulate.user, section.simulate.companion]
    return [model for model in models if model]


def stages_from(name: str) -> list[str]:
    """The names of a stage and of those after it, in order."""
    names = list(STAGES)
    return names[names.index(find_stage(name).name) :]


def stage_before(name: str) -> str:
    """The name of the stage whose output a stage reads; empty for the first one."""
    names = ["", *STAGES]
    return names[names.index(find_stage(name).name) - 1]


@strict_record
class GeneralSettings:
    """Settings outside the sections."""

    workspace: FilePath  # the folder of the curation
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] = (
        0  # of everything that is drawn at random
    )
    processes: Annotated[int, Field(ge=1, le=1024)] | None = (
        None  # that work on parts; None: the usable cores
    )
    part: Annotated[int, Field(ge=1, le=1_000_000)] = (
        250  # dialogues in a part, which is repeated after a kill
    )
    prompts: FilePath = ""  # a folder of templates that replace bundled ones
    prices: FilePath = ""  # a file of model prices that replace bundled ones


@dataclass(frozen=True, slots=True)
class CurateSpec(GeneralSettings):
    """A whole specification: `sections` holds a record for each stage, `folder` is the folder of its file."""

    sections: tuple[object, ...] = ()
    folder: Path = Path()

    def section(self, kind: type[T]) -> T:
        """The section of this type; with default values where the specification has none."""
        return (
            next((section for section in self.sections if isinstance(section, kind)), None)
            or kind()
        )


def read_spec(
    path: Path, *, workspace: Path | None = None, processes: int | None = None
) -> CurateSpec:
    """Read a specification; `workspace` and `processes` replace the values in the file.

    Raises ConfigError, which names file and setting, where one is missing, unknown or wrong.
    """
    raw = read_toml(path, 1 << 22)
    if workspace is not None:
        raw["workspace"] = "."  # replaced below: a `$` that the shell left in a path is no variable
    if processes is not None:
        raw["processes"] = processes
    folder = path.resolve().parent
    given = {name: raw.pop(name, {}) for name in STAGES}
    general = read_section(GeneralSettings, raw, folder, str(path), known=list(STAGES))
    sections = tuple(
        read_section(one.settings, given[name], folder, f"{path}: {name}")
        for name, one in STAGES.items()
    )
    spec = CurateSpec(**asdict(general), sections=sections, folder=folder)
    return replace(spec, workspace=str(workspace.resolve())) if workspace is not None else spec


def read_section(
    kind: type[T],
    raw: object,
    folder: Path,
    where: str,
    page: str = "docs/reference/curation.md",
    known: Sequence[str] = (),
) -> T:
    """Read a strict record; messages start with `where`, that of an unknown setting names the `page` that lists all."""
    unknown = f"{page} lists them"
    return read_record(
        kind,
        raw,
        where,
        error=ConfigError,
        unknown=unknown,
        other_names=known,
        context={"folder": folder},
    )
