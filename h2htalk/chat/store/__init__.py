"""The one store of model calls: `calls.jsonl` of a folder, in which the reply's line is its settlement.

In: requests, a limit in US dollars. Out: replies, none of which is paid twice, and what they cost. Read `call_store`
first; `model_calls` asks a model through it, `records` holds what both read and write.
"""
