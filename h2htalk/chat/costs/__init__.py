"""Prices of hosted models and rough counts of tokens; what calls cost is in the call store (`chat/store`)."""
