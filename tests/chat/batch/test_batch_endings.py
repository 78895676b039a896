"""Lines of a batch job's results that hold no reply although they succeeded: errors inside, and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure
from support.doubles.batch_double import BatchDouble, requests
from support.doubles.loopback import completion, message
from support.doubles.providers import Found, Job, Refused

BROKEN = completion("I hear", "error")
BROKEN["choices"][0]["error"] = {"code": 502, "message": "Upstream error"}
RISK = Refused(400, "invalid_request_error", "Content Exists Risk")
ODD: dict[str, dict[str, Found]] = {
    "openai": {"a": BROKEN, "b": completion(None, "content_filter"), "c": RISK},
    "anthropic": {
        "a": {"type": "error", "error": {"type": "api_error", "message": "broke off"}},
        "b": message("", stop_reason="refusal"),
        "c": Refused(400, "invalid_request_error", "Output blocked by content filtering policy"),
    },
}


class OddDouble(BatchDouble):
    """Answers the first request of some texts in its own way."""

    def compute(self, job: Job, body: Any) -> tuple[Found, str]:
        found, name = super().compute(job, body)
        text = body["messages"][-1]["content"]
        if self.asked[text] == 1 and text in ODD[self.provider]:
            return ODD[self.provider][text], name
        return found, name


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_an_error_in_a_result_is_asked_again_and_a_filter_is_not(
    provider: str, tmp_path: Path
) -> None:
    """The first was scored as an empty reply, the last failed at every restart."""
    double = OddDouble(provider, tmp_path, items=requests("a", "b", "c", "d"))
    broken, filtered, declined, plain = double.resume()
    assert isinstance(broken, Reply)
    assert (broken.text, broken.finish_reason) == ("re: a", "stop")
    for one in (filtered, declined):
        assert isinstance(one, Reply)
        assert (one.text, one.finish_reason) == ("", "content_filter")
        assert one.filtered_by
    assert not isinstance(plain, Failure)
    assert dict(double.asked) == {"a": 2, "b": 1, "c": 1, "d": 1}
    assert double.resume() == []  # a restart finds a reply of each
