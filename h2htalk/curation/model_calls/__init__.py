"""Model calls in a stage: prompts with fences, stored replies, one cost limit for a stage.

In: requests. Out: replies, each stored when it comes, so that no call is paid for twice. Read `stored_calls` first.
"""
