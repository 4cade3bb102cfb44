"""Training: configs, the loop, checkpoints, runs."""
