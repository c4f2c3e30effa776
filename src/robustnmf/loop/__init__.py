"""The fit loop: problem, state, passes, iterations and results."""
