"""How work is run: threads, engine, memory budget, progress, checkpoints, random state."""
