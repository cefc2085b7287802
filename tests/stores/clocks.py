"""A clock that tests set."""

from __future__ import annotations


class SetClock:
    """Both clocks stand still until a test advances them; the wall clock can jump without the steady one."""

    def __init__(self):
        self.now = 1_000_000.0
        self.up = 50.0
        self.booted = "first boot"

    def wall(self):
        return self.now

    def steady(self):
        return self.up

    def boot(self):
        return self.booted

    def pass_(self, seconds):
        self.now += seconds
        self.up += seconds
