"""What both providers' SDKs raise, as a `JobCallError`: they share their transport and the names of their errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from h2htalk.chat.batch.provider import JobCallError


@contextmanager
def sdk_errors(sdk: Any) -> Iterator[None]:
    """Raise JobCallError for what the SDK (`openai` or `anthropic`) or the transport under it raises."""
    import httpx2

    base = getattr(sdk, "OpenAIError", None) or sdk.AnthropicError  # what all errors of the SDK are
    try:
        yield
    except sdk.APIStatusError as error:
        raise JobCallError(
            f"HTTP {error.status_code}",
            status=error.status_code,
            body=_json(error.response),
            headers=error.response.headers,
        ) from None
    except sdk.APIConnectionError as error:
        raise _connection_error(error) from None
    except httpx2.HTTPError as error:  # while results stream, the SDK is no longer around the transport
        raise _connection_error(error) from None
    except (base, ValueError, TypeError, AttributeError) as error:
        # ValueError: a body that is not JSON. TypeError, AttributeError: JSON of another shape, which the SDKs take
        # for what they expect. Their texts may quote it at length, so only the kind is kept.
        raise JobCallError(f"the answer cannot be read ({type(error).__name__})", status=200) from None


def _connection_error(error: BaseException) -> JobCallError:
    """The errors' own texts may hold URLs with what is secret in them, so none is repeated."""
    import httpx2

    from h2htalk.chat.reply_size_limit import ReplyTooLarge

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
            return JobCallError("no connection: nothing answers", reached=False)
        if isinstance(cause, ReplyTooLarge):
            return JobCallError(str(cause), status=200)
        if isinstance(cause, httpx2.TimeoutException):
            return JobCallError("the answer did not come in time")
        cause = cause.__cause__
    return JobCallError("the connection broke")


def _json(response: Any) -> object:
    """The whole body of an error; None where it is not JSON. A streamed one is read first."""
    import httpx2

    try:
        response.read()
        return response.json()
    except (ValueError, httpx2.HTTPError, httpx2.StreamError):
        return None
