"""The tables: one module per specification, one row per code."""
