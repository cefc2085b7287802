"""
The contenders.

A contender has a name, a note about its configuration and a function `client(process)`. That is called once for each
client process and returns the coroutine function that performs one operation (`bench.recovery.run.Contender`). The
coroutine function gets a `Call`: `await call.send(key=None)` makes one call and returns a response, or raises LostError
after the client's time-out; `await call.refresh()` fetches a new credential; `call.method` and `call.keyed` describe the
operation. Blocking code uses `call.process.threads` and `call.send_blocking`. Only the oracle reads the state of the
services.
"""
