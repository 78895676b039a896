"""Define the records, and read and write their files: splits and runs.

In and out: folders and JSONL, JSON or Parquet files. No model is called here. Read `scenario` first, then `splits`,
`run_folder` and `signature`; `subtasks` and `languages` are tables.
"""
