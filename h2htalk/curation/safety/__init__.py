"""Reject unsafe dialogues and tag crises: `stage` runs the rules, `policy` turns evidence into a decision."""
