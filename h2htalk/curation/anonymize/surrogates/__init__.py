"""Choose the surrogates of a dialogue's personal data.

In: the values of a dialogue and the workspace's secret key, which alone decide the result. Out: a surrogate for each
value. Read `dialogue_surrogates` first.
"""
