"""Read the files of other programs: responses of another tool, logs of other harnesses, and the authors' release.

In: a file or a folder. Out: responses by scenario id, scores of items (`log_forms`), or references by subtask. Read
`response_files` first.
"""
