"""Many rows: engines side by side, one worker and two, memory of each process."""
