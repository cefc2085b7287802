"""
Shared code of the command-line bindings (Click, Typer, argparse, guard): options, running a command, and its output.

Importing a module of this package is cheap: code that only a failure needs is imported when a command fails.
"""
