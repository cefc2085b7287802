"""Etherscan."""

from __future__ import annotations

from amends.vendors.kinds import BAD_KEY, INVALID, QUOTA, RATE
from amends.vendors.model import Vendor, words

__all__ = ["VENDOR"]

# Etherscan lists the texts of its results; spaces are read as underscores.
VENDOR = Vendor(
    name="etherscan",
    title="Etherscan",
    docs="https://docs.etherscan.io/support/common-error-messages",
    words=words(
        (RATE, "Max_rate_limit_reached Max_rate_limit_reached,_please_use_API_Key_for_higher_rate_limit"),
        (
            RATE,
            " ".join(
                f"Max_calls_per_sec_rate_limit_reached_({each}/sec)" for each in (1, 2, 3, 5, 10, 20, 30)
            ),
        ),
        (QUOTA, "Max_daily_rate_limit_reached Max_daily_rate_limit_reached_(100000/day)"),
        (BAD_KEY, "Invalid_API_Key Missing/Invalid_API_Key Missing_Or_invalid_API_Key"),
        (INVALID, "Error!_Missing_Or_invalid_Action_name Error!_Missing_Or_invalid_Module_name"),
        (INVALID, "Query_Timeout_occured._Please_select_a_smaller_result_dataset"),
    ),
)
