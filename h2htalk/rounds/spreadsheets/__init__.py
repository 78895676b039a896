"""Spreadsheets as a platform: one workbook for each annotator, written and read back. Read `platform` first."""
