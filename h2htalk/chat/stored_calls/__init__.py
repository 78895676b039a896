"""Model calls of a stage: every reply stored when it comes, one cost limit for a stage.

In: requests. Out: replies, so that no call is paid for twice. Read `stored_calls` first.
"""
