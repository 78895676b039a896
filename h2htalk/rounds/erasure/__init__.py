"""Erasure from a round: `from_round` removes items from its files, each platform from what annotators got.

`erased_items` is what a round keeps: ids without content.
"""
