"""The specifications of an evaluation and of judging: frozen records, from the command line or a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from h2htalk.chat.engines import ENGINES, Engine, parse_model
from h2htalk.chat.wire_options import NONE, sampling_left_out
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import NOT_EMPTY, Text
from h2htalk.data.responses import FilterRule
from h2htalk.data.settings import PathText, check_fields, option_of, read_settings
from h2htalk.data.subtasks import SubtaskName
from h2htalk.errors import ConfigError, suggest


def _about(text: str, **limits: Any) -> Any:
    return Field(description=text, **limits)


EMBEDDERS = "bge-m3, minilm (English), none, or a name."
if TYPE_CHECKING:
    Model = Any  # a record holds text, and may be made with a function
else:
    Model = Text
_Place = Annotated[PathText, NOT_EMPTY]
_Prompts = Annotated[PathText | None, _about("A folder of templates that replace bundled ones.")]
MaxCost = Annotated[
    float | None,
    _about(
        "US dollars that all calls of the run may cost.",
        ge=0,
        le=1_000_000_000,
        allow_inf_nan=False,
    ),
]
_Prices = Annotated[PathText | None, _about("A price file that replaces bundled prices.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSpec:
    """One model on one split.

    The first block of fields names the work, the second decides the numbers (it is in the signature), and the third
    decides how the work is done. A field's description is the help of its option.

    Attributes:
        model: `ENGINE:NAME` (`h2htalk.chat.engines.open_chat`), `baseline:NAME`, or a function from the messages of a
            chat to a reply (`h2htalk.chat.function_chat`), which `name` names: the record then holds `python:NAME`.
        split: a bundled split, a folder or a file.
        out: the run folder; made when missing, resumed when it holds this same run.
        attempts: tries a call, the first included.
        deadline: seconds one call to a hosted API may take in all.
    """

    model: Model
    split: _Place
    out: _Place

    language: Annotated[Language | None, _about(f"{', '.join(LANGUAGES)}; all when left out.")] = (
        None
    )
    subtasks: Annotated[
        tuple[SubtaskName, ...], _about("A subtask; may be repeated.", title="subtask")
    ] = ()
    limit: Annotated[int | None, _about("A stratified sample of this many items.", ge=1)] = None
    sap: Annotated[str, _about("full, none, or no-PRINCIPLE (comma-separated).")] = "full"
    embedder: Annotated[str, _about(EMBEDDERS)] = "bge-m3"
    rouge: Annotated[
        Literal["f1", "recall"], _about("f1 (the authors' code) or recall (the paper's text).")
    ] = "f1"
    contracts: Annotated[
        Literal["package", "none"], _about("none where --prompts ask for another form.")
    ] = "package"
    samples: Annotated[
        int, _about("Answers an item; above 1 needs a temperature.", ge=1, le=1000)
    ] = 1
    # abs: -0.0 samples as 0 does, and would stand in the signature as another value
    temperature: Annotated[
        float, _about("0 is greedy.", ge=0, le=5, allow_inf_nan=False), AfterValidator(abs)
    ] = 0.0
    top_p: Annotated[float, _about("Nucleus sampling.", gt=0, le=1, allow_inf_nan=False)] = 1.0
    model_sampling: Annotated[bool, _about("Leave temperature, top-p and seed to the model.")] = (
        False
    )
    max_tokens: Annotated[
        int | None, _about("Reply budget; the task's own when left out.", ge=1, le=1_000_000)
    ] = None
    thinking: Annotated[
        int | None, _about("Tokens of reasoning besides the reply; 0: off.", ge=0, le=1_000_000)
    ] = None
    seed: Annotated[int, _about("Random seed of the sampling.", ge=0)] = 0
    prompts: _Prompts = None
    engine_options: Annotated[
        Mapping[str, str],
        _about(
            "KEY=VALUE, an option of the engine itself; may be repeated.", title="engine_option"
        ),
    ] = field(default_factory=dict)

    filtered: Annotated[
        FilterRule,
        _about("What a provider's filter declined counts as: refusal (of the model) or unscored."),
    ] = "refusal"
    baselines: Annotated[bool, _about("Score trivial answers next to the model.")] = True
    concurrency: Annotated[int, _about("Requests in flight.", ge=1, le=10_000)] = 64
    timeout: Annotated[
        float, _about("Seconds an attempt may take.", ge=0.001, le=86_400, allow_inf_nan=False)
    ] = 120.0
    attempts: Annotated[int, Field(ge=1, le=100)] = 4
    deadline: Annotated[float, Field(ge=0.001, le=604_800, allow_inf_nan=False)] = 900.0
    download: Annotated[bool, _about("Fetch an hf: model from the Hub if it is not cached.")] = (
        False
    )
    batch: Annotated[bool, _about("Send batch jobs at half the price (openai:, anthropic:).")] = (
        False
    )
    max_cost: MaxCost = None
    prices: _Prices = None
    accept_endpoint: Annotated[
        bool, _about("Continue a run that another URL answered; every table says so.")
    ] = False
    name: str = ""
    function: Callable[..., Any] | None = None  # that `model` was; no file holds it

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        if callable(self.model):
            name = self.name or getattr(self.model, "__qualname__", "<")
            if not self.name and name.endswith(("<", "<lambda>")):
                raise ConfigError(
                    "name is missing: say what tables call this function, such as name='my companion'"
                )
            object.__setattr__(self, "function", self.model)
            object.__setattr__(self, "model", f"python:{name}")
        check_fields(self)
        _check_engine(self)
        if (
            self.samples > 1
            and self.sampling_temperature == 0
            and "temperature" not in self.left_out
        ):
            raise ConfigError(
                f"--samples {self.samples} with temperature 0 would give {self.samples} times the same answer; "
                "set --temperature, such as 0.7"
            )

    @property
    def out_path(self) -> Path:
        return Path(self.out)

    @property
    def engine(self) -> str:
        return str(self.model).partition(":")[0]

    @property
    def sampling_temperature(self) -> float | None:
        """The sampling temperature; None where the model uses its own."""
        engine = ENGINES.get(self.engine)
        return (
            None
            if self.model_sampling or (engine and engine.sampling == "none")
            else self.temperature
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which of temperature, top-p and seed an engine option leaves to the model."""
        return sampling_left_out(self.engine_options)

    def to_dict(self) -> dict[str, Any]:
        bare = replace(
            self, engine_options={}, name="", function=None
        )  # without what may not be copied
        plain = asdict(bare) | {"engine_options": dict(self.engine_options)}
        return {
            k: list(v) if isinstance(v, tuple) else v
            for k, v in plain.items()
            if k not in ("name", "function")
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> EvaluateSpec:
        """Read a table of the attributes above. Raises ConfigError, with a line for each key that is wrong."""
        if isinstance(
            options := raw.get("engine_options"), Mapping
        ):  # as the command line gives them
            texts = {
                str(k): json.dumps(v) if isinstance(v, int | float) else v
                for k, v in options.items()
            }
            raw = {**raw, "engine_options": texts}
        return read_settings(cls, raw, where)


# Fields that are for some engines alone.
_ENGINES_WITH: Mapping[str, Callable[[Engine], bool]] = {
    "thinking": lambda engine: engine.reasons,
    "model_sampling": lambda engine: engine.sampling != "taken",
    "download": lambda engine: engine.downloads,
    "batch": lambda engine: engine.hosted,
    "max_cost": lambda engine: engine.hosted,
    "prices": lambda engine: engine.hosted,
}


def _check_engine(spec: EvaluateSpec) -> None:
    engine = ENGINES.get(spec.engine)
    if spec.name and spec.function is None:
        raise ConfigError(f"name is for a function alone, not for {spec.model}; leave it out")
    if spec.function is not None and spec.max_tokens is not None:
        raise ConfigError(
            "--max-tokens: a function decides itself how long a reply is; leave it out"
        )
    if engine is None and spec.engine != "baseline":
        return  # refused, with the choices, where models are opened
    if spec.engine_options and not (engine and engine.options):
        able = ", ".join(engine.name for engine in ENGINES.values() if engine.options)
        raise ConfigError(
            f"--engine-option: {spec.engine} has no engine options ({', '.join(spec.engine_options)}); {able} have some"
        )
    for name, is_able in _ENGINES_WITH.items():
        value = getattr(spec, name)
        is_set = value is not None and value is not False
        if is_set and (engine is None or not is_able(engine)):
            names = " and ".join(able.name for able in ENGINES.values() if is_able(able))
            raise ConfigError(f"{option_of(name)} is for {names} only, not for {spec.engine}")
    sampled = {
        "temperature": bool(spec.temperature),
        "top_p": spec.top_p != 1.0,
        "seed": bool(spec.seed),
    }
    options = " and ".join(option_of(name) for name, value in sampled.items() if value)
    if options and engine is not None and engine.sampling == "none":
        neither = "takes neither temperature nor top-p nor seed"
        raise ConfigError(
            f"{spec.engine}: {neither}: leave out {options}, the model draws by itself"
        )
    contradicted = [name for name in spec.left_out if sampled[name]]
    if contradicted:
        advice = f"--engine-option {contradicted[0]}={NONE} leaves it to the model"
        raise ConfigError(
            f"{advice}: leave out {' and '.join(map(option_of, contradicted))}, or the engine option"
        )
    if options and spec.model_sampling:
        raise ConfigError(
            f"--model-sampling leaves sampling to the model: leave out {options}, or --model-sampling"
        )


def read_spec(path: Path, overrides: Mapping[str, Any] | None = None) -> EvaluateSpec:
    """Read a specification from a TOML file or the `run.json` of a run, whose `out` is that file's folder, which may
    have been moved; `overrides` replace its values. Raises ConfigError where the file cannot be read, holds a wrong key
    or value, or is of imported answers."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        raw = (
            {**json.loads(text)["spec"], "out": str(path.parent)}
            if path.suffix == ".json"
            else tomllib.loads(text)
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a readable specification: {error}") from error
    spec = EvaluateSpec.from_dict({**raw, **(overrides or {})}, str(path))
    if spec.model.startswith("imported:"):
        raise ConfigError(f"{path}: imported answers cannot be asked for; use `h2htalk score`")
    if spec.model.startswith("python:"):
        raise ConfigError(
            f"{path}: {spec.model} is a function, which no file holds; ask it from Python, or `score` it"
        )
    return spec


Scope = Literal["levels", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """Which judges read which answers of a run. A field's description is the help of its option.

    Attributes:
        run: the run folder, scored.
        judges: `ENGINE:NAME` of each; several are a panel, whose mean counts.
        batch: as of `EvaluateSpec`; timeouts are the engines' own.
    """

    run: PathText
    judges: tuple[str, ...]
    scope: Annotated[
        Scope, _about("levels (itinerary levels I to III, Eq. 3) or all subtasks.")
    ] = "levels"
    judgements: Annotated[
        int,
        _about(
            "Judgements of each answer by each judge; above 1 needs a temperature.", ge=1, le=100
        ),
    ] = 1
    temperature: Annotated[float, _about("0 is greedy.", ge=0, le=2, allow_inf_nan=False)] = 0.0
    thinking: Annotated[int | None, _about("Tokens of reasoning besides the reply.", ge=0)] = None
    reverse: Annotated[bool, _about("Put the rubric's qualities in reverse order.")] = False
    prompts: _Prompts = None
    engine_options: Annotated[
        Mapping[str, str],
        _about(
            "KEY=VALUE, an option of the judge's engine; may be repeated.", title="engine_option"
        ),
    ] = field(default_factory=dict)
    repeat_unscored: Annotated[bool, _about("Ask again where a reply could not be read.")] = False
    batch: Annotated[bool, _about("Send batch jobs (openai:, anthropic:).")] = False
    concurrency: Annotated[int, _about("Requests in flight.", ge=1)] = 32
    max_cost: MaxCost = None
    prices: _Prices = None

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        if not self.judges:
            raise ConfigError("--judge is missing; name a model, such as openai:gpt-4o")
        if len(set(self.judges)) < len(self.judges):
            raise ConfigError(
                "--judge: one judge is named twice; for several judgements of one use --judgements"
            )
        for judge in self.judges:
            engine, _ = parse_model(judge)
            if self.judgements > 1 and self.temperature_of(judge) == 0:
                raise ConfigError(
                    f"--judgements {self.judgements} with temperature 0 would give the same judgement each time; set "
                    "--temperature, such as 1"
                )
            if self.batch and not engine.hosted:
                raise ConfigError(f"--batch: {engine.name} has no batches; leave it out")
            if self.thinking is not None and not engine.reasons:
                raise ConfigError(f"--thinking: {engine.name} does not reason; leave it out")
            self.options_of(judge)
        if self.max_cost is not None and not any(
            parse_model(judge)[0].hosted for judge in self.judges
        ):
            raise ConfigError("--max-cost: no price of these judges is known; leave it out")
        known_options = {
            name for judge in self.judges for name in parse_model(judge)[0].option_names()
        }
        for name in sorted(self.engine_options.keys() - known_options):
            choices = (
                f"choose from {', '.join(sorted(known_options))}"
                if known_options
                else "leave it out"
            )
            raise ConfigError(
                f"--engine-option {name}: no judge's engine has it; {suggest(name, known_options)}{choices}"
            )

    def options_of(self, judge: str) -> dict[str, str]:
        """The engine options that a judge's engine has. Raises ConfigError for a value that cannot be."""
        engine, _ = parse_model(judge)
        options = {
            name: value
            for name, value in self.engine_options.items()
            if name in engine.option_names()
        }
        engine.check_options(options)
        return options

    @property
    def path(self) -> Path:
        return Path(self.run)

    def temperature_of(self, judge: str) -> float | None:
        """The sampling temperature; None where the model's API takes none."""
        return None if ENGINES[judge.partition(":")[0]].sampling == "none" else self.temperature
