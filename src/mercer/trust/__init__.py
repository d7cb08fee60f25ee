"""How reliable a clustering is: evidence from a sample of the rows, and a grade."""
