"""Define the records and read and write their files: splits, runs, rounds, analyses. No model is called here."""
