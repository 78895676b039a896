"""What a round pays its annotators, and what the platform pays them by itself."""
