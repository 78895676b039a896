"""Answer requests through an OpenAI-compatible server at a URL.

In: requests. Out: a reply or a failure for each. Read `engine` first; `wire` builds bodies and reads answers,
`aiohttp_transport` makes one attempt, in the loop of `chat/live_calls`.
"""
