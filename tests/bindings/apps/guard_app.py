"""The sample application without a framework: it looks at its words itself."""

import sys

import bodies

from amends.bindings.guard import guard


@guard
def program():
    name, *words = sys.argv[1:]
    if name == "flaky":
        words[1] = int(words[1])
    return getattr(bodies, name)(*words)


@guard
async def later():
    return {"argv": sys.argv[1:]}


def chosen():
    """--retries needs a declaration, which is the whole program's here."""
    return guard(bodies.operation(read_only=True)(program.__wrapped__))


if __name__ == "__main__":
    if sys.argv[1] == "later":
        later()
    if sys.argv[1] == "flaky":
        chosen()()
    program()
