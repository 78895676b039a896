"""Answer requests with a model: one protocol, one table of engines.

In: `Request`s (messages and sampling). Out: a `Reply` or a `Failure` for each, in order. Paid calls are reserved in a
call store before they are sent. Read `protocol` first, then `engines`.
"""
