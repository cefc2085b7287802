"""
The random numbers of the simulated servers: a pure function of the seed, the operation and the number of the call.

So the n-th call of an operation has the same outcome for every contender, whenever it is made.
"""

_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """One round of splitmix64: neighbouring inputs give unrelated outputs."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def draw(seed: int, operation: int, call: int) -> float:
    """Return a number in [0, 1) for call number `call` (from 1) of `operation`; call 0 is for the operation itself."""
    return _mix(_mix(_mix(seed) ^ operation) ^ call) / (1 << 64)
