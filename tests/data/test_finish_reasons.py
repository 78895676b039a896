"""How a reply ended: every server's word, in any letter case and with any separator, is one of ours."""

from __future__ import annotations

import pytest

from h2htalk.data.replies.finish_reasons import (
    count_unknown,
    is_cut,
    is_known,
    is_whole,
    read_finish_reason,
    unknown_reasons_text,
)

SPELLINGS = {
    "stop": (
        "stop",
        "STOP",
        "Stop",
        "eos_token",
        "EosToken",
        "end_turn",
        "endTurn",
        "stop-sequence",
        "COMPLETE",
        *(
            "eosFound",
            "END_ID",
            "REASON_STOP",
            "stopped_eos",
            "early_stopping",
            "ALTERNATIVE_STATUS_FINAL",
        ),
    ),
    "length": (
        "length",
        "MAX_TOKENS",
        "maxTokens",
        "max_output_tokens",
        "FinishReason.MAX_TOKENS",
        "token limit",
        "num_predict",
        "EXCEEDED_MAX_TOKENS",
        # MiniMax, Aleph Alpha, LM Studio, xAI, Hugging Face, YandexGPT
        *("max_output", "maximum_tokens", "maxPredictedTokensReached", "REASON_MAX_LEN"),
        *("max_time", "ALTERNATIVE_STATUS_TRUNCATED_FINAL", "stopped_limit"),
    ),
    "context": (
        *("model_length", "model_context_window_exceeded", "ContextLengthExceeded"),
        *("REASON_MAX_CONTEXT", "exceed_context_size", "max_seq_len"),
    ),
    "content_filter": (
        *(
            "SAFETY",
            "content-filter",
            "guardrail_intervened",
            "sensitive",
            "FINISH_REASON_RECITATION",
        ),
        *(
            "input_guardrail_triggered",
            "OUTPUT_MODERATION_FAILED",
            "content_filter: PROHIBITED_CONTENT",
        ),
        *("blacklist", "ALTERNATIVE_STATUS_CONTENT_FILTER", "inappropriate"),
    ),
    "refusal": ("refusal", "Refused"),
    "tool_calls": (
        *("tool_calls", "TOOL_USE", "functionCall", "MALFORMED_FUNCTION_CALL"),
        "function_call_filter: MALFORMED_FUNCTION_CALL",
    ),
    "error": (
        "error",
        "network_error",
        "abort",
        "insufficient_system_resource",
        "Cancelled",
        "preempt",
        *("engine_overloaded_error", "backend_error", "user_stop"),
    ),
    "unknown": (None, "", "null", "FINISH_REASON_UNSPECIFIED", "  "),
}


@pytest.mark.parametrize(
    ("reason", "ours"), [(one, ours) for ours, given in SPELLINGS.items() for one in given]
)
def test_letter_case_and_separators_do_not_matter(reason: str | None, ours: str) -> None:
    assert read_finish_reason(reason) == ours
    assert is_known(reason)
    assert is_cut(reason) == (ours in ("length", "context"))
    assert is_whole(reason) == (ours in ("stop", "tool_calls", "unknown"))


def test_our_own_words_stay_what_they_are() -> None:
    assert [read_finish_reason(ours) for ours in SPELLINGS] == list(SPELLINGS)


def test_an_unknown_reason_stays_as_it_is_and_is_counted_once() -> None:
    assert read_finish_reason("wandered_off") == "wandered_off"
    assert is_whole("wandered_off")
    reasons = ["stop", "wandered_off", None, "wandered_off", "</s>"]
    assert count_unknown(reasons) == {"wandered_off": 2, "</s>": 1}
    assert "wandered_off (2), </s> (1)" in unknown_reasons_text(reasons)
    assert unknown_reasons_text(["stop", None]) == ""
