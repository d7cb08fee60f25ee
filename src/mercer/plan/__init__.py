"""What a fit will cost: passes, memory, minutes."""
