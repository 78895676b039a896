"""Reading: a chat model reads every message of a dialogue and says what is the matter with it, if anything is.

In: dialogues. Out: a `DialogueReading`, with what was found at each message, or which messages nobody has read.
Words and classifiers point at passages; only what has been read here, by the reviewer or by people counts as read.
Read `question.py` first.
"""
