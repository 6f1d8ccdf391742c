"""The client of agents for asyncio, with real ones."""

import asyncio
import os

import pytest

from pleach import agent


def run(main, seconds=60):
    asyncio.run(asyncio.wait_for(main, seconds))


async def collect(iterator, n):
    return [await iterator.__anext__() for _ in range(n)]


def test_messages_and_keys(group):
    async def main():
        async with agent.AsyncClient(group.socket(0)) as a, agent.AsyncClient(group.socket(1)) as b:
            await a.wait_ready()
            assert len((await b.members()).members) == 3 and (await a.status())["quorum"]["ok"]
            long = os.urandom(1 << 20)
            async with b.subscribe("cache") as messages, b.watch("async/") as changes:
                assert (await a.broadcast(long, "cache", stable=True)).stable
                await a.broadcast("two", "cache", headers={"trace": "t"})
                one, two = await collect(messages, 2)
                assert one.data == long and two.data == b"two" and two.headers == {"trace": "t"}
                version = await a.put("async/k", "v", version=0)
                with pytest.raises(agent.ConflictError):
                    await b.put("async/k", "w", version=0)
                assert await b.get("async/k") == agent.Entry("async/k", b"v", version)
                assert [e.key for e in await b.entries("async/")] == ["async/k"]
                assert not (await changes.__anext__()).deleted
                assert await b.delete("async/k") and not await b.delete("async/k") and await b.get("async/k") is None
                assert (await changes.__anext__()).deleted
            async with b.subscribe("cache", after=one.id) as messages:
                async for message in messages:
                    assert message == two
                    break
            answers = await a.query("ping")
            assert len(answers.answers) == 3
            async with b.subscribe(direct=True) as direct:
                await a.send((await b.members()).rank, "hi")
                assert (await direct.__anext__()).direct

    run(main())


def test_calls_at_a_time(group):
    """Tasks share a client. One that is canceled leaves no reply for another."""

    async def main():
        async with agent.AsyncClient(group.socket(0)) as client:
            await asyncio.gather(*(client.put(f"many/{i}", str(i)) for i in range(50)))
            for _ in range(20):
                task = asyncio.ensure_future(client.get("many/1"))
                await asyncio.sleep(0)
                task.cancel()
                entry = await client.get("many/2")
                assert entry is not None and entry.value == b"2"

    run(main())


def test_lock(group):
    async def main():
        async with agent.AsyncClient(group.socket(0)) as a, agent.AsyncClient(group.socket(1)) as b:
            async with a.lock("async", ttl=1) as lock:
                assert lock.held() and [x.name for x in await b.locks()] == ["async"]
                with pytest.raises(agent.ConflictError):
                    await b.lock("async", ttl=1, wait=0)
                with pytest.raises(agent.TimeoutError):
                    await b.lock("async", ttl=1, wait=1.5)
                lock.check()
                waiting = asyncio.ensure_future(b.lock("async", ttl=1)._take())
            assert not lock.held() and not lock.lost.is_set()
            second = await waiting
            assert second.token > lock.token
            await second.release()
            with pytest.raises(agent.LockLostError):
                async with b.lock("async", ttl=1) as lost:
                    b._address = agent.AsyncClient("/nowhere")._address  # the agent cannot be reached any more
                    b.close()
                    await asyncio.wait_for(lost.lost.wait(), 5)

    run(main())


def test_restarted_agent(group):
    async def main():
        async with agent.AsyncClient(group.socket(0)) as a, agent.AsyncClient(group.socket(1)) as b:
            async with b.subscribe("restart") as messages, a.views() as views:
                await a.broadcast("before", "restart")
                assert (await messages.__anext__()).data == b"before"
                group.kill(1)
                with pytest.raises((agent.NoAgentError, agent.DisconnectedError)):
                    await b.members()
                assert not await b.ready()
                group.start(1)
                async for view in views:
                    if view.joined and view.joined != view.members:
                        break
                await b.wait_ready(30)
                await a.broadcast("after", "restart")
                assert (await messages.__anext__()).data == b"after"

    run(main())


def test_no_agent(tmp_path):
    async def main():
        client = agent.AsyncClient(str(tmp_path / "none.sock"))
        with pytest.raises(agent.NoAgentError):
            await client.members()
        with pytest.raises(agent.NoAgentError):
            await client.subscribe().__anext__()

    run(main())
