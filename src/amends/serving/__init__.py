"""
What every binding for agents' servers decides the same way: which words an exception gets on the wire.

- `failures`: an exception in a server's own code as the Fault its caller hears, in AdCP's words.
- `writing`: that Fault as an error object that always fits, and as one sentence.
"""
