"""The specification of a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.benchmark.prompts.sap import PRINCIPLES, Sap
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.engines import parse_model
from h2htalk.data.files import read_toml
from h2htalk.data.settings import PathText, check_fields, read_settings
from h2htalk.errors import ConfigError, quoted, suggest

StudyName = Literal["sap", "instructions", "memory", "logs"]
CASES: Mapping[
    str, tuple[str, ...]
] = {  # the kinds of cases of a study; the first is also its split
    "sap": ("high_risk", "look_alike"),
    "instructions": ("instructions",),
    "memory": ("arcs",),
    "logs": ("high_risk",),
}
SAP_ARMS = ("sap", "none", "rules", "reworded")
MEMORY_ARMS = ("none", "window", "explicit", "whole")
APP = "app"  # the one arm of an application, whose prompt and memory are its own
APP_MODEL, LOGS_MODEL = "app:", "logs:"  # an application that is talked to, and chats that it had


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpec:
    """A model in a study."""

    study: (
        StudyName  # `sap`: Table 3; `instructions`: Fig. 7; `logs`: chats that an application had
    )
    ask: EvaluateSpec  # the model, the cases, the folder, how the model is asked; its `sap` where that is no arm
    arms: tuple[
        str, ...
    ] = ()  # `SAP_ARMS`, `no-PRINCIPLE`, `MEMORY_ARMS`; empty: all but `no-PRINCIPLE`
    window: Annotated[
        int,
        Field(
            ge=1,
            le=1000,
            description="Messages that the arm window keeps; of logs, that a rater reads.",
        ),
    ] = 12
    days: Annotated[int, Field(ge=0, le=1000, description="Neutral days between two sessions.")] = 0
    help_lines: Annotated[
        Literal["all", "none"],
        Field(description="all: every arm is told of help lines, also without SAP; or none."),
    ] = "all"
    judge: Annotated[
        str, Field(description="ENGINE:NAME that answers points which code cannot.")
    ] = ""
    judge_max_cost: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="US dollars that judging may cost in all."),
    ] = None
    judge_options: Annotated[
        Mapping[str, str],
        Field(
            description="KEY=VALUE, an option of the judge's engine; may be repeated.",
            title="judge_option",
        ),
    ] = field(default_factory=dict)
    app: PathText | None = None  # for `app:URL` the TOML file that describes the application
    points: Annotated[
        PathText | None, Field(description="JSONL of the points that each reply is checked for.")
    ] = None
    persona: Annotated[
        PathText | None, Field(description="A TOML file of the companion, as personas of a split.")
    ] = None

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        if str(self.ask.model).startswith(APP_MODEL) != (self.app is not None):
            raise ConfigError(
                "--adapter goes with an application: h2htalk study app URL --adapter FILE.toml"
            )
        if str(self.ask.model).startswith(LOGS_MODEL) != self.is_logged or (
            not self.is_logged and (self.points or self.persona)
        ):
            raise ConfigError(
                "--points and --persona go with chats that were had: h2htalk study logs CHATS.jsonl"
            )
        if len(set(self.arms)) < len(self.arms):
            raise ConfigError("--arms: one arm is named twice")
        if self.is_app and self.ask.engine_options:
            raise ConfigError(
                "--engine-option is for models that are asked, and here none is; leave it out"
            )
        if self.ask.samples > 1 or self.ask.subtasks:
            raise ConfigError(
                "a study has one conversation a case and arm: leave out --samples and --subtask"
            )
        if self.judge_options and not self.judge:
            raise ConfigError("--judge-option is for a --judge, and here is none; leave it out")
        if self.judge:
            engine, _ = parse_model(self.judge)
            engine.check_options(self.judge_options)
        if self.app is not None:
            from h2htalk.chat.server import http_parts

            url = self.ask.model.removeprefix(APP_MODEL)
            advice = "what is secret belongs in [headers] of the adapter"
            http_parts(url, "the application", "http://127.0.0.1:8080", advice, query="")
        arms_of_study = {
            "sap": SAP_ARMS,
            "instructions": (str(Sap.parse(self.ask.sap)),),
            "memory": MEMORY_ARMS,
        }
        choices = default = (APP,) if self.is_app else arms_of_study[self.study]
        if default == SAP_ARMS:
            choices = (*default, *(f"no-{name.replace('_', '-')}" for name in PRINCIPLES))
        arms = (
            tuple(name.replace("_", "-") if name.startswith("no-") else name for name in self.arms)
            or default
        )
        for name in set(arms).difference(choices):
            raise ConfigError(
                f"--arms {quoted(name)}: {suggest(name, choices)}choose from {', '.join(choices)}"
            )
        object.__setattr__(self, "arms", arms)

    def sap_of(self, arm: str) -> Sap:
        """The principles of an arm; none for the control arms, which have a text of their own."""
        if self.study != "sap":
            return Sap.parse(self.ask.sap)
        return Sap.parse(
            {"sap": "full", "rules": "none", "reworded": "none", APP: "none"}.get(arm, arm)
        )

    @property
    def is_app(self) -> bool:
        """Whether an application with its own prompt and memory answers, or has answered."""
        return self.is_logged or str(self.ask.model).startswith(APP_MODEL)

    @property
    def is_logged(self) -> bool:
        """Whether the replies stand in chats that were had, and nobody is asked."""
        return self.study == "logs"

    def to_dict(self) -> dict[str, Any]:
        ask = replace(self.ask, function=None, name="")  # a function may not be copied
        bare = replace(self, judge_options={}, ask=ask)
        plain = asdict(bare) | {"judge_options": dict(self.judge_options)}
        return plain | {"arms": list(self.arms), "ask": self.ask.to_dict()}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> StudySpec:
        """Read what `to_dict` gave. Raises ConfigError."""
        return read_settings(
            cls, {**raw, "ask": EvaluateSpec.from_dict(raw.get("ask", {}), where)}, where
        )


def read_study_spec(study: str, given: Mapping[str, Any], path: Path | None = None) -> StudySpec:
    """Make the specification of a study of its settings and those of how the model is asked, in one table.

    `path`: a TOML file of such a table, which `given` overrides; paths in it are as on the command line. Cases are the
    study's own where none are named, and there is no embedder. `each_principle` adds an arm without each one of SAP's.
    Raises ConfigError.
    """
    file: dict[str, Any] = read_toml(path) if path else {}
    study = study or str(file.get("study", "sap"))  # of an application the file may say which
    table: dict[str, Any] = {"split": CASES.get(study, (study,))[0], "embedder": "none"}
    table |= {**({"concurrency": 4} if "app" in given else {}), **file, **given}
    if table.pop("study", study) != study:
        raise ConfigError(
            f"{path}: is of another study than {study}: leave `study` out, or call that command"
        )
    arms = table.get("arms")
    if isinstance(arms, str):
        table["arms"] = tuple(filter(None, map(str.strip, arms.split(","))))
    if table.pop("each_principle", False):  # as arms of their own beside those that are named
        without = [f"no-{name.replace('_', '-')}" for name in PRINCIPLES]
        table["arms"] = [*dict.fromkeys([*(table.get("arms") or SAP_ARMS), *without])]
    keys = {**StudySpec.__dataclass_fields__, **EvaluateSpec.__dataclass_fields__}
    for key in sorted(table.keys() - keys):
        raise ConfigError(
            f"{path}: unknown key {key}; {suggest(key, keys)}choose from {', '.join(sorted(keys))}"
        )
    of_study = {key: table.pop(key) for key in [*table] if key in StudySpec.__dataclass_fields__}
    return StudySpec.from_dict({"study": study, "ask": table, **of_study}, str(path or ""))
