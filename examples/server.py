"""A web API whose failures contain what to do next. Run: python examples/server.py"""

import asyncio

import httpx2
from fastapi import FastAPI
from pydantic import BaseModel

from amends import FaultError
from amends.bindings.fastapi import install


class SoldOut(FaultError):
    """Every seat is taken."""

    code, recovery, status, exit = "SOLD_OUT", "correctable", 409, 6


class Booking(BaseModel):
    train: str
    seats: int


app = FastAPI()
install(app)


@app.post("/bookings")
async def book(booking: Booking) -> dict[str, str]:
    if booking.train == "09:12":
        raise SoldOut("The 09:12 is full", field="/train", suggestions=["Take the 10:12"])
    raise RuntimeError("password of db.internal is hunter2")


async def main() -> None:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://trains.example") as client:
        for body in (
            {"train": "09:12", "seats": 2},
            {"train": "09:12", "seats": "two"},
            {"train": "10:12", "seats": 2},
        ):
            problem = (await client.post("/bookings", json=body)).json()
            print(
                problem["status"],
                problem["code"],
                problem["is_retriable"],
                problem.get("suggestions", problem["detail"]),
            )


asyncio.run(main())
# > 409 SOLD_OUT False ['Take the 10:12']
# > 422 VALIDATION_ERROR False ['Send a whole number at /body/seats']
# > 500 INTERNAL_ERROR True ['Try once more where a repeat is safe, then report it with its trace id']
