"""Spreadsheets as a platform: one workbook for each annotator, written and read back.

Input: the assignment sets of a round. Output: the annotations in the files that came back. Read `platform` first.
"""
