"""Answer requests through an OpenAI-compatible server at a URL.

In: requests. Out: a reply or a failure for each. Read `engine` first; `wire` builds bodies and reads answers.
"""
