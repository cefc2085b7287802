"""`each`: a table of cases in one test, for cases that take microseconds."""

from functools import wraps


def each(names, cases, ids=None):
    """
    Like `pytest.mark.parametrize`, but all cases run in one test, and a failure names its case.

    pytest takes 3 ms for every test in each of its processes, so a table of hundreds of short cases takes seconds. Not
    for tests with fixtures.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = list(cases)
    assert cases

    def decorate(test):
        @wraps(test)
        def run(**given):
            for case in cases:
                values = [case] if len(names) == 1 else case
                try:
                    test(**given, **dict(zip(names, values, strict=True)))
                except BaseException as error:
                    shown = ids(case) if callable(ids) and len(names) == 1 else case
                    error.add_note(f"{', '.join(names)}: {shown!r}")
                    raise

        del run.__wrapped__  # pytest would take its arguments for fixtures
        return run

    return decorate
