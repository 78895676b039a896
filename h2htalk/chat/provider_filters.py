"""How providers say that a filter of their own declined a prompt, or stopped a reply.

One table has a record a provider: `provider_filters.toml`.

A filter is neither a failure of the call nor an answer of the model. Whatever words a provider has for it, the call
becomes a reply without text whose finish reason is `content_filter`; a run's specification says what that counts as.

Some say it by an HTTP status with a code or a sentence, others inside HTTP 200: by the finish reason of a choice, by a
mark beside it, or by an error in the body. Words of an account that was closed, or of a key, are no filter's, and
neither are those of a filter that could not be asked.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from h2htalk.data.replies.finish_reasons import FILTERED, REFUSAL, read_finish_reason
from h2htalk.errors import shorten

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProviderFilter:
    """How one provider reports its filter.

    Attributes:
        name: the provider, for messages.
        codes: codes, types and reasons of its errors, compared by their letters and digits in lower case.
        words: parts of its messages, in lower case.
    """

    name: str
    codes: Sequence[str] = ()
    words: Sequence[str] = ()

    def has_words(self, message: str) -> bool:
        """Whether a message, in lower case, has the provider's words."""
        return any(part in message for part in self.words)


_TABLE: Mapping[str, Any] = tomllib.loads(
    files("h2htalk.chat").joinpath("provider_filters.toml").read_text(encoding="utf-8")
)
PROVIDER_FILTERS = tuple(ProviderFilter(**record) for record in _TABLE["providers"])
# A provider that the table lacks: what the codes and sentences of all of them have in common.
_CODE_PARTS: Sequence[str] = _TABLE["code_parts"]
_SENTENCES = re.compile(
    r"content (?:management|moderation|filter(?:ing|s|ed)?|safety|security|usage)\b.{0,40}\b(?:polic|system|rule|check)"
    r"|(?:content|safety|moderation|security) filters?\b"
    r"|\b(?:violat\w+|against|breach\w*|(?:not|n[’']t|fails? to) (?:comply|adhere|align|conform)\w*)\b.{0,60}"
    r"\b(?:content|usage|safety|community|acceptable use|moderation)\b"
    r".{0,20}\b(?:polic|guideline|rule|standard|term)"
    r"|\b(?:content|usage|safety|moderation) (?:polic(?:y|ies)|guidelines?)\b.{0,40}"
    r"\b(?:violat|block|reject|refus|flag)"
    r"|\b(?:flagged|blocked|rejected|refused|declined|stopped|intercepted|censored|filtered|withheld)\b.{0,60}"
    r"\b(?:moderation|safety|guardrails?|(?:cortex|llama|prompt|content|granite|wild|qwen3?)[ _-]?guard|harmful|unsafe"
    r"|sensitive|inappropriate|content polic\w+|content restrictions?|responsible ai|risk control)"
    r"|\b(?:moderation|safety|guardrails?)\b.{0,40}\b(?:flagged|blocked|rejected|refused|declined|intervened|triggered)"
    r"|\b(?:contain|include|involve|detect)\w*\b.{0,40}\b(?:inappropriate|sensitive|harmful|unsafe|prohibited|illegal"
    r"|toxic|offensive|hateful) (?:content|information|words?|terms?|text|material|language)"
    r"|\bself[ -]?harm (?:content |language |risk )?(?:was |has been )?(?:detected|found|blocked)"
    r"|\b(?:content|prompts?|inputs?|messages?|outputs?) (?:(?:is|are|was|were|has been|have been) )?blocked\b"
    r".{0,30}\b(?:keyword|categor)|\bmoderation block\b"
    r"|\b(?:prompt|response) (?:is |was )?blocked\b|\bcontent sensitive\b|\bsensitive content\b"
    r"|\b(?:content|prompt|request|input|message)s? (?:is|are|was|were|goes|went) against\b.{0,30}"
    r"\b(?:polic|guideline|terms of)"
    r"|\b(?:inappropriate|sensitive|harmful|unsafe|prohibited) (?:content|words?|information)\b.{0,40}"
    r"\b(?:detect|found|block|reject|filter)"
    r"|\b(?:content|inputs?|outputs?|prompts?|messages?|text) (?:is|are|was|were|has|have) (?:been )?(?:deemed )?"
    r"(?:not safe|unsafe|harmful|inappropriate|sensitive|disallowed|flagged|moderated|censored)\b"
    r"|\bviolat\w+ (?:\S+ ){0,4}polic(?:y|ies)\b|\bflagged\b.{0,60}\bviolat|\b(?:disallowed|nsfw) content\b|\bnsfw\b"
    r"|内容敏感|涉敏|命中.{0,8}(?:敏感|风险|违禁)|违禁|敏感(?:词|内容|信息|话题)|不安全(?:或敏感)?内容|违规(?:内容|信息)|内容(?:违规|不合规|安全|审核|存在风险|不合法)"
    r"|不符合.{0,12}(?:法律|法规|政策)|(?:内容|输入|输出|回复|回答).{0,6}被(?:拦截|屏蔽)"
    r"|(?:涉及|包含|含有|存在).{0,12}(?:敏感|违规|违法|不当内容|不良)|违反.{0,16}(?:内容|使用|法律|政策|规范|条例)"
    r"|内容审查|风控|安全(?:审核|策略|过滤).{0,8}(?:拦截|拒绝|未通过)|審查|敏感內容"
)
# What concerns a whole account, a key or a network address: no call of it will be answered.
_ACCOUNT = re.compile(
    r"\b(?:accounts?|organi[sz]ations?|workspaces?|projects?|subscription|tenant|api[ -]?keys?|access"
    r"|ip(?:[ -]address(?:es)?)?)\b(?:\s*[\w.:-]*\d[\w.:-]*)?\s"
    r"(?:has|have|had|is|was|were|are|got) (?:been |currently |now |temporarily |permanently )*"
    r"(?:flagged|blocked|suspended|deactivated|disabled|terminated|banned|restricted|limited|closed|locked|frozen"
    r"|revoked|not (?:allowed|permitted|authori[sz]ed|verified)|in violation|under (?:review|investigation))"
    r"|\b(?:account|organi[sz]ation|workspace|project|api[ -]?key|ip(?: address)?) (?:\w+ ){0,2}violat(?:ed|es)\b"
    r"|\b(?:the|this) (?:user|key) (?:has been|was|is) (?:banned|blocked|suspended|disabled|revoked)\b"
    r"|\byou (?:have been|were|are) (?:temporarily |permanently )?(?:banned|blocked|suspended)"
    r"|\b(?:suspended|deactivated|disabled|terminated|banned|blocked|flagged|restricted|closed) (?:your|this|the) "
    r"(?:account|organi[sz]ation|workspace|project|api[ -]?key|access|ip)\b"
    r"|\b(?:account|access)[ _](?:suspended|deactivated|disabled|terminated|banned|restricted|blocked|closed)"
    r"|\breal[ -]name (?:registration|verification|authentication)|\bidentity verification\b"
    # Where it may come to that (a filter that warns), it has not.
    r"|(?<!导致)(?<!导致您的)(?<!导致你的)(?:账[号户]|帐[号户]|组织|企业|密钥|api ?key|\bip\b|ip地址|出口ip|网络环境)"
    r"(?:(?!可能|将会).){0,12}"
    r"(?:封禁|停用|冻结|禁用|异常|风控|限制|封号|被封|违规|违反|触发|拉黑)"
    r"|(?<!可能)(?<!否则将)(?<!将会)(?:封禁|停用|冻结|禁用|限制).{0,6}(?:账[号户]|帐[号户]|密钥|ip\b)|实名|更换网络"
)
# A filter that could not be asked: the prompt was not declined.
_OUTAGE = re.compile(
    r"\bservice (?:is |was )?(?:currently |temporarily )?(?:unavailable|down|overloaded|error|failure)"
    r"|\b(?:temporarily|currently) (?:unavailable|overloaded)|\bunreachable\b|time[d_ -]?\s?out|timeout"
    r"|\bconnection (?:was )?(?:refused|reset|error|failed|aborted|closed)|\bconnect error\b|\bno healthy upstream"
    r"|\b(?:fail\w*|unable) to (?:run|start|connect|execute|reach|evaluate|respond|load|call|complete)"
    r"|\b(?:could|can)(?:not| not|n[’']t) (?:be )?(?:run|reach|execute|connect|evaluate|load|complete)"
    r"|\binternal (?:server )?error\b|\bbad gateway\b"
    r"|服务(?:暂)?(?:不可用|异常|繁忙|超时|错误)|超时|风控.{0,12}稍后"
)
# What concerns a whole account, or a setting or the form of the request: no prompt of it was declined.
_NOT_OF_A_PROMPT = re.compile(
    r"(?:account|organi[sz]ation|workspace|project|subscription|api key|access)\b(?:(?!\b(?:may|might|could)\b).){0,40}"
    r"\b(?:suspend|deactivat|disabl|terminat|banned|restrict|closed|not (?:allowed|permitted|authorized))"
    r"|unsupported (?:parameter|value)|unrecognized|unknown (?:parameter|field)|extra inputs are not permitted"
    # OpenAI's code `invalid_prompt` is also that of a prompt in a wrong form.
    r"|invalid prompt\b.{0,20}\b(?:expected|must|should|missing|required|format)"
    r"|case.sensitive|\b(?:invalid|malformed) json\b|\bheaders?\b.{0,20}\bauthorization|\bauthorization header"
)
# Statuses that never report a filter: a wrong key, no credit, no such model, too many requests.
_OTHER_STATUSES = frozenset({401, 402, 404, 405, 407, 408, 409, 411, 413, 429})
_SERVER_ERROR = 500  # the first status of a server that failed
# Statuses with which a sentence alone, without a code of the table, reports a filter.
_SENTENCE_STATUSES = frozenset({0, 200, 400, 403, 406, 418, 421, 422, 424, 446, 451})
_CODE_FIELDS = frozenset(
    """
    code type status reason error_code status_code error_type errcode provider_code finish_reason
    native_finish_reason block_reason blockreason sub_code finishreason
    """.split()  # noqa: SIM905
)
# Fields that repeat the request: words of the prompt are no words of the provider.
_ECHOES = frozenset(
    """
    headers request_id id input inputs messages prompt request request_body
    """.split()  # noqa: SIM905
)
_DEEPEST = 6
_MOST_TEXT = 4000
_LONGEST_QUOTE = 120  # characters
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_PRIVATE = re.compile(
    r"(?i)\b(?:team|api key|organi[sz]ation|org|request[ _-]?id|user|trace[ _-]?id)\b\s*(?:id)?\s*[:=]"
    r"|https?:|\[|「"
)
_WRITTEN = re.compile(
    r"output|generated|machine outputted|completion|response (?:was )?blocked|生成|输出"
)
_UNWRITTEN = re.compile(r"due to the prompt|prompt (?:was )?(?:blocked|flagged|rejected)")


def find_filter(status: int, body: object) -> str | None:
    """Return whose filter an error reports, None where it reports none; `status` is 0 where it is unknown."""
    if status in _OTHER_STATUSES:
        return None
    codes, text = _read_error(body)
    words = text.lower()
    if _ACCOUNT.search(words):
        return None
    if _NOT_OF_A_PROMPT.search(words) and not any(
        provider.has_words(words) for provider in PROVIDER_FILTERS
    ):
        return None
    broke_down = _OUTAGE.search(words) is not None
    if broke_down and status >= _SERVER_ERROR:
        return None
    for provider in PROVIDER_FILTERS:
        has_code = any(_letters(code) in codes for code in provider.codes)
        if has_code or (not broke_down and provider.has_words(words)):
            return provider.name
    if _is_flagged(body):
        return "the provider"
    if broke_down:
        return None
    # A server that fails names the component that failed: `guardrail_error` is no filter's answer then.
    all_codes = " ".join(codes)
    if status < _SERVER_ERROR and any(part in all_codes for part in _CODE_PARTS):
        return "the provider"
    if status in _SENTENCE_STATUSES and _SENTENCES.search(words):
        return "the provider"
    return None


def names_account(status: int, body: object) -> bool:
    """Whether an error says that an account, an organisation, a key or an address may not ask, whatever it asks.

    A server that fails or that wants to be asked more slowly says it of this call only.
    """
    if status in _OTHER_STATUSES or status >= _SERVER_ERROR:
        return False
    _, text = _read_error(body)
    return _ACCOUNT.search(text.lower()) is not None


def quotable(message: str) -> str:
    """Return the first sentence of an error, without what may name an account, a request or words of the prompt."""
    sentence = _SENTENCE_END.split(message.strip(), maxsplit=1)[0]
    sentence = _PRIVATE.split(sentence, maxsplit=1)[0].strip(" ,;:([")
    return shorten(sentence, _LONGEST_QUOTE)


def was_written(message: str) -> bool:
    """Whether a filter may have stopped a reply that the model had written, and that may be billed."""
    words = message.lower()
    return _WRITTEN.search(words) is not None and _UNWRITTEN.search(words) is None


def read_ending(reason: str | None) -> str:
    """Return our word for the finish reason of an API's reply.

    APIs name a refusal where their own classifiers stopped the model (Anthropic and gateways to it); a model declines
    in a reply that ended by itself, or in a field of its own.
    """
    ending = read_finish_reason(reason)
    return FILTERED if ending == REFUSAL else ending


def filtered_choice(choice: object) -> str | None:
    """Return how a choice of an answer says that its reply was filtered, None where it does not.

    A finish reason decides alone. Marks beside it decide where the reply has no text.
    """
    if not isinstance(choice, Mapping):
        return None
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and read_ending(reason) == FILTERED:
        return f"finish reason {reason}"
    message = choice.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if content:
        return None
    native = choice.get("native_finish_reason")
    if isinstance(native, str) and read_ending(native) == FILTERED:
        return f"finish reason {native}"
    for name in ("content_filter_results", "content_filter_result"):
        if _filtered_categories(choice.get(name)):
            return name
    flag = choice.get("flag")
    if type(flag) is int and flag >= 2:  # Baidu: 0 and 1 are safe
        return f"flag {flag}"
    return None


def filtered_body(body: object) -> str | None:
    """Return how an answer without a reply says that its prompt was filtered, None where it does not."""
    if not isinstance(body, Mapping) or _has_reply(body):
        return None
    for feedback in objects_of([body.get("promptFeedback"), body.get("prompt_feedback")]):
        reason = feedback.get("blockReason") or feedback.get("block_reason")
        if reason:
            return f"block reason {reason}"
    for prompt in objects_of(body.get("prompt_filter_results")):
        if _filtered_categories(prompt.get("content_filter_results")):
            return "prompt_filter_results"
    for name in ("input_sensitive", "output_sensitive"):
        if body.get(name) is True:
            return name
    moderations = body.get("moderations")  # watsonx: its findings by detector
    if isinstance(moderations, Mapping):
        for detector, findings in moderations.items():
            if objects_of(findings):
                return f"moderations: {detector}"
    return None


def _has_reply(body: Fields) -> bool:
    """Whether a choice of an answer has text."""
    for choice in objects_of(body.get("choices")):
        message = choice.get("message")
        if isinstance(message, Mapping) and message.get("content"):
            return True
    return False


def objects_of(values: object) -> list[Fields]:
    """Return the JSON objects of a list; none where it is no list."""
    if not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, Mapping)]


def _filtered_categories(results: object) -> bool:
    """Whether a category of Azure's results was filtered."""
    if not isinstance(results, Mapping):
        return False
    categories = [category for category in results.values() if isinstance(category, Mapping)]
    return any(category.get("filtered") is True for category in categories)


def _is_flagged(body: object) -> bool:
    """Whether an error names what of the prompt was flagged: OpenRouter's moderation, GLM's list, Azure's results."""
    if not isinstance(body, Mapping):
        return False
    if isinstance(body.get("contentFilter"), list) and body["contentFilter"]:
        return True
    error = body.get("error")
    if not isinstance(error, Mapping):
        return False
    metadata = error.get("metadata")
    if isinstance(metadata, Mapping) and (metadata.get("reasons") or metadata.get("flagged_input")):
        return True
    results = []
    for part in objects_of([error, error.get("innererror")]):
        results += [part.get("content_filter_result"), part.get("content_filter_results")]
    return any(_filtered_categories(result) for result in results)


def _letters(code: str) -> str:
    return "".join(character for character in code.casefold() if character.isalnum())


def _read_error(body: object) -> tuple[set[str], str]:
    """Return the codes of an error, as letters and digits, and all its texts."""
    codes: set[str] = set()
    texts: list[str] = []
    if isinstance(body, bytes):
        return codes, body[:_MOST_TEXT].decode("utf-8", "replace")
    for name, value in _fields(body, "", 0):
        if name.lower() in _CODE_FIELDS:
            codes.add(_letters(value))
        texts.append(value)
    return codes, "\n".join(texts)[:_MOST_TEXT]


def _fields(value: object, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the texts and whole numbers of an error with the names of their fields; an error within a text too."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _ECHOES:
                yield from _fields(part, str(key), depth + 1)
    elif isinstance(value, list):
        for part in value[:20]:
            yield from _fields(part, name, depth + 1)
    elif isinstance(value, str):
        yield name, value
        if value.lstrip().startswith("{"):  # a gateway quotes the error of the provider behind it
            try:
                inner = json.loads(value)
            except (ValueError, RecursionError):
                return
            yield from _fields(inner, name, depth + 1)
    elif type(value) is int:
        yield name, str(value)
