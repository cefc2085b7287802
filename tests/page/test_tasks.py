"""Tasks on the page: list, timeline, answer, retry, cancel; actions need the token and the CSRF value."""

import re

import amends
from amends.tasks import Agent, Orchestrator
from tests.page.conftest import TOKEN
from tests.page.test_app import SECRET, client

cook = Agent("cooking-agent")


@cook.capability(read_only=True)
async def find_recipe(dish, ctx):
    """Ask, then return the answer."""
    answer = ctx.ask(f"Which recipe for {dish}? api_key={SECRET} <script>")
    return {"recipe": answer}


async def test_tasks(tmp_path):
    """A question is answered on the page, a cancelled task is retried, and a foreign form does nothing."""
    url = f"sqlite:///{tmp_path}/tasks.db"
    async with Orchestrator([cook], store=url, worker=False) as orchestrator:
        one = await orchestrator.submit("find_recipe", "ratatouille")
        two = await orchestrator.submit("find_recipe", "soup")
        await orchestrator.drain()
        page = amends.dashboard(
            f"sqlite:///{tmp_path}/failures.db", tasks=orchestrator, token="the-t0ken-of-these-tests"
        )
        async with client(page, token=None) as browser:
            assert (await browser.get("/tasks")).status_code == 401
            assert one.id not in (await browser.get(f"/tasks/{one.id}")).text
            path = f"/tasks/{one.id}/answer"
            assert (await browser.post(path, data={"answer": "x"})).status_code == 401
            await browser.post("/sign-in", data={"token": "the-t0ken-of-these-tests"})
            listed = (await browser.get("/tasks")).text
            assert one.id in listed
            assert "input required" in listed
            shown = (await browser.get(f"/tasks/{one.id}")).text
            assert "Which recipe for ratatouille?" in shown
            assert "Sign out" in shown
            assert SECRET not in listed + shown
            assert "<script>" not in (listed + shown).replace("<script src", "")
            answer = path
            csrf = re.search(r'name="csrf" value="(\w+)"', (await browser.get(f"/tasks/{one.id}")).text)[1]
            for wrong in ({}, {"csrf": "0" * 64}):
                assert (await browser.post(answer, data={"answer": "x", **wrong})).status_code == 403
            foreign = {"origin": "http://evil.example"}
            form = {"answer": '{"with": "aubergine"}', "csrf": csrf}
            assert (await browser.post(answer, data=form, headers=foreign)).status_code == 403
            cross = {"sec-fetch-site": "cross-site"}
            assert (await browser.post(answer, data=form, headers=cross)).status_code == 403
            assert (await orchestrator.state(one.id)).status == "input_required"
            assert (await browser.post(answer, data=form)).status_code == 303
            await orchestrator.drain()
            assert (await one.result()) == {"recipe": {"with": "aubergine"}}
            for action, status in {"cancel": 303, "retry": 303, "nonsense": 404}.items():
                done = await browser.post(f"/tasks/{two.id}/{action}", data={"csrf": csrf})
                assert done.status_code == status, action
                await orchestrator.drain()
            assert (await browser.post(f"/tasks/{one.id}/retry", data={"csrf": csrf})).status_code == 409
            assert (await browser.post("/tasks/none/retry", data={"csrf": csrf})).status_code == 404
            assert (await browser.get("/tasks/none")).status_code == 404
            bearer = {"authorization": "Bearer the-t0ken-of-these-tests"}
            browser.cookies.clear()
            assert (await browser.post(f"/tasks/{two.id}/cancel", headers=bearer)).status_code == 303
    page = amends.dashboard(f"sqlite:///{tmp_path}/failures.db", tasks=url)
    async with client(page, token=None) as browser:
        await browser.post("/sign-in", data={"token": TOKEN})
        assert one.id in (await browser.get("/tasks")).text
        assert (await browser.post(f"/tasks/{two.id}/retry")).status_code == 403
