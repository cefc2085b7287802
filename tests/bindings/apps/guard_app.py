"""The sample application without a framework: it parses its arguments itself."""

import sys

import bodies

from amends.bindings.guard import guard


@guard
def program():
    name, *arguments = sys.argv[1:]
    if name in {"flaky", "flaky_later"}:
        arguments[1] = int(arguments[1])
    return getattr(bodies, name)(*arguments)  # a coroutine, if the function is async


@guard
async def echo():
    return {"argv": sys.argv[1:]}


def declared_program():
    """Return the program with the declaration that --retries needs."""
    return guard(bodies.operation(read_only=True)(program.__wrapped__))


if __name__ == "__main__":
    if sys.argv[1] == "echo":
        echo()
    if sys.argv[1] in {"flaky", "flaky_later", "broken"}:
        declared_program()()
    program()
