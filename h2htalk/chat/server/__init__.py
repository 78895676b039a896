"""Answer requests through an OpenAI-compatible server at a URL.

In: requests. Out: a reply or a failure for each. Read `engine` first;
`aiohttp_transport` makes one attempt, in the loop of `chat/live_calls`.
"""
