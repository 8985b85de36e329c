"""What researchers run: sweeps, regret curves, the paper's experiments, their figures and their page."""
