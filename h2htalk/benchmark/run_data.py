"""Read what a run folder holds: the split, the prompts and the responses that its signature names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.benchmark.generate import PromptOf
from h2htalk.benchmark.prompts.prompt_set import ASSEMBLY_VERSION, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.protocol import Message
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.errors import DataError

UNKNOWN = "unknown"  # the prompts of imported answers
REVISION_LENGTH = 23  # "sha256:" and 16 hex digits


@dataclass(frozen=True, slots=True)
class RunData:
    """The content of a run folder: the split, the specification, and each item's prompt (None for imported answers)."""

    folder: RunFolder
    spec: EvaluateSpec
    split: Split
    prompt_of: PromptOf | None
    note: str = ""


def read_run_data(path: Path) -> RunData:
    """Read a run folder, and check it against its signature.

    Raises:
        DataError: it is no run folder, or its scenarios, templates or specification are not those it was
            made with (edited, or made by another version of the prompts).
    """
    folder = RunFolder(path)
    spec = EvaluateSpec.from_dict(folder.read_run()["spec"], str(path / "run.json"))
    signature, split = folder.signature(), folder.split()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    _require_agreement(folder.inputs, "items", items, signature.protocol)
    _require_agreement(path / "run.json", "samples", str(spec.samples), signature.subject)
    if signature.protocol.get("prompts") == UNKNOWN:
        return RunData(folder, spec, split, None)
    sap = Sap.parse(spec.sap)
    prompts = PromptSet.load_for(folder.prompts, split, sap)
    _require_agreement(folder.prompts, "prompts", prompts.fingerprint, signature.protocol)
    _require_agreement(path / "run.json", "sap", str(sap), signature.subject)
    if prompts.assembly != ASSEMBLY_VERSION:
        note = "this version of h2htalk builds prompts in another way: prompt leaks were searched for by phrases only"
        return RunData(folder, spec, split, None, note)

    def prompt_of(scenario: Scenario) -> tuple[Message, ...]:
        return prompts.messages(scenario, split.personas[scenario.persona], sap)

    return RunData(folder, spec, split, prompt_of)


def _require_agreement(where: Path, key: str, found: str, signed: Mapping[str, str]) -> None:
    if found != signed.get(key):
        raise DataError(
            f"{where}: {key} are not those of the run's signature ({found}, signed {signed.get(key, '-')}): edited, or "
            "another version of h2htalk; put them back, or evaluate into a new folder"
        )
