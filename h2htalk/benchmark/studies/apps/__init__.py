"""Companion applications with their own prompt and memory, over HTTP.

In: an address, a TOML file that says how to talk to it, and cases. Out: replies in a study's folder. Read
`app_adapter`.
"""
