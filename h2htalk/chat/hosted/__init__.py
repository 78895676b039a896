"""Answer requests through the OpenAI and Anthropic SDKs.

In: requests. Out: a reply or a failure for each; every call is reserved before it is sent. Read `hosted_chat` first,
then `chat/live_calls` (the loop).
"""
