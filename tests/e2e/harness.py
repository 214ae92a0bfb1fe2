#!/usr/bin/env python3
"""Starts duet-server and talks to it: what the end-to-end tests share.

Every test is run as  python3 tests/e2e/NAME_test.py BUILD [unittest's arguments]  and ends with main(__file__), which also leaves
BUILD/junit/e2e_NAME.xml, so that tests/summary.py counts cases, not files. DUET_E2E_SLOW=1 (set for sanitizer builds) makes SLOW
true: tests then take smaller counts, and deadlines are longer.
"""
import ctypes
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.sax.saxutils

BUILD = os.path.abspath(sys.argv.pop(1))
SERVER = os.path.join(BUILD, "bin", "duet-server")
SLOW = os.environ.get("DUET_E2E_SLOW") == "1"
DEADLINE = 600 if SLOW else 120   # seconds for anything that is waited for; nothing is ever measured by it
MODELS = ("model-a", "model-b")
# A long prompt takes a sanitized build far longer than any board: its watchdog waits longer, and the tests at the context's edge
# take a nearer edge.
SLOW_MODEL = dict(job_deadline_min="10m") if SLOW else {}
CONTEXT = 512 if SLOW else 4096
SHORT_CONTEXT = dict(model_a=dict(context_limit=CONTEXT), model_b=dict(context_limit=CONTEXT)) if SLOW else {}

CONFIGURATION = """schema: calculet-dual-model/v1
device:
  type: emulated
  runtime: emulator
  board: {board}
  expected_chips: 2
  combined_calbin: {package}
{device}models:
  - alias: {alias}
    chip_id: 0
{model_a}  - alias: model-b
    chip_id: 1
{model_b}http:
  address: {address}
  port: 0
{http}security:
  trusted_signers: [{key}]
{security}{runtime}{admin}"""


def yaml(value):
    """One value; text as it is, so that "30s" stays a duration."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {yaml(inner)}" for key, inner in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def configuration(directory, **changes):
    """Writes duet.yaml and returns its path. `device`, `model_a`, `model_b`, `http`, `security`, `runtime` and `admin` are further
    keys as a dict, of which `http.limits` may be one; the other changes are the holes of CONFIGURATION."""
    values = dict(package=os.path.join(BUILD, "demo-package"), key=os.path.join(BUILD, "demo-key.pub"), address="127.0.0.1",
                  alias="model-a", board=f"e2e-{os.path.basename(sys.argv[0])[:20]}-{os.getpid()}")
    blocks = dict(device=2, model_a=4, model_b=4, http=2, security=2, runtime=2, admin=2)
    values.update(changes)
    for name, indent in blocks.items():
        keys = {**(SLOW_MODEL if name.startswith("model") else {}), **changes.get(name, {})}
        values[name] = "".join(" " * indent + f"{key}: {yaml(value)}\n" for key, value in keys.items())
    for name in ("runtime", "admin"):
        if values[name]:
            values[name] = f"{name}:\n{values[name]}"
    path = os.path.join(directory, "duet.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(**values))
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def until(condition, what):
    """Polls until `condition()` is true and returns its value; fails after DEADLINE."""
    end = time.monotonic() + DEADLINE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {DEADLINE} s in vain: {what() if callable(what) else what}")
        time.sleep(0.005)


def events_of(text):
    """The events of a whole stream, checked for its grammar: data lines alone, [DONE] once and last."""
    blocks = text.split("\n\n")
    assert blocks.pop() == "", text
    blocks = [block for block in blocks if not block.startswith(":")]   # comments keep a silent stream alive
    for block in blocks:
        assert block.startswith("data: ") and "\n" not in block, block
    assert [block for block in blocks if block == "data: [DONE]"] == blocks[-1:], text
    return [json.loads(block[6:]) for block in blocks[:-1]]


def choices_of(events):
    """What the events say, a (text, finish_reason) for each index."""
    texts, reasons = {}, {}
    for event in events:
        for choice in event["choices"]:
            index = choice["index"]
            piece = choice["text"] if "text" in choice else choice["delta"].get("content") or ""
            texts[index] = texts.get(index, "") + piece
            if choice["finish_reason"] is not None:
                assert index not in reasons, events
                reasons[index] = choice["finish_reason"]
    return [(texts[index], reasons[index]) for index in sorted(texts)]


def content_of(body):
    """The same of an answer in one piece."""
    return [(c["text"] if "text" in c else c["message"]["content"], c["finish_reason"]) for c in body["choices"]]


class Client:
    """A polite client: one connection a request."""

    def __init__(self, port):
        self.port = port

    def request(self, method, path, body=None, headers=None):
        """Status, headers with lower-case names, text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, headers or ({"Content-Type": "application/json"} if body is not None else {}))
        response = connection.getresponse()
        text = response.read().decode("utf-8")
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, text

    def chat(self, model, question, **more):
        """Status, headers, and the body or the list of events."""
        body = {"model": model, "messages": [dict(role="user", content=question)], "temperature": 0, **more}
        status, headers, text = self.request("POST", "/v1/chat/completions", body)
        return status, headers, events_of(text) if more.get("stream") and status == 200 else json.loads(text)

    def answer(self, model, question, **more):
        """The first choice's text of a chat that must succeed."""
        return self.choices(chat_request(model, question, **more))[0][0]

    def choices(self, request):
        """(text, finish_reason) of each choice of a Request that must succeed."""
        path, body = request
        status, _, text = self.request("POST", path, body)
        assert status == 200, (body, status, text)
        return choices_of(events_of(text)) if body.get("stream") else content_of(json.loads(text))

    def metrics(self):
        """{name: {label text: value}} of everything on /metrics."""
        status, _, text = self.request("GET", "/metrics")
        assert status == 200, text
        values = {}
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            name, value = line.rsplit(" ", 1)
            name, _, labels = name.partition("{")
            values.setdefault(name, {})[labels.rstrip("}")] = float(value)
        return values

    def metric(self, name, model=None):
        """The sum over models, or one model's value."""
        found = self.metrics()[name]
        return sum(value for labels, value in found.items() if model is None or f'model_name="{model}"' in labels)


def chat_request(model, question, **more):
    return "/v1/chat/completions", {"model": model, "messages": [dict(role="user", content=question)], "temperature": 0, **more}


def text_request(model, prompt, **more):
    return "/v1/completions", {"model": model, "prompt": prompt, "temperature": 0, **more}


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8")

    @property
    def json(self):
        return json.loads(self.text)


class Wire:
    """One TCP connection whose bytes the test decides; answers are read strictly."""

    def __init__(self, port, receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(("127.0.0.1", port))
        self.buffer = b""   # received
        self.text = b""     # of a stream, out of its chunks

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)
        return self

    def post(self, request, *fields):
        return self.send(post_bytes(request, *fields))

    def get(self, path, *fields, method="GET"):
        return self.send(head_bytes(method, path, "Host: x", *fields))

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)
        return self

    def reset(self):
        """Closes with a reset, as the kernel does for a process that dies with unread input."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def fill(self):
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def ended(self):
        """True when the server closed and nothing is left; waits for one or the other."""
        return not self.buffer and not self.fill()

    def line(self):
        while b"\n" not in self.buffer:
            assert self.fill(), f"the connection ended inside {self.buffer!r}"
        line, self.buffer = self.buffer.split(b"\n", 1)
        assert line.endswith(b"\r"), line
        return line[:-1]

    def exactly(self, count):
        while len(self.buffer) < count:
            assert self.fill(), f"the connection ended {count - len(self.buffer)} bytes early"
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def head(self):
        """Status and headers, names in lower case; each name once."""
        version, status, _ = self.line().decode("ascii").split(" ", 2)
        assert version == "HTTP/1.1", version
        headers = {}
        while line := self.line():
            name, value = line.decode("latin-1").split(": ", 1)
            assert name.lower() not in headers, line
            headers[name.lower()] = value
        return int(status), headers

    def chunk(self):
        """The next chunk of a chunked body, b"" at its end."""
        size = int(self.line(), 16)
        data = self.exactly(size)
        assert self.line() == b""
        return data

    def body(self, headers):
        if headers.get("transfer-encoding") == "chunked":
            assert "content-length" not in headers, headers
            return b"".join(iter(self.chunk, b""))
        if "content-length" in headers:
            return self.exactly(int(headers["content-length"]))
        while self.fill():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def response(self, head_only=False):
        status, headers = self.head()
        return Response(status, headers, b"" if head_only else self.body(headers))

    def stream(self):
        """Reads the head of a stream and returns an iterator over its events' texts, [DONE] included."""
        status, headers = self.head()
        assert status == 200 and headers["content-type"] == "text/event-stream", (status, headers)
        return self.stream_events()

    def stream_events(self):
        for chunk in iter(self.chunk, b""):
            self.text += chunk
            while b"\n\n" in self.text:
                event, self.text = self.text.split(b"\n\n", 1)
                if not event.startswith(b":"):   # a comment keeps a silent stream alive
                    yield event.decode("utf-8")
        assert self.text == b"", self.text


def head_bytes(method, path, *fields):
    return "".join(line + "\r\n" for line in (f"{method} {path} HTTP/1.1",) + fields + ("",)).encode("utf-8")


def post_bytes(request, *fields):
    path, body = request
    data = body if isinstance(body, bytes) else json.dumps(body).encode("utf-8")
    return head_bytes("POST", path, "Host: x", "Content-Type: application/json", f"Content-Length: {len(data)}", *fields) + data


LIBC = ctypes.CDLL(None)


def die_with_parent():
    """In the child: a test that is killed takes its server with it."""
    LIBC.prctl(1, signal.SIGKILL)   # PR_SET_PDEATHSIG


class Server:
    """One duet-server on a port of its own. `changes` are those of configuration()."""

    def __init__(self, directory, config=None, **changes):
        self.directory = directory
        port_file = os.path.join(directory, "port")
        if os.path.exists(port_file):
            os.remove(port_file)
        self.log = open(os.path.join(directory, "log"), "w", encoding="utf-8")
        self.process = subprocess.Popen([SERVER, "--config", config or configuration(directory, **changes), "--port-file", port_file],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
                                        preexec_fn=die_with_parent)
        try:
            self.wait(lambda: os.path.exists(port_file))
            self.port = int(read(port_file))
            self.client = Client(self.port)
            self.wait(lambda: self.client.request("GET", "/ready")[0] == 200)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def wait(self, condition):
        def alive_and():
            assert self.process.poll() is None, self.text()
            return condition()
        until(alive_and, self.text)

    def text(self):
        return read(self.log.name)

    def wire(self, **more):
        return Wire(self.port, **more)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """SIGTERM; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.log.close()


class ServedCase(unittest.TestCase):
    """Tests against one server, which must end well and at rest. `changes` are those of configuration()."""
    changes = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.server = Server(cls.folder.name, **cls.changes)
        cls.client = cls.server.client

    @classmethod
    def tearDownClass(cls):
        died = cls.server.process.poll()
        assert died is None, f"the server died, {died}\n{cls.server.text()[-20000:]}"
        try:
            cls.check_rest(cls.client)
        finally:
            code = cls.server.stop()
        assert code == 0, f"exit code {code}\n{cls.server.text()[-20000:]}"

    @staticmethod
    def check_rest(client):
        """All gauges are back at 0 and every count adds up (R-9.2, R-12.1)."""
        return until(lambda: rest_report(client.metrics()) == [] and client.metrics(), lambda: rest_report(client.metrics()))


GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "duet_sequences_active", "duet_kv_slots_used",
          "vllm:kv_cache_usage_perc", "duet_http_answers")


def rest_report(metrics):
    """What does not look like a server at rest, as sentences."""
    wrong = [f"{name}{{{labels}}} is {value}" for name in GAUGES for labels, value in metrics[name].items() if value != 0]
    for labels, accepted in metrics["duet_requests_accepted_total"].items():
        ended = [metrics[f"duet_requests_{end}_total"][labels] for end in ("finished", "failed", "aborted")]
        if accepted != sum(ended):
            wrong.append(f"{labels}: {accepted} requests accepted, {ended} finished, failed, aborted")
        submitted = metrics["duet_jobs_submitted_total"][labels]
        back = [metrics[name][labels] for name in ("duet_jobs_done_total", "duet_jobs_failed_total", "duet_completions_stale_total")]
        if submitted != sum(back):
            wrong.append(f"{labels}: {submitted} jobs submitted, {back} done, failed, stale")
    return wrong


class Result(unittest.TextTestResult):
    """Also keeps what JUnit wants."""

    def __init__(self, *args):
        super().__init__(*args)
        self.cases = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.cases.append((test.id(), ""))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.cases.append((test.id(), "failure"))

    def addError(self, test, err):
        super().addError(test, err)
        self.cases.append((test.id(), "error"))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.cases.append((test.id(), "skipped"))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.cases.append((subtest.id(), "failure"))


def main(file):
    name = "e2e_" + os.path.basename(file).removesuffix("_test.py")
    program = unittest.main(exit=False, verbosity=2, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Result))
    os.makedirs(os.path.join(BUILD, "junit"), exist_ok=True)
    with open(os.path.join(BUILD, "junit", name + ".xml"), "w", encoding="utf-8") as junit:
        junit.write("<testsuite>\n")
        for case, outcome in program.result.cases:
            quoted = xml.sax.saxutils.quoteattr(case.replace("__main__", name))
            junit.write(f"<testcase name={quoted}>{f'<{outcome}/>' if outcome else ''}</testcase>\n")
        junit.write("</testsuite>\n")
    cases = program.result.cases
    if program.result.wasSuccessful() and cases and all(outcome == "skipped" for _, outcome in cases):
        sys.exit(77)
    sys.exit(0 if program.result.wasSuccessful() and cases else 1)
