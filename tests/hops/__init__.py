"""The matrix of chains: one failure through up to three hops, over all formats, with and without amends on each side."""
