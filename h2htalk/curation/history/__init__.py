"""The history of one item, from the raw file to the release.

In: an id, a workspace, and the rounds and releases that it links. Out: events, and their text. Read first: `explain`.
"""
