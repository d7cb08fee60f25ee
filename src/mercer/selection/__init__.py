"""Which bandwidth, how many clusters."""
