"""Answer requests through the OpenAI and Anthropic SDKs.

In: requests. Out: a reply or a failure for each; every call is reserved before it is sent. Read `hosted_chat` first,
then `live_calls` (the loop) and `http_attempt` (one attempt).
"""
