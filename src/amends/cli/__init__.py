"""
What the bindings of command-line frameworks have in common: how an invocation is asked for, run and answered.

Importing any of it costs next to nothing: what a failure needs is loaded when something fails.
"""
