"""How a reply ended: one table of the reasons that servers, providers and harnesses name, in their many spellings.

`stop`, `Stop`, `end_turn`, `EOS_TOKEN` and `FinishReason.STOP` all say that a reply ended by itself. What reads a reply
asks `read_finish_reason` for our word, and compares nothing else. A reason that the table lacks stays as it is, and
counts as one that says nothing: the text decides (`is_known`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

STOP = "stop"  # ended by itself
LENGTH = "length"  # cut at the budget of tokens, or because it repeated itself
CONTEXT = "context"  # cut where the model's context ends
REFUSAL = "refusal"  # the model declined, in words of its own
FILTERED = "content_filter"  # the provider's own filter declined the prompt, or stopped the reply
TOOL = "tool_calls"  # it wants to call a tool
ERROR = "error"  # the server broke off: there is no reply
UNKNOWN = "unknown"  # no reason was given

CUT = frozenset({LENGTH, CONTEXT})

# Spellings by meaning, separated by white space: those of OpenAI, Anthropic, Google, Cohere, Mistral, Amazon, IBM,
# DeepSeek, Qwen, GLM, Hunyuan, Baidu, StepFun, MiniMax, GigaChat, YandexGPT, xAI, Aleph Alpha and AI21; of vLLM,
# SGLang, llama.cpp, TGI, LMDeploy, TensorRT-LLM, Ollama, LM Studio and Llama Stack; of Inspect, LiteLLM and Vercel's
# SDK.
_SPELLINGS: Mapping[str, str] = {
    STOP: """
        stop stopped stop_sequence stop_sequences stop_string stop_str stop_word
        stop_words stop_token eos eos_token eos_token_id eos_id eot eot_id im_end end
        ended end_turn end_of_turn end_of_message end_of_text end_of_sequence
        end_of_stream end_message complete completed completion done finish finished
        normal natural success succeeded ok stop_criteria_met stop_criteria hit_stop
        matched_stop model_stop eos_found stop_string_found end_id word reason_stop
        alternative_status_final stopped_eos stopped_eog stopped_word eog eog_token
        early_stopping
    """,
    LENGTH: """
        length len max_tokens max_token max_length max_len max_output_tokens
        max_new_tokens max_completion_tokens max_output_length max_tokens_reached
        token_limit token_limit_reached tokens_limit out_of_tokens length_limit
        length_capped length_cap limit truncated truncation incomplete output_limit
        budget budget_exhausted time_limit repetition repetition_truncation
        repetition_detected tokens max_generated_tokens length_limit_reached num_predict
        n_predict max_predict exceeded_max_tokens exceeds_max_tokens over_limit max_output
        maximum_tokens maximum_length max_predicted_tokens_reached max_time reason_max_len
        reason_time_limit alternative_status_truncated_final length_stop length_truncated
        hit_length output_length cut cutoff loop_detected stopped_limit
    """,
    CONTEXT: """
        context model_length context_length context_length_exceeded context_window
        context_window_exceeded model_context_window_exceeded context_full context_limit
        context_size max_context_length max_model_len error_limit input_length
        context_overflow max_context reason_max_context context_exceeded
        exceed_context_size max_seq_len max_sequence_length n_ctx
    """,
    REFUSAL: "refusal refused declined model_refusal",
    # Gemini's `LANGUAGE` (a language that the model does not know) is missing here: no content was declined.
    FILTERED: """
        content_filter content_filtered content_filtering filtered filter content_policy
        content_policy_violation policy_violation content_moderation content_blocked
        moderation moderated moderation_blocked safety image_safety safety_filter
        safety_block unsafe recitation image_recitation blocklist blocked prohibited
        prohibited_content image_prohibited_content spii model_armor sensitive
        sensitive_content risk high_risk risk_control content_risk guardrail guardrails
        guardrail_intervened censored blocked_by_guardrail error_toxic toxic toxicity
        flagged prompt_blocked response_blocked jailbreak malicious
        data_inspection_failed censorship_blocked security violation harmful
        content_violation blacklist blacklisted violates_policy blocked_by_policy
        inappropriate inappropriate_content not_safe profanity cyber_policy
    """,
    TOOL: """
        tool_calls tool_call tool_use tool tools function_call function_calls function
        malformed_function_call unexpected_tool_call too_many_tool_calls
        malformed_tool_use pause_turn function_call_filter reason_tool_calls
    """,
    ERROR: """
        error errored failed failure fail abort aborted cancel cancelled canceled
        user_cancel user_cancelled interrupted internal_error server_error network_error
        provider_error upstream_error model_error engine_error timeout timed_out
        overloaded insufficient_system_resource insufficient_system_resources
        unavailable service_unavailable malformed_model_output malformed_response
        connection_error disconnected exception shutdown out_of_memory preempt preempted
        user_stopped user_stop model_unloaded load unload
    """,
    UNKNOWN: "unknown null none other unspecified not_finished in_progress undefined nil",
}
# Fragments of longer reasons that the table lacks, such as Databricks' `input_guardrail_triggered`.
_FRAGMENTS: Mapping[str, str] = {
    FILTERED: "guardrail contentfilter contentpolicy moderation prohibitedcontent unsafecontent",
    CONTEXT: "contextlength contextwindow",
    LENGTH: "maxtokens maxlength maxoutputtokens tokenlimit tokenbudget",
    ERROR: "overloaded servererror backenderror engineerror upstreamerror providererror",
}
_PREFIXES = ("finishreason", "stopreason", "donereason")  # of names of an enumeration


def _letters(reason: str) -> str:
    """The letters and digits of a reason, in lower case: `Stop-Sequence`, `stopSequence` and `STOP_SEQUENCE` agree."""
    letters = "".join(character for character in reason.casefold() if character.isalnum())
    for prefix in _PREFIXES:
        if letters.startswith(prefix) and letters != prefix:
            return letters.removeprefix(prefix)
    return letters


_MEANINGS: dict[str, str] = {}
for _meaning, _spellings in _SPELLINGS.items():
    for _spelling in _spellings.split():
        _MEANINGS[_letters(_spelling)] = _meaning


def read_finish_reason(reason: str | None) -> str:
    """Return our word for the reason that a server gave; the reason itself where the table lacks it.

    Examples:
        >>> read_finish_reason("MAX_TOKENS"), read_finish_reason("endTurn"), read_finish_reason("mystery")
        ('length', 'stop', 'mystery')
    """
    letters = _letters(reason or "")
    if not reason or not letters:
        return UNKNOWN
    # Google's compatible API adds details: `content_filter: RECITATION`.
    first, _, _ = reason.partition(":")
    meaning = _MEANINGS.get(letters) or _MEANINGS.get(_letters(first))
    if meaning is not None:
        return meaning
    for meaning, fragments in _FRAGMENTS.items():
        if any(fragment in letters for fragment in fragments.split()):
            return meaning
    return reason


def is_known(reason: str | None) -> bool:
    """Whether the table holds a reason, or there is none."""
    return read_finish_reason(reason) in _SPELLINGS


def is_cut(reason: str | None) -> bool:
    """Whether a reply was cut: at its budget of tokens, or where the model's context ends."""
    return read_finish_reason(reason) in CUT


def count_unknown(reasons: Iterable[str | None]) -> dict[str, int]:
    """Count the reasons that the table lacks, the most frequent first."""
    counts = Counter(reason for reason in reasons if reason and not is_known(reason))
    return dict(counts.most_common())


def unknown_reasons_text(reasons: Iterable[str | None], what: str = "replies") -> str:
    """Describe the reasons that the table lacks, in one sentence; empty where it holds all."""
    counts = count_unknown(reasons)
    return reasons_text(counts, what) if counts else ""


def reasons_text(counts: Mapping[str, int], what: str = "replies") -> str:
    """Describe the reasons that the table lacks by their counts, in one sentence."""
    named = ", ".join(f"{reason} ({number:,})" for reason, number in counts.items())
    return f"{what} ended for reasons that are not known here, and were read as they are: {named}"


def is_whole(reason: str | None) -> bool:
    """Whether a reply may be whole: it was neither cut nor declined, nor did the server break off."""
    return read_finish_reason(reason) not in {LENGTH, CONTEXT, REFUSAL, FILTERED, ERROR}
