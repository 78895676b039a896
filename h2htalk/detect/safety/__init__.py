"""Find crises and other dangers, harm by a companion, offence, politics, and unusable content.

In: the turns of a dialogue. Out: `Evidence`, with scores. Read `dialogue_evidence` first, then `crisis`.
"""
