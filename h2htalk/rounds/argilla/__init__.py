"""Argilla as a platform: workspaces, users, datasets and records on a server, and annotations from its database.

Input: the assignment sets of a round. Output: the annotations on the server. Read `platform` first.
"""
