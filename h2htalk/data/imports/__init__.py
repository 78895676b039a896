"""Read the files of other programs: responses of another tool, logs of other harnesses, and the authors' release.

In: a file or a folder. Out: responses by scenario id, scores of items (`harness_log`), or references by subtask. Read
`response_files` first.
"""
