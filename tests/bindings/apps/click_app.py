"""The sample application in Click."""

from pathlib import Path

import bodies
import click

from amends.bindings.click import main


@click.group()
@click.version_option("1.2.3")
def app():
    """Sample."""


@app.command()
@click.argument("name")
@click.option("--count", type=int, default=1)
@click.option("--color", type=click.Choice(["red", "green", "blue"]), default="red")
def show(name, count, color):
    return bodies.show(name, count, color)


def plain(name, *params):
    body = getattr(bodies, name)
    app.command(name)(_with(params)(body))


def _with(params):
    def wrap(body):
        for param in reversed(params):
            body = param(body)
        return body

    return wrap


plain("fail", click.argument("kind"))
plain("noise")
plain("odd", click.argument("kind"))
plain("slow", click.argument("path"))
plain("big")
plain("broken", click.argument("kind"), click.argument("path"))
plain("later", click.argument("path"))
plain("flaky_later", click.argument("path"), click.argument("times", type=int))
plain("flaky", click.argument("path"), click.argument("times", type=int))
plain("keyed", click.argument("path"))
plain("upstream", click.argument("url"))
plain("recovered", click.argument("url"))


@app.command()
@click.argument("kind")
@click.pass_context
def clicks(ctx, kind):
    if kind == "exit":
        ctx.exit(4)
    if kind == "exit0":
        ctx.exit(0)
    if kind == "abort":
        raise click.Abort
    if kind == "exception":
        raise click.ClickException("the author's message")
    if kind == "file":
        raise click.FileError("data.csv", "not there")
    if kind == "parameter":
        raise click.BadParameter("the author's message", param_hint="--when")
    if kind == "nested":
        show.main(["--nope"], standalone_mode=False)


@app.command()
@click.argument("path", type=click.Path())
@click.argument("kind")
@click.pass_context
@bodies.operation(read_only=True)
def leaving(ctx, path, kind):
    with Path(path).open("a") as file:
        file.write("run\n")
    if kind == "usage":
        raise click.UsageError("the author's message")
    if kind == "exception":
        raise click.ClickException("the author's message")
    ctx.exit(4)


class FailsOnSecondPass(click.ParamType):
    """Reports a bad value the first time and raises an error the second time."""

    name = "fails-on-second-pass"
    calls = 0

    def convert(self, value, param, ctx):
        FailsOnSecondPass.calls += 1
        if FailsOnSecondPass.calls > 1:
            raise RuntimeError("not again")
        self.fail("no", param, ctx)


@app.command()
@click.option("--value", type=FailsOnSecondPass())
def twice(value):
    return value


@app.command()
@click.option("--name", prompt=True)
def ask(name):
    return name


def checked(ctx, param, value):
    if value == "leave":
        ctx.exit(6)
    return value


@app.command()
@click.option("--how", callback=checked)
def leave(how):
    return how


@app.command()
@click.option("--output", type=click.Choice(["json", "table"]), default="table")
def own(output):
    return {"output": output}


@app.group()
@click.pass_context
async def setup(ctx):
    """A group whose function is async, as is that of its command behind a decorator."""
    ctx.obj = {"ready": True}


@setup.command("inner")
@click.pass_obj
async def inner(obj):
    return obj


@setup.command("outer")
@click.pass_context
async def outer(ctx):
    return await ctx.invoke(inner)


@app.group(chain=True)
def chain():
    pass


@chain.command("one")
@click.option("--n", type=int)
def one(n):
    return n


@app.command()
@click.option("--x", type=int)
@click.option("--y", type=float)
@click.argument("z")
@click.argument("rest", nargs=-1)
def many(x, y, z, rest):
    return [x, y, z, *rest]


if __name__ == "__main__":
    main(app, name="sample")
