"""Pretraining in the manner of the large recipes: a trainer made of parts."""
