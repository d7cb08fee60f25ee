"""How far the score of trust and the chosen number of clusters can be believed."""
