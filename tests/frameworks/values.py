"""A tool whose arguments are objects, lists, dates and members of an enumeration, with annotations that are no texts."""

from collections.abc import Callable
from datetime import date
from enum import Enum

from pydantic import BaseModel


class Currency(Enum):
    """A currency."""

    EUR = "EUR"
    USD = "USD"


class Item(BaseModel):
    """A line of an order."""

    name: str
    count: int = 1


class Customer(BaseModel):
    """Who pays."""

    number: int
    guest: bool = False


def tool(paid: list[int]) -> Callable[..., str]:
    """Return a tool that notes its calls."""

    def pay(
        order: int,
        customer: Customer,
        items: list[Item],
        currency: Currency = Currency.EUR,
        note: str | None = None,
        day: date = date(2026, 1, 1),
        amount: float = 5.0,
        notify: bool = True,
    ) -> str:
        """
        Pay an order.

        Args:
            order: the order.
            customer: who pays.
            items: its lines.
            currency: the currency.
            note: a note.
            day: the day.
            amount: the amount.
            notify: whether the customer is told.
        """
        paid.append(17)
        return "receipt 17"

    return pay
