"""Review candidates with a model: rubric, FairEval's calibrated comparisons, outcome; read `stage` first."""
