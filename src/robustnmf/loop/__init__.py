"""The loop that every fit runs: its problem, state, passes, iterations and results."""
