"""Turn a scenario into the messages that a model gets.

In: a scenario, its persona, and the principles of the SAP that are on. Out: a system message and the conversation.
Read `prompt_set`; the texts are in `en/` and `zh/`, the SAP in `LANGUAGE/sap/`.
"""
