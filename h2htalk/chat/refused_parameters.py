"""What a server refuses in a request: find the parameter that an error names, and ask again in its other form.

Errors name it in many ways: `param` and `code` (OpenAI), `loc` (FastAPI, vLLM, Mistral), a list of field violations
(Google), a Rust reader's sentence (TGI, DeepSeek), a template's (llama.cpp, LM Studio), or a plain sentence. Only a
parameter that was sent can be the one, and an error about one item (too long a prompt) is none.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from h2htalk.chat.error_bodies import NO_ENDPOINT
from h2htalk.chat.wire_options import PARAMETERS, TOKEN_LIMITS, parameters_of
from h2htalk.errors import ConfigError
from h2htalk.text.escaping import printable

T = TypeVar("T")
_DEEPEST = 8  # levels of an error that are read
_LONGEST = 4096  # characters of an error that are read
_REFUSING = frozenset({400, 405, 406, 415, 422, 501})
# llama.cpp, SGLang and LM Studio answer so where a chat template refuses a role.
_TEMPLATE_FAILED = 500
_NO_PROVIDER = 404  # of a router that knows the model
# Of Python: a server that passes all fields on fails so; and of LiteLLM, whose old versions answer 500.
_FAILED = re.compile(r"unexpected keyword argument|does not support parameters:")
# `n` in words: Google's candidates, and others' choices.
_MANY = re.compile(
    r"(?i)multiple candidates|only one (?:candidate|completion|choice)|candidate_?count"
)
# Keys whose values repeat the request, or point to documentation.
_ECHOES = frozenset({"input", "ctx", "url", "doc_url", "documentation_url", "request", "help"})

# The parameter itself is refused, whatever its value.
_UNKNOWN = re.compile(
    r"""(?ix) unsupported | unavailable | unrecogni[sz]ed | unknown | unexpected | extraneous | deprecated | forbidden |
    n[o']t \s (?:currently \s)? (?:support | available | allowed | permitted | enabled | recogni[sz]ed | accept) |
    (?:n[o']t | only) \s (?:support | take | accept | valid | implemented) | enabled \s only |
    cannot \s (?:find \s field | be \s disabled) | no \s such | no \s endpoints? \s found | not \s a \s valid |
    too \s many \s states |
    extra \s (?:input | field | argument | key) | is \s disabled |
    fail\w* \s to \s (?:parse | compile | convert | initiali[sz]e) \s (?:the \s)? (?:grammar | json[ _]schema) |
    schema \s conversion \s failed | use \s ['"`]?max_\w+tokens |
    不支持 | 未知 | 无法识别 | 不允许 | 多余"""
)
# Its value is refused: so it is in every call, since all have the same.
_VALUE = re.compile(
    r"(?i)invalid|must be|must not|must contain|should (?:not )?be|cannot unmarshal|"
    r"only .{0,40}(?:allowed|supported|accepted)|out of range|not one of|"
    r"expected|cannot (?:both )?be|非法|无效|必须|取值|参数有误"
)
# Errors about one item, or about the account: no other form helps.
_ITEM = re.compile(
    r"(?is)context[ _](?:length|window|size)|prompt is too long|too (?:many tokens|large|long)|inputs.{1,40}tokens|"
    r"content[ _](?:filter|policy|management)|rate limit|quota|sensitive"
)
# What an error says of the longest reply that a model writes.
_NAMES_LIMIT = re.compile(
    r"(?i)max_?(?:completion_?|output_?|new_?)?tokens|(?:completion|output) tokens"
)
_OF_CONTEXT = re.compile(
    r"(?i)context[ _](?:length|size)|\b(?:input|prompt) tokens"
    r"|tokens in the (?:messages|prompt|input)|\binputs?\W{1,3}tokens"
)
_NUMBER = r"[`'\"]?(\d[\d,]{0,12})"
_MOST_TOKENS = re.compile(
    rf"(?i)\bat most {_NUMBER}|\d > {_NUMBER}|(?:less|lower|smaller) than(?: or equal to)? {_NUMBER}|<= ?{_NUMBER}"
    rf"|\bfrom \d+ (?:\(inclusive\) )?to {_NUMBER}"
    rf"|\[\s*\d+\s*,\s*{_NUMBER}\s*[\])]|\bbetween \d+ and {_NUMBER}|\b(?:exceed|above|over)\w* {_NUMBER}"
    rf"|\b(?:maximum|max|limit)\b[^.\d]{{0,60}}?\b(?:is|of|to|:) {_NUMBER}|不能?(?:大于|超过|高于)\s*{_NUMBER}"
)
_SYSTEM = re.compile(
    r"""(?ix) system \s (?:role|prompt|message|instruction)s? \b .{0,60}? (?:n[o']t\b|unsupported|never) |
    (?:n[o']t|unsupported|invalid|unexpected|unknown|without) \b .{0,60}? \b system \s (?:role|prompt|message|instr) |
    (?:n[o']t \s support|unsupported|invalid|unexpected|unknown) .{0,40}? \b role \W{1,4} system \b |
    \b role ['"`]? \s does \s not \s support \s ['"`]? system | \b role \W{1,4} system \W .{0,40}? n[o']t |
    only \s user (?:,|\s and|\s or) .{0,40}? (?:roles?|messages?) | developer \s instructions? .{0,40}? n[o']t |
    no \s endpoints .{0,20} system | 不支持 .{0,12} (?:system|系统) | (?:system|系统) .{0,20} 不支持"""
)
# A template that knows two roles says only this; so it does of a chat whose turns do not alternate.
_ALTERNATE = re.compile(r"(?i)roles? must alternate")
# OpenRouter names no parameter: one after the other is tried, first what the fewest providers take.
_NAMES_NONE = re.compile(r"(?i)no endpoints found that can handle the requested parameters")
_LIKELIEST = (
    "response_format",
    "reasoning_effort",
    "chat_template_kwargs",
    "seed",
    "top_p",
    "temperature",
)
# Short names that are also words: they count in quotation marks, or beside a word for a parameter.
_WORDS = frozenset({"n", "seed", "store", "system"})


class RefusedParameterError(ConfigError):
    """A server refuses a parameter that every call has.

    Args:
        advice: the message, which advises an engine option.
        notice: what is printed where another form is asked.
        next_form: the engine option that asks in another form; may be empty.
        flag_advice: what else the user can do at a command with the model's own flags; follows the advice.
    """

    def __init__(
        self, advice: str, notice: str, next_form: Mapping[str, str], flag_advice: str = ""
    ) -> None:
        super().__init__(f"{advice}, or {flag_advice}" if flag_advice else advice)
        self.advice = advice
        self.notice = notice
        self.next_form = dict(next_form)

    def name_option(self, option: str) -> None:
        """Advise an option of another name, at a command that has no other flags for the model."""
        self.args = (self.advice.replace("--engine-option", option),)
        self.notice = self.notice.replace("--engine-option", option)


@dataclass(slots=True)
class _Error:
    """The fields of an error's JSON.

    `paths`: paths of parameters, such as `response_format.type`. `extra`: the paths of parameters that must not be
    there. `texts`: its sentences.
    """

    paths: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


def find_refused(status: int, body: object, request: Mapping[str, Any] | None = None) -> str:
    """Return the parameter that an error refuses, as `PARAMETERS` names it; empty where it is about something else.

    Args:
        status: status of the answer.
        body: its JSON, or its bytes.
        request: the JSON that was sent, as nothing else can have been refused; None where it is not at hand.
    """
    sent = frozenset(PARAMETERS) if request is None else parameters_of(request)
    names = [name for name in PARAMETERS if name in sent]
    if not names or status not in (*_REFUSING, _TEMPLATE_FAILED, _NO_PROVIDER):
        return ""
    error = _Error()
    _collect(body, error, 0)
    text = " ".join(error.texts)
    if _ITEM.search(text):
        return ""
    if "system" in names:
        needs_alternation = _ALTERNATE.search(text) and _alternates(request)
        if needs_alternation or _SYSTEM.search(text):
            return "system"
    if status not in _REFUSING and not (_FAILED.search(text) or NO_ENDPOINT.search(text)):
        return ""
    if "n" in names and _MANY.search(text):
        return "n"
    refused = _refused_path(error, text, names) or _refused_in_text(error.texts, names)
    if not refused and _NAMES_NONE.search(text):
        return next((name for name in _LIKELIEST if name in names), "")
    return refused


def limit_of_reply(status: int, body: object, request: Mapping[str, Any] | None) -> int | None:
    """Return the most tokens that a model writes in one reply, where an error says that more were asked for.

    None where it says nothing of this kind, or speaks of the model's context, which depends on the item.
    """
    if status not in (400, 422) or request is None:
        return None
    sent = next((request[name] for name in TOKEN_LIMITS if type(request.get(name)) is int), None)
    error = _Error()
    _collect(body, error, 0)
    text = " ".join(error.texts)
    names_limit = _NAMES_LIMIT.search(" ".join([text, *error.paths])) is not None
    if sent is None or not names_limit or _OF_CONTEXT.search(text):
        return None
    for mention in _MOST_TOKENS.finditer(text):
        number = next(filter(None, mention.groups()))
        limit = int(number.replace(",", ""))
        if text.startswith(" (exclusive)", mention.end()):  # Google
            limit -= 1
        if 0 < limit < sent:
            return limit
    return None


def _alternates(request: Mapping[str, Any] | None) -> bool:
    """Whether the turns of a request alternate, the user first, so that only the system text can be in the way."""
    messages = () if request is None else request["messages"]
    roles = [message["role"] for message in messages if message["role"] != "system"]
    users = roles[::2]
    companions = roles[1::2]
    return bool(roles) and {*users} == {"user"} and {*companions} <= {"assistant"}


def _refused_path(error: _Error, text: str, names: list[str]) -> str:
    """Return the parameter that a field of the error names."""
    for path in (*error.extra, *error.paths):
        name = _name_in_path(path, names)
        if name and (path in error.extra or name not in TOKEN_LIMITS or _UNKNOWN.search(text)):
            return name
    return ""


def _name_in_path(path: str, names: list[str]) -> str:
    for step in re.split(r"[.\[\]/]+", path):
        if step not in ("", "body", "json"):
            return next((name for name in names if _spelling(step) == _spelling(name)), "")
    return ""


def _refused_in_text(texts: list[str], names: list[str]) -> str:
    """Return the parameter that the first sentence which refuses something names first."""
    for text in texts:
        unknown = _UNKNOWN.search(text)
        if not unknown and not _VALUE.search(text):
            continue
        mentions: list[tuple[int, str]] = []
        for name in names:
            position = _mention(text, name)
            if position is not None and (unknown or name not in TOKEN_LIMITS):
                mentions.append((position, name))
        if mentions:
            _, name = min(mentions)
            return name
    return ""


def _mention(text: str, name: str) -> int | None:
    """Return where a text names a parameter, in snake or camel case or by one of its other names; None where it does
    not."""
    first, *later = name.split("_")
    camel = first + "".join(word.capitalize() for word in later)
    spellings = sorted({name, camel, *PARAMETERS[name].names}, key=len, reverse=True)
    pattern = "|".join(map(re.escape, spellings))
    if name in _WORDS:
        quoted = rf"['\"`\[](?:body\.)?({pattern})['\"`\]]"
        nouns = r"param(?:eter)?s?|arguments?|fields?|supplied|keys?|property|option"
        # `unsupported parameter(s): seed`, `argument not supported on this model: seed`
        after_noun = (
            rf"(?:because|{nouns})(?:\(s\))?[\s:]+({pattern})\b"
            rf"|\b(?:{nouns})(?:\(s\))?\s[^:.\n]{{0,40}}:\s*({pattern})\b"
        )
        before_noun = (
            rf"\b({pattern})\b[\s:]+(?:param(?:eter)?|argument|field|参数)"
            rf"|^\s*({pattern})(?:\s*:|\s*>|\s+(?:is|must|should|not)\b)"
        )
        mention = re.search(rf"(?i){quoted}|{after_noun}|{before_noun}", text)
    else:
        mention = re.search(rf"(?i)(?<!\w)(?:{pattern})(?!\w)", text)
    return None if mention is None else mention.start()


def _spelling(name: str) -> str:
    return name.replace("_", "").lower()


def _collect(value: Any, error: _Error, depth: int, key: str = "") -> None:
    """Read the fields of an error at any depth; texts that hold JSON are read too, as gateways wrap one in another."""
    if depth > _DEEPEST:
        return
    if isinstance(value, bytes):
        value = value[:_LONGEST].decode("utf-8", "replace")
    if isinstance(value, Mapping):
        _collect_fields(value, error)
        for name, inner in value.items():
            if name not in _ECHOES and name not in ("loc", "param"):
                _collect(inner, error, depth + 1, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            _collect(inner, error, depth + 1, key)
    elif isinstance(value, str):
        _collect_text(value[:_LONGEST], error, depth)


def _collect_fields(fields: Mapping[Any, Any], error: _Error) -> None:
    location = fields.get("loc")
    if isinstance(location, list | tuple):
        _add_path(map(str, location), str(fields.get("type", "")), error)
    param = fields.get("param")
    if isinstance(param, str) and param:
        error.paths.append(param)
        error.texts.append(f"'{param}'")


def _add_path(steps: Iterable[str], kind: str, error: _Error) -> None:
    path = ".".join(steps)
    error.paths.append(path)
    if "extra" in kind or "unexpected" in kind:
        error.extra.append(path)
    if "messages" in path and re.search(r"\b(?:role|system)\b", path):
        error.texts.append("system role not supported")


# Python's own text of a list of errors: vLLM sends it in place of JSON.
_PYTHON_ERROR = re.compile(r"'type': '([\w.]+)', 'loc': \(([^)]*)\)")


def _collect_text(text: str, error: _Error, depth: int) -> None:
    if text.lstrip()[:1] in ("{", "["):
        try:
            _collect(json.loads(text), error, depth + 1)
        except (ValueError, RecursionError):
            pass  # a sentence that begins with a bracket
        else:
            return
    python_errors = list(_PYTHON_ERROR.finditer(text))
    for python_error in python_errors:
        _add_path(re.findall(r"'([^']*)'", python_error[2]), python_error[1], error)
    if python_errors:  # everything else repeats the request
        text = " ".join(re.findall(r"'msg': ['\"](.*?)['\"], '", text))
    error.texts.append(text)


def refusal(model: str, name: str, form: str, message: str) -> RefusedParameterError:
    """Return the error for a refused parameter.

    `form`: the option's value that was refused, empty where none was given.
    """
    parameter = PARAMETERS[name]
    next_form = parameter.next_form(form)
    label = f"the {name} role" if name == "system" else name
    if _NAMES_NONE.search(message):
        label = f"a parameter, perhaps {label}"
    refused = f"{model} does not take {label} ({message})"
    notice = ""
    for option, value in next_form.items():
        notice = f"{refused}: asking again with --engine-option {option}={value}"
    advice = parameter.advice()
    if name in TOKEN_LIMITS and form:
        advice = "it takes neither name of the limit; choose another model or server"
    return RefusedParameterError(f"{refused}: {advice}", notice, next_form, parameter.instead)


def with_other_forms(
    run: Callable[[Mapping[str, str]], T], engine_options: Mapping[str, str], option: str = ""
) -> T:
    """Call `run` with engine options; where the server refuses a parameter that has another form, print that and call
    it again with this form. `option`: the command line's name of such options where it is not `--engine-option`.

    Raises RefusedParameterError where there is no other form.
    """
    options = dict(engine_options)
    while True:
        try:
            return run(options)
        except RefusedParameterError as error:
            if option:
                error.name_option(option)
            if not error.next_form or error.next_form.items() <= options.items():
                error.next_form = {}  # a caller that sets engine options, too, tries nothing
                raise
            announce(error)
            options = {**options, **error.next_form}  # `run` may keep the other ones


def announce(error: RefusedParameterError) -> None:
    """Print which form is asked in now."""
    print(printable(error.notice), file=sys.stderr, flush=True)
