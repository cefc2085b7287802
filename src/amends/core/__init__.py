"""
Values and tables, and the pure functions over them.

Nothing here opens a socket, reads a clock or rolls dice: time and randomness are arguments.
"""
