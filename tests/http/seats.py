"""An exception class of an application, for `errors={SeatTaken: "CONFLICT"}`."""


class SeatTaken(Exception):
    """Not one of ours."""
