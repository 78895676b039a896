"""Safety: keep and tag people in crisis; remove insults, hate, sexual content, politics, spam and leaked prompts.

In: dialogues. Out: kept dialogues with tags, and rejected ones with all evidence. Read `stage` first, then `policy`.
"""
