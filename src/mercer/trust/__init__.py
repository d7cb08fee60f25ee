"""How sure a partition is: evidence from a sample of the rows, and a grade."""
