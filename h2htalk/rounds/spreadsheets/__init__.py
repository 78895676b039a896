"""Spreadsheets as files: one workbook or CSV file an annotator, written with `spreadsheets.SpreadsheetPlatform` and
read back cell by cell.
"""
