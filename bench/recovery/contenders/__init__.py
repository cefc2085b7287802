"""
Who takes part.

A contender is a name, a note about its configuration and a function `client(process)`, called once for each client
process, that returns the coroutine function carrying out one operation (`bench.recovery.run.Contender`). That
function gets a `Call`: `await call.send(key=None)` makes one call and returns a response, or raises LostError after
the client's time-out; `await call.refresh()` fetches a new credential; `call.method` and `call.keyed` say what kind of
operation it is. Blocking code goes through `call.process.strands` and `call.send_blocking`. Nothing in this folder knows
the services' insides except the oracle.
"""
