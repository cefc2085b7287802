"""The tables: one module per publication, one row per code."""
