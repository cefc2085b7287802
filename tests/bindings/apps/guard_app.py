"""The sample application without a framework: it parses its arguments itself."""

import sys

import bodies

from amends.bindings.guard import guard


@guard
def program():
    name, *arguments = sys.argv[1:]
    if name == "flaky":
        arguments[1] = int(arguments[1])
    return getattr(bodies, name)(*arguments)


@guard
async def later():
    return {"argv": sys.argv[1:]}


def declared_program():
    """Return the program with the declaration that --retries needs."""
    return guard(bodies.operation(read_only=True)(program.__wrapped__))


if __name__ == "__main__":
    if sys.argv[1] == "later":
        later()
    if sys.argv[1] == "flaky":
        declared_program()()
    program()
