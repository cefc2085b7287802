"""`amends effects`: listing, showing and answering, on a file that a program wrote."""

import msgspec
import pytest

from amends.commands import main
from amends.effects import Effects, InDoubtError


@pytest.fixture
def ledger(tmp_path):
    url = f"sqlite:///{tmp_path}/effects.db"
    with Effects(url) as effects:

        @effects.once(key="order")
        def pay(order, token="sk_live_4eC39HqLyjWDarjtT1zdp7dc"):
            if order == 2:
                raise TimeoutError
            return {"receipt": order}

        pay(1)
        with pytest.raises(InDoubtError):
            pay(2)
    return url


def test_list_show_and_verify(ledger, capfd):
    """The question is answered from the command line; secrets in arguments are not shown."""

    def run(*arguments, output="json"):
        code = main(["effects", *arguments, "--store", ledger, "--output", output])
        out = capfd.readouterr().out
        assert "sk_live" not in out
        return code, msgspec.json.decode(out) if output == "json" and code == 0 else out

    code, listed = run("list")
    assert (code, listed["total"]) == (0, 2)
    assert run("list", "--state", "doubt")[1]["effects"][0]["key"] == "pay:2"
    assert "--not-happened" in run("show", "pay:2")[1]["effect"]["question"]
    assert "pay:2" in run("list", output="text")[1]
    assert run("verify", "pay:2", "--happened", "--outcome", '{"receipt": 2}')[1]["effect"]["state"] == "done"
    assert run("show", "pay:2")[1]["effect"]["outcome"] == {"receipt": 2}
    for wrong, exit_code in (
        (("verify", "pay:1", "--happened"), 6),
        (("show", "pay:9"), 4),
        (("verify", "pay:9", "--not-happened"), 4),
    ):
        assert run(*wrong)[0] == exit_code, wrong


def test_not_happened_frees_the_key(ledger, capfd):
    """The next call runs."""
    assert main(["effects", "verify", "pay:2", "--not-happened", "--store", ledger, "--output", "text"]) == 0
    assert "key is free" in capfd.readouterr().out
    assert main(["effects", "show", "pay:2", "--store", ledger, "--output", "json"]) == 4


def test_a_store_that_is_not_there(tmp_path, capfd):
    """A missing store or file is refused; nothing is created."""
    for store in ("", f"sqlite:///{tmp_path}/missing.db"):
        assert main(["effects", "list", "--store", store, "--output", "json"]) == 2
    assert not list(tmp_path.iterdir())
