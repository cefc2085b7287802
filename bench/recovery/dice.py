"""
The server's randomness: a pure function of (seed, operation, call number).

Every policy therefore meets the same fate at the n-th call of the same operation, whenever it makes it.
"""

_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """One round of splitmix64: neighbouring inputs give unrelated outputs."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def draw(seed: int, operation: int, call: int) -> float:
    """A number in [0, 1) for call number `call` (from 1) of `operation`; call 0 is the operation's own fate."""
    return _mix(_mix(_mix(seed) ^ operation) ^ call) / (1 << 64)
