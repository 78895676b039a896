"""Ask a guard model about undecided dialogues: Qwen3Guard, Llama Guard, or OpenAI's moderation endpoint.

`vllm:Qwen/Qwen3Guard-Gen-4B`, `server:MODEL@URL` (any chat model that replies in the form of one of the two guards) and
`openai:omni-moderation-latest`. A reply in neither form is undecided, never safe.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.engines import parse_model
from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.files import AppendLog, read_jsonl
from h2htalk.data.responses import CALLS
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, IncompleteError
from h2htalk.progress import Progress
from h2htalk.text.language_data import read_data

Safety = Literal["safe", "unsafe", "controversial", "undecided"]

LONGEST_REPLY = 2000  # characters; a guard replies with a few lines
_CODES = Path(__file__).with_name("guard_categories.toml")  # ours, by those of each guard
_WORDS: Mapping[str, Safety] = {"safe": "safe", "unsafe": "unsafe", "controversial": "controversial"}
_SAFETY = re.compile(r"^\s*Safety:[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_CATEGORIES = re.compile(r"^\s*Categories:[ \t]*(.*)$", re.MULTILINE)
_LLAMA = re.compile(r"\s*(safe|unsafe)\s*(?:\n\s*(S\d{1,2}(?:\s*,\s*S\d{1,2})*)\s*)?", re.IGNORECASE)
# The last messages of a dialogue that a guard reads, and characters of each: the contexts of guards are short.
MESSAGES, LONGEST = 40, 4000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A guard's verdict, and our codes of its categories by the guard's names."""

    safety: Safety
    categories: Mapping[str, str] = field(default_factory=dict)


UNDECIDED = Verdict("undecided")


def parse(reply: str) -> Verdict:
    """Parse a reply in the form of Qwen3Guard (`Safety: ...`, `Categories: ...`) or Llama Guard (`unsafe`, `S1,S10`).

    Undecided in all other cases: no verdict, two verdicts, an unknown word or category, `unsafe` without a category.
    """
    if len(reply) > LONGEST_REPLY:
        return UNDECIDED
    words, listed = _SAFETY.findall(reply), _CATEGORIES.findall(reply)
    if words:
        if len(words) != 1 or len(listed) != 1:
            return UNDECIDED
        return _verdict(words[0].lower(), [n for n in _names(listed[0]) if n.lower() != "none"], "qwen")
    match = _LLAMA.fullmatch(reply)
    return _verdict(match[1].lower(), _names((match[2] or "").upper()), "llama") if match else UNDECIDED


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _verdict(word: str, names: Sequence[str], form: str) -> Verdict:
    """The verdict of a word and the names of categories: a safe text has none, any other has some."""
    codes = read_data(_CODES)[form]
    if any(name.lower() not in codes for name in names) or (word == "safe") == bool(names):
        return UNDECIDED
    known = {name: codes[name.lower()] for name in names if codes[name.lower()]}
    return Verdict(_WORDS.get(word, "undecided"), known if word in _WORDS else {})


def moderated(result: Mapping[str, Any]) -> Verdict:
    """The verdict of one result of the moderation endpoint; undecided where it has another form."""
    flagged, categories = result.get("flagged"), result.get("categories")
    if not isinstance(flagged, bool) or not isinstance(categories, Mapping):
        return UNDECIDED
    hit = sorted(name for name, value in categories.items() if value is True)
    if flagged != bool(hit):
        return UNDECIDED
    codes = read_data(_CODES)["moderation"]
    return Verdict("unsafe" if flagged else "safe", {name: codes[name] for name in hit if name in codes})


def request(dialogue: Dialogue) -> Request:
    """The dialogue as chat messages; the guard's own template adds the policy."""
    roles: dict[str, Literal["user", "assistant"]] = {"user": "user", "companion": "assistant"}
    turns = dialogue.messages[-MESSAGES:]
    while len(turns) > 1 and turns[0].role == "companion":  # templates require the user to begin
        turns = turns[1:]
    messages = tuple(Message(roles[turn.role], turn.content[:LONGEST]) for turn in turns)
    return Request(dialogue.id, messages, Sampling(temperature=0.0, max_tokens=64, thinking=0))


def was_sent(dialogue: Dialogue, one: Evidence) -> bool:
    """Whether a request holds all that a piece of evidence is about: its span, its message, or the dialogue."""
    lengths = [one.end or len(turn.content) for turn in dialogue.messages]
    first = len(lengths) - len(request(dialogue).messages)
    about = range(len(lengths)) if one.turn < 0 else (one.turn,)
    return all(at >= first and lengths[at] <= LONGEST for at in about)


def is_moderation(model: str) -> bool:
    """Whether a model answers at a moderation endpoint, for free. Raises ConfigError for an unknown engine."""
    engine, name = parse_model(model)
    return engine.moderates and "moderation" in name


class Guard:
    """A guard, and the folder of its stored replies: a restart asks for none of them again."""

    def __init__(self, settings: CallSettings, folder: Path) -> None:
        """`folder` is the stage's. Raises ConfigError for an unknown engine."""
        self._name, self._folder = parse_model(settings.model)[1], folder
        self._calls = None if is_moderation(settings.model) else ModelCalls(settings, folder, "safety")

    def ask(self, dialogues: Sequence[Dialogue], part: str) -> dict[str, Verdict]:
        """The verdict on every dialogue, by id.

        Raises:
            IncompleteError: calls failed after their retries; a restart calls again.
            ConfigError, ModelCallError: no call can succeed.
        """
        if not dialogues:
            return {}
        if self._calls is not None:
            replies = self._calls.ask([request(dialogue) for dialogue in dialogues], part)
            return {dialogue.id: _read(replies[dialogue.id, 0]) for dialogue in dialogues}
        return self._moderate(dialogues)

    def close(self) -> None:
        """Release the model and its store. May be called twice."""
        if self._calls is not None:
            self._calls.close()

    def _moderate(self, dialogues: Sequence[Dialogue]) -> dict[str, Verdict]:
        path = self._folder / CALLS
        lines = [line for _, line in read_jsonl(path, torn_tail=True)] if path.exists() else []
        # Replies of another guard may be stored there too.
        stored = {(line["id"], line["prompt"]): line["result"] for line in lines if "result" in line}
        texts = {dialogue.id: _transcript(dialogue) for dialogue in dialogues}
        keys = {item: (item, self._fingerprint(text)) for item, text in texts.items()}
        missing = {item: texts[item] for item, key in keys.items() if key not in stored}
        if missing:
            with AppendLog(path) as log:
                for item, result in self._moderations(missing):
                    stored[keys[item]] = result
                    log.append({"id": item, "stage": "safety", "prompt": keys[item][1], "text": "", "result": result})
        return {item: moderated(stored[key]) for item, key in keys.items()}

    def _fingerprint(self, text: str) -> str:
        return hashlib.sha256(f"{self._name}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _moderations(self, texts: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """The result of each text, through the provider's SDK."""
        import openai

        from h2htalk.chat.hosted.hosted_chat import OpenAIChat

        opened = OpenAIChat.open_client(*OpenAIChat.read_environment())
        with (
            opened.with_options(max_retries=4, timeout=60.0) as client,
            Progress("safety calls", len(texts)) as progress,
        ):
            for item, text in texts.items():
                try:
                    found = client.moderations.create(model=self._name, input=text)
                except openai.AuthenticationError as error:
                    raise ConfigError("OpenAI refuses the key in OPENAI_API_KEY; set a valid one") from error
                except openai.OpenAIError as error:
                    raise IncompleteError(f"the moderation call for {item} failed: {type(error).__name__}") from error
                progress.advance()
                yield item, _plain(found)


def _plain(found: Any) -> dict[str, Any]:
    """The one result of a moderation as JSON; empty, and so undecided, where there is not exactly one."""
    results = found.model_dump(by_alias=True).get("results") or []
    first = results[0] if len(results) == 1 and isinstance(results[0], dict) else {}
    kept = {name: first[name] for name in ("flagged", "categories", "category_scores") if name in first}
    return json.loads(json.dumps(kept, default=str))  # type: ignore[no-any-return]


def _transcript(dialogue: Dialogue) -> str:
    """A dialogue as one text; lone surrogates, which no request can carry, become question marks."""
    lines = (f"{turn.role}: {turn.content[:LONGEST]}" for turn in dialogue.messages[-MESSAGES:])
    return "\n".join(lines).encode("utf-8", "replace").decode()


def _read(reply: Reply) -> Verdict:
    return UNDECIDED if reply.finish_reason != "stop" else parse(reply.text)
