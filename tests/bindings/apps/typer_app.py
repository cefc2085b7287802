"""The sample application in Typer."""

from enum import StrEnum

import bodies
import typer

from amends.bindings.click import main

app = typer.Typer()


class Color(StrEnum):
    red = "red"
    green = "green"
    blue = "blue"


@app.command()
def show(name: str, count: int = 1, color: Color = Color.red):
    return bodies.show(name, count, color.value)


@app.command()
def fail(kind: str):
    bodies.fail(kind)


@app.command()
def noise():
    return bodies.noise()


@app.command()
def odd(kind: str):
    return bodies.odd(kind)


@app.command()
def slow(path: str):
    bodies.slow(path)


@app.command()
def big():
    bodies.big()


@app.command()
@bodies.operation(read_only=True)
def broken(kind: str, path: str):
    return bodies.broken(kind, path)


@app.command()
async def later(path: str):
    return await bodies.later(path)


@app.command("flaky_later")
@bodies.operation(read_only=True)
async def flaky_later(path: str, times: int):
    return await bodies.flaky_later(path, times)


@app.command()
@bodies.operation(read_only=True)
def flaky(path: str, times: int):
    return bodies.flaky(path, times)


@app.command()
@bodies.operation(keyed=True)
def keyed(path: str):
    return bodies.keyed(path)


@app.command()
def upstream(url: str):
    return bodies.upstream(url)


@app.command()
def recovered(url: str):
    return bodies.recovered(url)


if __name__ == "__main__":
    main(app, name="sample")
