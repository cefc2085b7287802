"""Measurements against the floor and the peers, in one run, as ratios. `make bench` runs them all."""
