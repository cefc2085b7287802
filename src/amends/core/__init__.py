"""
Values, tables, and pure functions on them.

Nothing here opens a socket, reads a clock or draws random numbers: time and randomness are arguments.
"""
