"""A Flask application with routes for every kind of failure."""

from flask import Flask, Response, abort, redirect

from amends.bindings.flask import install
from amends.errors import ConflictError, ServiceUnavailableError

app = Flask(__name__)


@app.after_request
def headers(response):
    response.headers["x-frame-options"] = "DENY"
    response.headers["access-control-allow-origin"] = "*"
    return response


@app.get("/ok")
def ok():
    return {"fine": True}


@app.get("/busy")
def busy():
    raise ServiceUnavailableError("Back in a moment", retry_after=0.2)


@app.get("/conflict")
def conflict():
    raise ConflictError("It changed")


@app.get("/broken")
def broken():
    raise RuntimeError("s3cr3t in the database")


@app.get("/teapot")
def teapot():
    abort(418, "Short and stout")


@app.get("/made")
def made():
    abort(Response("made by hand", 403))


@app.get("/moved")
def moved():
    return redirect("/ok")


install(app)
