"""Read the files of other programs: responses of another tool, and the authors' release.

In: a file or a folder. Out: responses by scenario id, or references by subtask. Read `response_files` first.
"""
