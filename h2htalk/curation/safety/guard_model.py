"""A guard model that is asked about the undecided: Qwen3Guard, Llama Guard, or OpenAI's moderation endpoint.

`vllm:Qwen/Qwen3Guard-Gen-4B`, `server:MODEL@URL` (any chat model whose reply is one of the two guards' forms) and
`openai:omni-moderation-latest`. A reply that is in neither form is undecided, never safe.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.engines import parse_model
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.curation.model_calls.stored_calls import Asking, AskSettings
from h2htalk.curation.pipeline import Incomplete
from h2htalk.data.append_log import AppendLog
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import read_jsonl
from h2htalk.progress import Progress

Safety = Literal["safe", "unsafe", "controversial", "undecided"]

# The guards' names of categories -> ours. What a guard flags and we keep (violence told, privacy) has no code: it
# removes nothing by itself.
QWEN = {
    "sexual content or sexual acts": "sexual.explicit",
    "suicide & self-harm": "crisis.ideation",
    "unethical acts": "offensive.abuse",
    "politically sensitive topics": "political.sensitive",
    "violent": "offensive.violence",
    "non-violent illegal acts": "illegal.advice",
    "jailbreak": "prompt_leak.instruction",
}
QWEN_ONLY_NAMED = ("pii", "personally identifiable information", "copyright violation")
LLAMA = {
    "s1": "offensive.violence",
    "s2": "illegal.advice",
    "s3": "sexual.explicit",
    "s4": "sexual.minors",
    "s9": "illegal.advice",
    "s10": "offensive.hate",
    "s11": "crisis.ideation",
    "s12": "sexual.explicit",
    "s13": "political.sensitive",
}
MODERATION = {
    "harassment": "offensive.abuse",
    "harassment/threatening": "offensive.abuse",
    "hate": "offensive.hate",
    "hate/threatening": "offensive.hate",
    "self-harm": "crisis.self_harm",
    "self-harm/intent": "crisis.ideation",
    "self-harm/instructions": "crisis.ideation",
    "sexual": "sexual.explicit",
    "sexual/minors": "sexual.minors",
    "illicit": "illegal.advice",
    "illicit/violent": "illegal.advice",
    "violence": "offensive.violence",
    "violence/graphic": "offensive.violence",
}
# A guard's reply is a few lines; anything longer is another model's talk.
LONGEST_REPLY = 2000
_SAFETY = re.compile(r"^\s*Safety:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_CATEGORIES = re.compile(r"^\s*Categories:[ \t]*(.*)$", re.MULTILINE)
_LLAMA = re.compile(r"\s*(safe|unsafe)\s*(?:\n\s*(S\d{1,2}(?:\s*,\s*S\d{1,2})*)\s*)?", re.IGNORECASE)
# The last so many messages of a dialogue are shown: guards' contexts are short.
MESSAGES = 40
LONGEST = 4000  # characters of a message


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a guard said: and its categories, by its own name, as our codes."""

    safety: Safety
    categories: Mapping[str, str] = field(default_factory=dict)


UNDECIDED = Verdict("undecided")


def parse(reply: str) -> Verdict:
    """A guard's reply in Qwen3Guard's form (`Safety: ...`, `Categories: ...`) or Llama Guard's (`unsafe`, `S1,S10`).

    Undecided for everything else: no verdict, two of them, an unknown word or category, `unsafe` without a category.
    """
    if len(reply) > LONGEST_REPLY:
        return UNDECIDED
    said = _SAFETY.findall(reply)
    if said:
        return _qwen(said, _CATEGORIES.findall(reply))
    match = _LLAMA.fullmatch(reply)
    if match is None:
        return UNDECIDED
    names = [name.strip().lower() for name in (match[2] or "").split(",") if name.strip()]
    if match[1].lower() == "safe":
        return UNDECIDED if names else Verdict("safe")
    if not names or any(not 1 <= int(name[1:]) <= 14 for name in names):
        return UNDECIDED
    return Verdict("unsafe", {name.upper(): LLAMA[name] for name in names if name in LLAMA})


def _qwen(said: Sequence[str], listed: Sequence[str]) -> Verdict:
    word = said[0].lower()
    if len(said) != 1 or len(listed) != 1 or word not in ("safe", "unsafe", "controversial"):
        return UNDECIDED
    names = [name.strip() for name in listed[0].split(",") if name.strip() and name.strip().lower() != "none"]
    known = {name: QWEN.get(name.lower()) for name in names}
    if any(code is None and name.lower() not in QWEN_ONLY_NAMED for name, code in known.items()):
        return UNDECIDED
    codes = {name: code for name, code in known.items() if code is not None}
    if (word == "safe") == bool(names):
        return UNDECIDED  # a safe text has no category, an unsafe one has
    return Verdict(
        "unsafe" if word == "unsafe" else "controversial" if word == "controversial" else "safe", codes
    )


def moderated(result: Mapping[str, Any]) -> Verdict:
    """One result of the moderation endpoint; undecided where it is not in its form."""
    flagged, categories = result.get("flagged"), result.get("categories")
    if not isinstance(flagged, bool) or not isinstance(categories, Mapping):
        return UNDECIDED
    hit = sorted(name for name, value in categories.items() if value is True)
    if flagged != bool(hit):
        return UNDECIDED
    return Verdict(
        "unsafe" if flagged else "safe", {name: MODERATION[name] for name in hit if name in MODERATION}
    )


def request(dialogue: Dialogue) -> Request:
    """The dialogue as chat messages: a guard's own template adds the policy. Nothing of it is an instruction to it."""
    roles: dict[str, Literal["user", "assistant"]] = {"user": "user", "companion": "assistant"}
    turns = dialogue.messages[-MESSAGES:]
    while len(turns) > 1 and turns[0].role == "companion":  # templates want the user to begin
        turns = turns[1:]
    messages = tuple(Message(roles[turn.role], turn.content[:LONGEST]) for turn in turns)
    return Request(dialogue.id, messages, Sampling(temperature=0.0, max_tokens=64, thinking=0))


class Guard:
    """A guard and the folder where its answers lie: every answer is stored, a restart asks for none of them again."""

    def __init__(self, model: str, folder: Path, max_cost: float | None = None, prices: str = "") -> None:
        """`folder` is the stage's, `prices` as in `AskSettings`. Raises ConfigError for an unknown engine."""
        engine, name = parse_model(model)
        self._name, self._folder = name, folder
        self._asking: Asking | None = None
        if not (engine.name == "openai" and "moderation" in name):
            self._asking = Asking(AskSettings(model, max_cost, prices=prices), folder, "safety")

    def ask(self, dialogues: Sequence[Dialogue], part: str) -> dict[str, Verdict]:
        """The verdict on every dialogue, by id.

        Raises:
            Incomplete: calls failed after their retries; a restart asks for the rest.
            ConfigError, ModelCallError: no call can succeed.
        """
        if not dialogues:
            return {}
        if self._asking is not None:
            answers = self._asking.ask([request(dialogue) for dialogue in dialogues], part)
            return {dialogue.id: _verdict(answers[dialogue.id, 0]) for dialogue in dialogues}
        return self._moderate(dialogues, part)

    def close(self) -> None:
        """Give back the model and its ledger. Harmless when called twice."""
        if self._asking is not None:
            self._asking.close()

    def _moderate(self, dialogues: Sequence[Dialogue], part: str) -> dict[str, Verdict]:
        path = self._folder / "calls" / f"{part}.jsonl"
        stored = {}
        if path.exists():
            lines = (line for _, line in read_jsonl(path, torn_tail=True))
            # Answers of another guard may lie there too.
            stored = {(line["id"], line["prompt"]): line["result"] for line in lines if "result" in line}
        texts = {dialogue.id: _transcript(dialogue) for dialogue in dialogues}
        prints = {item: hashlib.sha256(f"{self._name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
                  for item, text in texts.items()}  # fmt: skip
        missing = [item for item in texts if (item, prints[item]) not in stored]
        if missing:
            with AppendLog(path) as log:
                for item, result in self._moderations({item: texts[item] for item in missing}):
                    stored[item, prints[item]] = result
                    log.append({"id": item, "prompt": prints[item], "result": result})
        return {item: moderated(stored[item, prints[item]]) for item in texts}

    def _moderations(self, texts: Mapping[str, str]) -> Any:
        """Each text's result as it comes, through the provider's SDK."""
        import openai

        from h2htalk.chat.hosted.openai_engine import OPENAI

        key, url = OPENAI.read_key(), OPENAI.read_url()
        with (
            openai.OpenAI(api_key=key, base_url=url, max_retries=4, timeout=60.0) as client,
            Progress("safety calls", len(texts)) as progress,
        ):
            for item, text in texts.items():
                try:
                    found = client.moderations.create(model=self._name, input=text)
                except openai.AuthenticationError as error:
                    from h2htalk.errors import ConfigError

                    raise ConfigError(
                        "OpenAI refuses the key in OPENAI_API_KEY; set one that works"
                    ) from error
                except openai.OpenAIError as error:
                    raise Incomplete(
                        f"the moderation call for {item} failed: {type(error).__name__}"
                    ) from error
                progress.advance()
                yield item, _plain(found)


def _plain(found: Any) -> dict[str, Any]:
    """A moderation's first result as JSON; empty where there is none, which is undecided."""
    results = found.model_dump(by_alias=True).get("results") or []
    first = results[0] if len(results) == 1 and isinstance(results[0], dict) else {}
    kept = {name: first[name] for name in ("flagged", "categories", "category_scores") if name in first}
    return json.loads(json.dumps(kept, default=str))  # type: ignore[no-any-return]


def _transcript(dialogue: Dialogue) -> str:
    """A dialogue as one text: lone surrogates, which no request can carry, become question marks."""
    lines = (f"{turn.role}: {turn.content[:LONGEST]}" for turn in dialogue.messages[-MESSAGES:])
    return "\n".join(lines).encode("utf-8", "replace").decode()


def _verdict(reply: Reply) -> Verdict:
    return UNDECIDED if reply.finish_reason != "stop" else parse(reply.text)
