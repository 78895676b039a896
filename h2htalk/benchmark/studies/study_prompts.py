"""The texts of a study: what the companion is told in each arm, and what it is asked beside the conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.case import Case
from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import Language, find_language
from h2htalk.data.persona import Persona
from h2htalk.data.scenario import Scenario, Tags
from h2htalk.data.splits import load_split
from h2htalk.text.fences import Fence
from h2htalk.text.jinja_templates import Templates, read_templates

CONTROLS = ("rules", "reworded")  # arms with a text of their own in place of SAP
_EMPTY = "..."  # in place of an empty reply: APIs refuse messages without text
_TAGS = Tags("unknown", "intermediate", "memory", "none")


@dataclass(frozen=True, slots=True, eq=False)
class StudyPrompts:
    """The bundled templates of studies, and the prompts of `evaluate` for SAP and for the memory arm's own tasks."""

    templates: Templates
    prompts: PromptSet
    _scaffolds: dict[tuple[str, Language, Sap], str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, folder: Path | None = None) -> StudyPrompts:
        """Load them; templates of `folder`, tried on a split first, replace those of `evaluate`. Raises ConfigError."""
        bundled = read_templates(Path(str(files("h2htalk.benchmark.studies") / "prompts")))
        own = PromptSet.load_for(folder, load_split("mini"), Sap.parse("full")) if folder else PromptSet.load()
        return cls(Templates.of(bundled), own)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of everything that decides the texts of a companion; the judge has its own."""
        own = {name: text for name, text in self.templates.sources.items() if "/judge_" not in name}
        content = json.dumps([self.prompts.fingerprint, own], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def judge_texts(self) -> dict[str, str]:
        """The templates of the judge, by name."""
        return {name: text for name, text in self.templates.sources.items() if "/judge_" in name}

    def scaffold(self, arm: str, sap: Sap, language: Language) -> str:
        """The safety text of an arm: SAP's principles, a control arm's own text, or nothing."""
        if (key := (arm, language, sap)) not in self._scaffolds:
            rows = self.prompts.help_rows[language]
            self._scaffolds[key] = (
                self.templates.render(f"{language}/{arm}.j2", {"help_rows": rows})
                if arm in CONTROLS
                else sap.render(language, self.prompts.templates, rows)
            )
        return self._scaffolds[key]

    def conversation(
        self, case: Case, persona: Persona, scaffold: str, turns: Sequence[Turn], memories: Sequence[str] = ()
    ) -> tuple[Message, ...]:
        """The prompt for the reply to the last of some turns; an empty reply of before stands as three dots."""
        language = case.language
        danger = case.study in ("high_risk", "look_alike")
        who = persona.descriptions[language]
        values: dict[str, object] = {
            "persona": who,
            "scaffold": scaffold,
            "memories": list(memories),
            "sentences": 6 if danger else 3,
            "words": find_language(language).lengths["crisis_reply" if danger else "long_reply"],
        }
        text = self.templates.render(f"{language}/conversation.j2", values)
        shared = len(who) + (len(scaffold) + 2 if scaffold else 0)
        chat = [Message("user" if t.role == "user" else "assistant", t.content.strip() or _EMPTY) for t in turns]
        return Message("system", text, shared=shared), *chat

    def request_type(self, case: Case, types: Sequence[str], fence: Fence) -> tuple[Message, ...]:
        """The question which of some types of request the last message of a case makes."""
        turns = [*case.history, *(Turn("user", turn.user) for turn in case.turns())]
        text = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
        rules = self.templates.render(f"{case.language}/request_type.j2", {"types": list(types)})
        return Message("system", rules, shared=len(rules)), Message("user", fence.around(text, "conversation"))

    def memory_task(self, case: Case, persona: Persona, **inputs: Any) -> tuple[Message, ...]:
        """RecollectionSynthesis of a session's `history`, or RecollectionRefinement of `memories`, oldest first."""
        scenario = Scenario(
            id=case.id,
            subtask="recollection_synthesis" if "history" in inputs else "recollection_refinement",
            language=case.language,
            persona=case.persona,
            inputs=inputs,
            references=(),
            tags=_TAGS,
            provenance={},
            licence=case.licence,
        )
        return self.prompts.messages(scenario, persona, Sap(()))
