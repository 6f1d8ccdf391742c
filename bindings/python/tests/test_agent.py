"""The client of agents, with three real ones. Each promise of docs/guide/python-agent.md that a program can see is here."""

import importlib.util
import os
import re
import threading

import pytest
from conftest import ROOT

from pleach import agent
from pleach.agent import _calls, _feeds, _http, _terms


def collect(iterator, n):
    return [next(iterator) for _ in range(n)]


def in_thread(f):
    """Call f in a thread, and return a function that waits for its result."""
    result = []

    def run():
        try:
            result.append((f(), None))
        except BaseException as e:
            result.append((None, e))

    t = threading.Thread(target=run, daemon=True)
    t.start()

    def wait():
        t.join(30)
        assert result, "the call has not returned"
        if result[0][1]:
            raise result[0][1]
        return result[0][0]

    return wait


def test_members_and_status(group):
    client = group.client()
    view = client.members()
    assert len(view.members) == 3 and view.rank in {m.rank for m in view.members} and client.ready()
    assert {m.address for m in view.members} == set(group.addresses)
    assert client.status()["quorum"]["ok"]


def test_broadcast_subscribe_and_resume(group):
    a, b = group.client(0), group.client(1)
    with b.subscribe("cache") as messages:
        receipt = a.broadcast(b"\xff\x00one", "cache", stable=True, headers={"trace": "t1"})
        assert receipt.stable and len(receipt.members) == 3
        a.broadcast("other", "elsewhere")
        a.broadcast("two", "cache")
        one, two = collect(messages, 2)
    assert one.data == b"\xff\x00one" and one.headers == {"trace": "t1"} and one.topic == "cache" and two.data == b"two"
    assert one.sender.rank == a.members().rank and one.time.tzinfo is not None
    with b.subscribe("cache", after=one.id) as again:
        assert next(again) == two
    with b.subscribe("cache", last=True) as last:
        assert next(last) == two


def test_long_and_empty_messages(group):
    a, b = group.client(0), group.client(2)
    with b.subscribe("long") as messages:
        long = os.urandom(3 << 20)
        a.broadcast(long, "long")
        a.broadcast(b"", "long")
        assert [m.data for m in collect(messages, 2)] == [long, b""]


def test_send_to_one_member(group):
    a, b = group.client(0), group.client(1)
    with b.subscribe(direct=True) as messages:
        to = b.members().rank
        assert a.send(to, "for you").rank == to
        message = next(messages)
        assert message.direct and message.data == b"for you"
    with pytest.raises(agent.NotFoundError):
        a.send("nobody", "")


def test_query(group):
    answers = group.client().query("hello", "world")
    assert [a.data for a in answers.answers] == [b"hello world\n"] * 3 and not answers.unanswered


def test_keys_compare_and_swap(group):
    a, b = group.client(0), group.client(1)
    assert a.get("swap/a") is None
    version = a.put("swap/a", b"\x80one", version=0)
    assert b.get("swap/a") == agent.Entry("swap/a", b"\x80one", version)
    with pytest.raises(agent.ConflictError) as e:
        b.put("swap/a", "two", version=0)
    assert e.value.version == version
    second = b.put("swap/a", "two", version=version)
    assert second > version
    with pytest.raises(agent.ConflictError):
        a.delete("swap/a", version=version)
    assert a.delete("swap/a", version=second) and not a.delete("swap/a")
    with pytest.raises(agent.LimitError):
        a.put("swap/a", bytes(65537))


@pytest.mark.parametrize("key", ["a//b", "a/../b", ".", "..", "a?b#c%2F", "ü/\u20ac", "/", "a b;c&d"])
def test_names_of_keys(group, key):
    """A key is what the program writes. A path would lose repeated slashes and dots."""
    client = group.client()
    client.put("names/" + key, key)
    assert client.get("names/" + key).value == key.encode()
    assert key == "." or key == ".." or "names/" + key in [e.key for e in client.entries("names/")]
    client.delete("names/" + key)


def test_watch(group):
    a, b = group.client(0), group.client(1)
    first = a.put("watched/a", "1")
    with b.watch("watched/") as changes:
        assert next(changes) == agent.Change("watched/a", b"1", first)
        second = a.put("watched/b", "2")
        a.delete("watched/a")
        assert set(collect(changes, 2)) == {agent.Change("watched/b", b"2", second), agent.Change("watched/a", None, first)}
    with b.watch(key="watched/b") as changes:
        assert next(changes).value == b"2"
        a.put("watched/bb", "3")
        a.delete("watched/b")
        assert next(changes).deleted


def test_closing_ends_an_iteration(group):
    messages = group.client().subscribe("silent")
    wait = in_thread(lambda: list(messages))
    messages.close()
    assert wait() == []


def test_threads_share_a_client(group):
    client = group.client()

    def change(i):
        for n in range(10):
            client.put(f"threads/{i}", str(n))
        return client.get(f"threads/{i}").value

    assert [w() for w in [in_thread(lambda i=i: change(i)) for i in range(8)]] == [b"9"] * 8


def test_processes_do_not_share_connections(group):
    """A fork uses connections of its own."""
    client = group.client()
    client.put("fork", "parent")
    child = os.fork()
    if child == 0:
        os._exit(0 if all(client.get("fork").value == b"parent" for _ in range(50)) else 1)
    assert all(client.get("fork").value == b"parent" for _ in range(50))
    assert os.waitpid(child, 0)[1] == 0


def test_lock(group):
    a, b = group.client(0), group.client(1)
    with a.lock("report", ttl=1) as lock:
        assert lock.held() and [x.name for x in b.locks()] == ["report"]
        with pytest.raises(agent.ConflictError):
            b.lock("report", ttl=1, wait=0)
        with pytest.raises(agent.TimeoutError):
            b.lock("report", ttl=1, wait=1.5)  # longer than the TTL: the holder renews it
        lock.check()
        wait = in_thread(lambda: b.lock("report", ttl=1))
    assert not lock.held() and not lock.lost.is_set()
    with wait() as second:
        assert second.token > lock.token
    assert b.locks() == ()


def test_lost_lock(group):
    """A holder whose agent is stopped knows at the end of its TTL that the lock is lost."""
    client = group.client(2)
    with pytest.raises(agent.LockLostError), client.lock("lost", ttl=1) as lock:
        client._do = stopped
        assert lock.lost.wait(5) and not lock.held()
        del client._do
        with pytest.raises(agent.LockLostError):
            lock.check()


def stopped(call):
    raise agent.DisconnectedError("the agent is stopped")


def test_restarted_agent(group):
    """Subscriptions, watches and views go on when their agent is killed and comes back, and miss nothing."""
    a, b = group.client(0), group.client(1)
    gone = a.put("restart/gone", "1")
    with b.subscribe("restart") as messages, b.watch("restart/") as changes, a.views() as views:
        before = next(views)
        assert before.joined == before.members and not before.left
        assert next(changes).key == "restart/gone"
        a.broadcast("before", "restart")
        assert next(messages).data == b"before"
        group.kill(1)
        with pytest.raises((agent.NoAgentError, agent.DisconnectedError)):
            b.members()
        assert not b.ready()
        view = next(v for v in views if v.left)
        assert view.number > before.number and [m.address for m in view.left] == [group.addresses[1]]
        a.broadcast("meanwhile", "restart")
        a.delete("restart/gone")
        put = a.put("restart/new", "2")
        group.start(1)
        back = next(v for v in views if v.joined)
        assert [m.address for m in back.joined] == [group.addresses[1]]
        b.wait_ready(30)
        a.broadcast("after", "restart")
        assert [m.data for m in collect(messages, 2)] == [b"meanwhile", b"after"]
        got = collect(changes, 2)
        assert set(got) == {agent.Change("restart/gone", None, gone), agent.Change("restart/new", b"2", put)}


def test_missed_messages(group):
    """Where messages are missing, the iterator raises, and goes on behind them."""
    client = group.client(0)
    with client.subscribe("missed") as messages:
        client.broadcast("first", "missed")
        first = next(messages)
    for i in range(110):
        client.broadcast(str(i), "missed")
    with client.subscribe("missed", after=first.id) as messages:
        with pytest.raises(agent.MissedError) as e:
            next(messages)
        assert e.value.count == 10 and [m.data for m in collect(messages, 2)] == [b"10", b"11"]


def test_events_of_a_stream_arrive_in_parts():
    stream = b": keep-alive\n\nid: 7\n\nid: 8\nevent: put\ndata: {}\n\nevent: delete\ndata: a: b\n\n"
    want = [_http.Event("", "", ""), _http.Event("", "7", ""), _http.Event("put", "8", "{}"), _http.Event("delete", "", "a: b")]
    for size in range(1, len(stream) + 1):
        events = _http.Events()
        got = [e for at in range(0, len(stream), size) for e in events.feed(stream[at : at + size])]
        assert got == want, size


def test_a_watch_that_opens_again_has_each_deletion_once():
    def put(key, version):
        return _http.Event("put", "", f'{{"key": "{key}", "version": {version}, "data": ""}}')

    keys = _feeds.Keys("", None)
    assert keys.opened() is None
    keys.receive(put("a", 1))
    keys.receive(put("b", 2))
    keys.ready.clear()
    assert keys.opened() is not None
    keys.replied((agent.Entry("b", b"", 2),))  # a was deleted when the stream had begun
    assert keys.receive(put("a", 1)) is not None and keys.receive(put("b", 2)) is None
    keys.replied((agent.Entry("b", b"", 2),))
    keys.receive(_http.Event("delete", "", '{"key": "a", "version": 1, "data": "", "deleted": true}'))
    assert list(keys.ready) == [agent.Change("a", None, 1)]
    keys.receive(put("a", 3))
    assert keys.ready[-1] == agent.Change("a", b"", 3)
    keys.opened()
    keys.replied((agent.Entry("a", b"", 3), agent.Entry("b", b"", 2)))
    assert keys.receive(_http.Event("", "", "")) is not None  # b was deleted between the list and the stream
    keys.replied((agent.Entry("a", b"", 3),))
    assert keys.ready[-1] == agent.Change("b", None, 2)


def test_time_of_a_lock(monkeypatch):
    """The TTL counts from before the renewal was sent. Another holder ends it at once."""
    now = [100.0]
    monkeypatch.setattr(_terms, "now", lambda: now[0])
    term = _terms.Term(30)
    assert term.renewed(99.0, None) == term.interval == 10 / 3 and term.left() == 29
    now[0] = 110.0
    assert term.renewed(110.0, agent.NoAgentError()) == 0.5 and term.left() == 19
    assert term.renewed(111.0, None) and term.left() == 31
    term.renewed(112.0, agent.ConflictError(409, ""))
    assert term.left() == 0


def test_no_agent(tmp_path):
    client = agent.Client(str(tmp_path / "none.sock"))
    with pytest.raises(agent.NoAgentError, match="pleach agent"):
        client.members()
    with pytest.raises(agent.NoAgentError):
        client.subscribe()
    assert not client.ready()


def test_page_runs_as_printed(group, monkeypatch, capsys):
    """The programs of the guide run on an agent, that for PyTorch where PyTorch is."""
    monkeypatch.setenv("PLEACH_SOCKET", group.socket(0))
    monkeypatch.delenv("PLEACH_API", raising=False)
    page = (ROOT / "docs" / "guide" / "python-agent.md").read_text()
    programs = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(programs) == 5
    for program in programs:
        if "torch" not in program or importlib.util.find_spec("torch"):
            exec(compile(program, "python-agent.md", "exec"), {})
    assert "all 3 members have it" in capsys.readouterr().out


def test_where_the_agent_is(tmp_path, monkeypatch):
    """The client finds the agent as the commands do."""
    for name in ("PLEACH_API", "PLEACH_TOKEN_FILE", "PLEACH_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    assert _calls.address(None, None, None).socket == _calls.default_socket()
    monkeypatch.setenv("PLEACH_SOCKET", "/run/x.sock")
    assert _calls.address(None, None, None).socket == "/run/x.sock"
    monkeypatch.setenv("PLEACH_API", "127.0.0.1:7070")
    with pytest.raises(ValueError, match="token"):
        _calls.address(None, None, None)
    token = tmp_path / "token"
    token.write_text("secret\n")
    monkeypatch.setenv("PLEACH_TOKEN_FILE", str(token))
    assert _calls.address(None, None, None) == _calls.Address(None, "127.0.0.1", 7070, "secret")
    assert _calls.address("/run/y.sock", None, None).socket == "/run/y.sock"
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert _calls.default_socket() == "/run/user/1/pleach/agent.sock"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = tmp_path / "pleach-1"
    assert _calls.default_socket() == str(folder / "agent.sock")
    folder.mkdir(mode=0o777)
    with pytest.raises(PermissionError):  # another user has made it
        _calls.address(_calls.default_socket(), None, None)
