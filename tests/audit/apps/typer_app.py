"""A Typer application, with the binding (BOUND) or without."""

import service
import typer

app = typer.Typer()


@app.callback()
def root():
    pass


@app.command()
@service.reads
def get(url: str):
    return service.fetch(url)


if service.BOUND:
    from amends.bindings.click import main

    main(app)
app()
