"""A Click application, with the binding (BOUND) or without."""

import click
import service


@click.group()
def app():
    pass


@app.command()
@click.argument("url")
@service.reads
def get(url):
    return service.fetch(url)


if service.BOUND:
    from amends.bindings.click import main

    main(app)
app()
