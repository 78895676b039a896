"""The specification of an evaluation: one frozen record, from the command line or a TOML file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from h2htalk.chat.engines import ENGINES, engine_names
from h2htalk.data.arguments import PathText, check_fields, typed
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.subtasks import find_subtask
from h2htalk.errors import ConfigError, quoted, suggest

# Bounds of the whole numbers and times; larger values are typing errors or damaged files.
_RANGES: dict[str, tuple[float, int | None]] = {
    "limit": (1, None),
    "samples": (1, 1000),
    "max_tokens": (1, 1_000_000),
    "concurrency": (1, 10_000),
    "seed": (0, None),
    "timeout": (0.001, 86_400),
    "deadline": (0.001, 604_800),
    "attempts": (1, 100),
    "thinking": (0, 1_000_000),
    "max_cost": (0, 1_000_000_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateSpec:
    """One model on one split.

    The first block of fields names the work, the second decides the numbers (it is in the signature), and the third
    decides how the work is done.

    Attributes:
        model: `ENGINE:NAME` (`h2htalk.chat.engines.open_chat`) or `baseline:NAME`.
        split: a bundled split, a folder or a file.
        out: the run folder; made when missing, resumed when it holds this same run.
        language, subtasks, limit: which scenarios (`Split.select`).
        sap: `full`, `none`, or `no-PRINCIPLE[,no-PRINCIPLE]`.
        embedder: `bge-m3`, `minilm`, `none`, or a name (`h2htalk.text.embeddings.embedders.open_embedder`).
        rouge: `f1` or `recall`.
        contracts: `package`; `none` checks no answer's form, for prompts of one's own that ask for another.
        samples: answers an item; more than one needs a temperature.
        temperature, top_p, seed: sampling; temperature 0 is greedy.
        model_sampling: leave all three to the model, for APIs that refuse them; always so for `anthropic:`.
        max_tokens: reply budget; None takes each subtask's own.
        thinking: tokens of reasoning on top of that; 0 switches reasoning off, None leaves it to the model.
        engine_options: options of the engine itself, as text (`vllm:` only).
        prompts: a folder of templates that replace bundled ones.
        baselines: score the three baselines beside the model.
        concurrency: requests in flight. timeout: seconds an attempt may take, at most a day.
        attempts: tries a call, the first included. deadline: seconds one call to a hosted API may take in all.
        download: fetch an `hf:` model that is not in the local Hugging Face cache.
        batch: send everything as batch jobs at half the price (`openai:` and `anthropic:`).
        max_cost: US dollars that the run may cost in all, possibly paid calls included; None sets no limit.
        prices: a price file that replaces bundled prices.
        accept_endpoint: continue a run whose earlier answers came from another URL; every table then says so.
    """

    model: str
    split: PathText
    out: PathText

    language: str | None = None
    subtasks: tuple[str, ...] = ()
    limit: int | None = None
    sap: str = "full"
    embedder: str = "bge-m3"
    rouge: str = "f1"
    contracts: str = "package"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    model_sampling: bool = False
    max_tokens: int | None = None
    thinking: int | None = None
    seed: int = 0
    prompts: PathText | None = None
    engine_options: Mapping[str, str] = field(default_factory=dict)

    baselines: bool = True
    concurrency: int = 64
    timeout: float = 120.0
    attempts: int = 4
    deadline: float = 900.0
    download: bool = False
    batch: bool = False
    max_cost: float | None = None
    prices: PathText | None = None
    accept_endpoint: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        _check_texts(self)
        if self.language not in (None, *LANGUAGES):
            raise ConfigError(f"--language {quoted(self.language)}: choose from {', '.join(LANGUAGES)}")
        for name in self.subtasks:
            find_subtask(name, "--subtask")
        if self.rouge not in ("f1", "recall"):
            raise ConfigError(
                f"--rouge {quoted(self.rouge)}: {suggest(self.rouge, ('f1', 'recall'))}choose from f1, recall"
            )
        if self.contracts not in ("package", "none"):
            raise ConfigError(f"--contracts {quoted(self.contracts)}: choose from package, none")
        _check_ranges(self)
        if not 0 <= self.temperature <= 5:
            raise ConfigError(f"--temperature is {self.temperature}; it must be 0 to 5")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"--top-p is {self.top_p}; it must be above 0, at most 1")
        _check_engine(self)
        if self.samples > 1 and self.sampling_temperature == 0:
            raise ConfigError(
                f"--samples {self.samples} with temperature 0 would give {self.samples} times the same answer; "
                "set --temperature, such as 0.7"
            )
        # -0.0 samples as 0 does, and would stand in the signature as another value.
        object.__setattr__(self, "temperature", abs(self.temperature))

    @property
    def out_path(self) -> Path:
        return Path(self.out)

    @property
    def engine(self) -> str:
        return self.model.partition(":")[0]

    @property
    def sampling_temperature(self) -> float | None:
        """The sampling temperature; None where the model uses its own."""
        return None if self.model_sampling or _draws_by_itself(self) else self.temperature

    def to_dict(self) -> dict[str, Any]:
        plain = asdict(replace(self, engine_options={})) | {"engine_options": dict(self.engine_options)}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in plain.items()}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> EvaluateSpec:
        """Read a table of the attributes above.

        Raises:
            ConfigError: an unknown or missing key, or a value of the wrong kind; starts with `where`.
        """
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(raw) - set(known))
        if unknown:
            meant = suggest(unknown[0], known)
            raise ConfigError(f"{where}: unknown key {', '.join(unknown)}; {meant}choose from {', '.join(known)}")
        for key in ("model", "split", "out"):
            if key not in raw:
                raise ConfigError(f"{where}: {key} is missing; give it on the command line or in the specification")
        if isinstance(raw.get("engine_options"), Mapping):
            raw = {
                **raw,
                "engine_options": {str(key): _as_text(value) for key, value in raw["engine_options"].items()},
            }
        kinds = get_type_hints(cls, include_extras=True)
        return cls(**{key: typed(value, kinds[key], f"{where}: {key}") for key, value in raw.items()})


def _as_text(value: object) -> object:
    """Return an engine option as the command line gives it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _check_engine(spec: EvaluateSpec) -> None:
    """Raise ConfigError for settings that the engine does not support."""
    engine = ENGINES.get(spec.engine)
    if engine is None and spec.engine != "baseline":
        return  # refused, with the choices, where models are opened
    if spec.engine_options and not (engine and engine.options):
        able = ", ".join(other.name for other in ENGINES.values() if other.options)
        raise ConfigError(
            f"--engine-option: {spec.engine} has no engine options ({', '.join(spec.engine_options)}); {able} has"
        )
    # It would only lengthen the replies of a model that never reasons.
    if spec.thinking is not None and not (engine and engine.reasons):
        raise ConfigError(f"--thinking: {spec.engine} does not reason; leave it out")
    if spec.model_sampling and (engine is None or engine.sampling == "taken"):
        able = ", ".join(other.name for other in ENGINES.values() if other.sampling != "taken")
        raise ConfigError(f"--model-sampling: {spec.engine}: draws replies itself; it is for {able}")
    if spec.download and not (engine and engine.downloads):
        raise ConfigError(f"--download is for {engine_names(downloads=True)} only, not for {spec.engine}")
    _check_own_sampling(spec)
    hosted_only = {"batch": spec.batch, "max_cost": spec.max_cost is not None, "prices": bool(spec.prices)}
    for name, given_one in hosted_only.items():
        if given_one and not (engine and engine.hosted):
            hosted = engine_names(hosted=True)
            raise ConfigError(f"{_option(name)} is for {hosted} only, not for {spec.engine}")


def _draws_by_itself(spec: EvaluateSpec) -> bool:
    engine = ENGINES.get(spec.engine)
    return engine is not None and engine.sampling == "none"


def _check_own_sampling(spec: EvaluateSpec) -> None:
    """Raise ConfigError for sampling settings that the model would ignore."""
    given = {"temperature": bool(spec.temperature), "top_p": spec.top_p != 1.0, "seed": bool(spec.seed)}
    options = " and ".join(_option(name) for name, value in given.items() if value)
    if options and _draws_by_itself(spec):
        raise ConfigError(
            f"{spec.engine}: takes neither temperature nor top-p nor seed: leave out {options}, the model draws by "
            "itself"
        )
    if options and spec.model_sampling:
        raise ConfigError(f"--model-sampling leaves sampling to the model: leave out {options}, or --model-sampling")


def _option(name: str) -> str:
    """Return the command line's name of an attribute."""
    return "MODEL" if name == "model" else f"--{name.replace('_', '-')}"


def _check_texts(spec: EvaluateSpec) -> None:
    for name in ("model", "split", "out"):
        if not getattr(spec, name).strip():
            raise ConfigError(f"{_option(name)} is empty; it needs a name")
    for attribute in fields(spec):
        value = getattr(spec, attribute.name)
        if isinstance(value, str) and "\0" in value:
            raise ConfigError(f"{_option(attribute.name)} holds the character NUL, which no name can: {quoted(value)}")


def _check_ranges(spec: EvaluateSpec) -> None:
    for name, (lowest, highest) in _RANGES.items():
        value, option = getattr(spec, name), _option(name)
        if value is not None and not value >= lowest:  # so that NaN is refused
            raise ConfigError(f"{option} is {value}; it must be {lowest} or more")
        if value is not None and highest is not None and value > highest:
            raise ConfigError(f"{option} is {value}; it must be {highest:,} or less")


def read_spec(path: Path, overrides: Mapping[str, Any] | None = None) -> EvaluateSpec:
    """Read a specification from a TOML file or the `run.json` of a run; `overrides` replace its values.

    The `out` of a run is the folder of its run.json, which may have been moved.

    Raises:
        ConfigError: the file cannot be read, holds a wrong key or value, or is of imported answers.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix == ".json":
            raw = {**json.loads(text)["spec"], "out": str(path.parent)}
        else:
            raw = tomllib.loads(text)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ConfigError(f"{path}: not a readable specification: {error}") from error
    spec = EvaluateSpec.from_dict({**raw, **(overrides or {})}, str(path))
    if spec.model.startswith("imported:"):
        raise ConfigError(f"{path}: imported answers cannot be asked for; use `h2htalk score`")
    return spec
