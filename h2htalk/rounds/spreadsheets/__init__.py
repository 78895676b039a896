"""Ballots as files: one workbook or CSV file a voter, written with `ballots.Ballots` and read back cell by cell."""
