"""Embed texts for semantic similarity and deduplication; `embedders` is the table, `vectors` the protocol."""
