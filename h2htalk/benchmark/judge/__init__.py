"""Judge answers: a scored run and a model in; judgements and J in the tables out. Read `judge_run`, then `rubric`."""
