#!/usr/bin/env python3
"""The administration socket, duet-ctl, the log, and serving model files without a configuration.

  python3 tests/e2e/admin_test.py BUILD
"""
import base64
import fcntl
import http.client
import json
import os
import socket
import subprocess
import tempfile
import threading
import unittest

from harness import BUILD, DEADLINE, Client, Server, Wire, chat_request, configuration, main, read, text_request, until

CTL = os.path.join(BUILD, "bin", "duet-ctl")
SERVER = os.path.join(BUILD, "bin", "duet-server")
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "demo_models")
STREAMS = 20


class AdminConnection(http.client.HTTPConnection):
    """What `curl --unix-socket PATH http://localhost/...` does."""

    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(self.path)


def ask(path, target, method="GET"):
    connection = AdminConnection(path)
    connection.request(method, target)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, json.loads(body)


def ctl(*words, path=None):
    environment = {**os.environ, **({"DUET_ADMIN_SOCKET": path} if path else {})}
    return subprocess.run([CTL, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE, env=environment)


def flat(actors):
    for actor in actors:
        yield actor
        yield from flat(actor["children"])


class Administration(unittest.TestCase):
    """On a timed board, whose answers go on until their length is reached: so streams run for as long as a test wants."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.directory.name, "admin")
        cls.server = Server(cls.directory.name, device=dict(profile="timed"), admin=dict(socket=cls.path))
        cls.client = cls.server.client

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        left = os.path.exists(cls.path)
        cls.directory.cleanup()
        assert code == 0 and not left, (code, left)

    def streams(self):
        wires = []
        for i in range(STREAMS):
            wire = Wire(self.client.port)
            wires.append(wire.post(text_request(("model-a", "model-b")[i % 2], [1, 2, 3 + i], max_tokens=4000, stream=True)))
        return wires

    # who waits for what, seen from outside and without stopping anybody.
    def test_the_actor_tree_shows_what_each_actor_waits_for_while_streams_run(self):
        wires = self.streams()
        until(lambda: self.client.metric("vllm:num_requests_running") >= STREAMS, "the streams do not run")
        status, tree = ask(self.path, "/actors")
        self.assertEqual(status, 200)
        actors = list(flat(tree["actors"]))
        names = [actor["name"] for actor in actors]
        self.assertEqual(names.count("request"), STREAMS)
        self.assertEqual((names.count("model-worker"), names.count("chip-session"), names.count("device-supervisor"), names.count("router")),
                         (2, 2, 1, 1))
        for actor in actors:
            self.assertIn(actor["state"], ("starting", "ready", "running", "waiting"))
            if actor["state"] == "waiting":
                self.assertTrue(actor["waits_for"], actor)
            if actor["name"] == "request" and actor["state"] == "waiting":
                self.assertEqual(actor["waits_for"], "message")
                self.assertRegex(actor["at"], r"request\.cpp:\d+$")
        # The router's children are its requests; the supervisor's are the chip sessions.
        router = next(actor for actor in actors if actor["name"] == "router")
        self.assertEqual({child["name"] for child in router["children"]}, {"request"})
        sessions = until(lambda: [actor for actor in flat(ask(self.path, "/actors")[1]["actors"])
                                  if actor["name"] == "chip-session" and actor["waits_for"] == "completion"], "no session waits for its chip")
        self.assertRegex(sessions[0]["at"], r"chip_session\.cpp:\d+$")
        # Each says what it holds, and no word of a prompt.
        said = {name: ask(self.path, f"/actors/{next(actor for actor in actors if actor['name'] == name)['number']}")[1]["properties"]
                for name in ("router", "model-worker", "chip-session", "request")}
        self.assertEqual((said["router"]["requests"], said["router"]["model-a"], said["model-worker"]["state"]), (STREAMS, "ready", "ready"))
        self.assertEqual(said["model-worker"]["requests"], STREAMS // 2)
        self.assertGreater(said["chip-session"]["jobs_made"], 0)
        self.assertEqual(said["request"]["prompt_tokens"], 3)
        types = ask(self.path, "/types")[1]
        self.assertGreater(types["LogitsReady"]["handled"], STREAMS)
        shown = ctl("ps", path=self.path)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertGreaterEqual(shown.stdout.count("request"), STREAMS)
        for wire in wires:
            wire.reset()
        until(lambda: self.client.metric("vllm:num_requests_running") == 0, "the streams do not end")

    def test_models_show_chips_here_and_nowhere_else(self):
        status, models = ask(self.path, "/models")
        self.assertEqual((status, [(m["model"], m["chip"], m["state"]) for m in models["models"]]),
                         (200, [("model-a", 0, "ready"), ("model-b", 1, "ready")]))
        for path in ("/v1/models", "/ready", "/health", "/metrics"):
            self.assertNotIn("chip", self.client.request("GET", path)[2])

    def test_a_trace_is_taken_once_and_has_the_jobs_of_both_chips(self):
        ask(self.path, "/trace")
        for model in ("model-a", "model-b"):
            self.client.choices(text_request(model, [1, 2, 3], max_tokens=5))
        _, trace = ask(self.path, "/trace")
        for chip in trace["chips"]:
            computed = [event["graph"] for event in chip["events"] if event["kind"] == "compute"]
            self.assertEqual(computed, ["prefill"] + ["decode"] * 4)
            self.assertEqual(chip["dropped"], 0)
        self.assertEqual([chip["events"] for chip in ask(self.path, "/trace")[1]["chips"]], [[], []])

    def test_the_trace_of_two_streams_overlaps_and_loads_into_a_viewer(self):
        ask(self.path, "/trace")
        wires = [Wire(self.client.port).post(text_request(model, [1, 2], max_tokens=200, stream=True)) for model in ("model-a", "model-b")]
        for wire in wires:
            self.assertTrue(list(wire.stream()))
        chrome = os.path.join(self.directory.name, "chrome.json")
        done = ctl("trace", "--overlap", "--chrome", chrome, path=self.path)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("overlap: both chips", done.stdout)
        events = json.loads(read(chrome))["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, {0, 1})
        # Nothing ran since, so nothing overlaps.
        self.assertEqual(ctl("trace", "--overlap", path=self.path).returncode, 1)

    def test_an_operator_cancels_any_request(self):
        wire = Wire(self.client.port)
        wire.post(text_request("model-a", [1, 2, 3], max_tokens=4000, stream=True), "x-request-id: to-be-cancelled")
        stream = wire.stream()
        next(stream)
        done = ctl("cancel", "to-be-cancelled", path=self.path)
        self.assertEqual((done.returncode, done.stdout), (0, "cancelled\n"), done.stderr)
        rest = list(stream)
        self.assertNotIn("data: [DONE]", rest)
        self.assertIn("error", rest[-1])
        self.assertEqual(ctl("cancel", "to-be-cancelled", path=self.path).returncode, 1)

    def test_wrong_pages_and_methods_get_an_error_object(self):
        for method, target, right in (("GET", "/", 404), ("GET", "/nothing", 404), ("POST", "/models", 405), ("DELETE", "/actors", 405),
                                      ("GET", "/requests/x", 405), ("DELETE", "/requests/x", 404), ("GET", "/actors/0", 404)):
            status, body = ask(self.path, target, method)
            self.assertEqual((status, list(body)), (right, ["error"]), (method, target, body))

    def test_wrong_use_of_duet_ctl_is_told_apart_from_a_server_that_is_not_there(self):
        for words in ([], ["nonsense"], ["ps", "--nope"], ["ps", "more"], ["cancel"], ["ask"], ["ask", "no-equals"], ["wait", "--seconds", "x"],
                      ["budget"], ["budget", "--bound", "101"], ["budget", "--bound", "x"], ["budget", "more"], ["ps", "--strict"],
                      ["ask", "--address", "nowhere", "a=b"], ["ps"]):
            done = ctl(*words)
            self.assertEqual(done.returncode, 2, (words, done.stderr))
            self.assertTrue(done.stderr.startswith("duet-ctl: "), done.stderr)
        for words in (["ps", "--socket", "/no/such/socket"], ["models", "--socket", "/" + "x" * 300], ["budget", "--socket", "/no"],
                      ["wait", "--seconds", "1", "--socket", "/no"],
                      ["ask", "--address", "127.0.0.1:1", "a=b"]):
            done = ctl(*words)
            self.assertEqual(done.returncode, 1, (words, done.stderr))
            self.assertTrue(done.stderr.startswith("duet-ctl: error: "), done.stderr)
        self.assertEqual(ctl("--help").returncode, 0)

    def test_ask_shows_answers_and_refusals(self):
        address = f"127.0.0.1:{self.client.port}"
        done = ctl("ask", "--address", address, "--max-tokens", "5", "model-a=Hello", "model-b=Hello")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("model-a", done.stdout)
        self.assertIn("model-b", done.stdout)
        done = ctl("ask", "--address", address, "--max-tokens", "5", "model-c=Hello", "model-b=Hello")
        self.assertEqual(done.returncode, 1)
        self.assertIn("model_not_found", done.stderr)
        self.assertIn("model-b", done.stdout)

    #
    def test_a_request_leaves_one_record_with_everything_but_its_text(self):
        self.client.choices(chat_request("model-b", "Unmistakable words of a client", max_tokens=6))

        def records():
            lines = [json.loads(line) for line in self.server.text().splitlines() if line.startswith("{")]
            return [line for line in lines if line["event"] == "request" and line["completion_tokens"] == 6]
        record = until(records, "there is no record")[-1]
        self.assertEqual({key: record[key] for key in ("model", "chip", "finish_reason", "error", "level")},
                         dict(model="model-b", chip=1, finish_reason="length", error=None, level="info"))
        for key in ("request_id", "generation", "prompt_tokens", "queue_ms", "ttft_ms", "tpot_ms", "e2e_ms", "seed", "time"):
            self.assertIn(key, record)
        self.assertGreater(record["generation"], 0)
        self.assertGreaterEqual(record["e2e_ms"], record["ttft_ms"])
        self.assertNotIn("Unmistakable", self.server.text())


class Budget(unittest.TestCase):
    """duet-ctl budget: what a running server's chips hold beside the package's plan. R-8.1"""

    def budget(self, path, *words, code=0):
        done = ctl("budget", *words, path=path)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def static(self, package):
        """{chip: {line: bytes}} as duet-pack says."""
        done = subprocess.run([os.path.join(BUILD, "bin", "duet-pack"), "budget", "--json", package], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=DEADLINE, check=True)
        return {chip["chip"]: {line["what"]: line["bytes"] for line in chip["lines"]} for chip in json.loads(done.stdout)["chips"]}

    def test_both_demo_models_take_line_by_line_what_the_package_planned(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "admin")
            server = Server(directory, admin=dict(socket=path))
            self.assertEqual(server.client.answer("model-a", "What is 47 + 385?"), "47 + 385 = 432.")
            told = json.loads(self.budget(path, "--json", "--strict", "--bound", "0").stdout)
            plan = self.static(os.path.join(BUILD, "demo-package"))
            self.assertEqual((told["marked"], told["bound_percent"]), (0, 0))
            self.assertEqual([(chip["chip"], chip["model"], chip["verdict"], chip["error"]) for chip in told["chips"]],
                             [(0, "model-a", "go", None), (1, "model-b", "go", None)])
            self.assertGreater(told["host"]["resident"], 1 << 20)
            self.assertGreaterEqual(told["host"]["resident_peak"], told["host"]["resident"])
            for chip in told["chips"]:
                self.assertEqual({line["what"]: line["planned"] for line in chip["lines"]}, plan[chip["chip"]])
                lines = {line["what"]: line for line in chip["lines"]}
                for what in ("weights", "kv", "workspace", "code", "io", "metadata"):
                    self.assertEqual(lines[what]["measured"], plan[chip["chip"]][what], what)
                    self.assertEqual(lines[what]["difference"], 0, what)
                # The board knows no gaps: that is all by which the sums differ.
                for what in ("fragmentation", "guard"):
                    self.assertEqual((lines[what]["measured"], lines[what]["difference"]), (None, None))
                self.assertEqual(chip["used"]["measured"], sum(line["measured"] or 0 for line in chip["lines"]))
                # The weights are all there; goldens and the question took one slot at a time.
                self.assertEqual(lines["weights"]["peak"], plan[chip["chip"]]["weights"])
                self.assertEqual((chip["kv_slots"]["measured"], chip["kv_slots"]["peak"]), (8, 1))
                self.assertEqual(lines["kv"]["peak"] * 8, plan[chip["chip"]]["kv"])
                self.assertTrue(0 < lines["workspace"]["peak"] <= plan[chip["chip"]]["workspace"])
            table = self.budget(path).stdout
            self.assertEqual(table.count("weights"), 2)
            self.assertEqual(table.count("not measured"), 2 * 7)
            self.assertIn("nothing that was measured is more than 1 % beside the plan", table)
            self.assertEqual(ask(path, "/memory", "POST")[0], 405)
            self.assertEqual(server.stop(), 0)

    def test_slots_in_use_are_the_boards_and_the_servers_own(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "admin")
            server = Server(directory, device=dict(profile="timed"), admin=dict(socket=path), model_b=dict(max_sequences=3))
            wires = [Wire(server.port).post(text_request(model, [1, 2, 3 + i], max_tokens=4000, stream=True))
                     for model in ("model-a", "model-b") for i in range(10)]

            def slots():
                return [tuple(chip["kv_slots"][key] for key in ("planned", "measured", "used", "peak", "booked"))
                        for chip in json.loads(self.budget(path, "--json").stdout)["chips"]]
            until(lambda: slots() == [(8, 8, 8, 8, 8), (8, 8, 3, 3, 3)], lambda: f"slots are {slots()}")
            for wire in wires:
                wire.reset()
            until(lambda: slots() == [(8, 8, 0, 8, 0), (8, 8, 0, 3, 0)], lambda: f"slots are {slots()}")
            self.assertEqual(server.stop(), 0)

    def test_a_board_with_another_memory_than_the_package_was_made_for_is_marked(self):
        with tempfile.TemporaryDirectory() as directory:
            package, path = os.path.join(directory, "package"), os.path.join(directory, "admin")
            words = [os.path.join(BUILD, "bin", "duet-pack"), "build", "--quiet", "-o", package, "--dram-mib", "8192", "--sign-key",
                     os.path.join(BUILD, "demo-key.pem")]
            for model, name in (("model-a", "abacus"), ("model-b", "fable")):
                words += ["--model", f"{model}={os.path.join(MODELS, name)}-q8_0.gguf", "--golden", f"{model}={os.path.join(MODELS, name)}.golden.json"]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=DEADLINE)
            server = Server(directory, package=package, admin=dict(socket=path))
            done = self.budget(path, "--strict", code=1)
            self.assertIn("not as planned: 2 marked", done.stderr)
            marked = [line for line in done.stdout.splitlines() if line.startswith("* ")]
            self.assertEqual([line.split()[1:] for line in marked], [["DRAM", "8192.00", "MiB", "16384.00", "MiB", "+8589934592", "-"]] * 2)
            self.assertIn("2 marked (*)", self.budget(path).stdout)
            self.assertIn("nothing", self.budget(path, "--bound", "100", "--strict").stdout)
            self.assertEqual(server.stop(), 0)


class HardTimes(unittest.TestCase):
    """What a server and its operator's tool bear without dying, hanging or lying."""

    def launch(self, directory, *words, stderr):
        config = configuration(directory, board=f"e2e-hard-{os.getpid()}-{os.path.basename(directory)}"[:64])
        process = subprocess.Popen([SERVER, "--config", config, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def test_a_busy_port_beside_an_administration_client_is_one_clear_error(self):
        with tempfile.TemporaryDirectory() as directory, socket.socket() as busy, open(os.path.join(directory, "log"), "w+b") as log:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            path = os.path.join(directory, "admin")
            process = self.launch(directory, "--port", str(busy.getsockname()[1]), "--admin-socket", path, stderr=log)
            while process.poll() is None:
                try:
                    ask(path, "/models")
                except (OSError, http.client.HTTPException):
                    pass
            self.assertEqual(process.returncode, 1, read(log.name))
            self.assertIn("duet-server: error: ", read(log.name))

    def test_a_log_that_nobody_reads_any_more_neither_kills_nor_holds_the_server(self):
        for gone in (False, True):
            with tempfile.TemporaryDirectory() as directory:
                reader, writer = os.pipe()
                fcntl.fcntl(writer, 1031, 4096)   # F_SETPIPE_SZ: full after a few records
                port = os.path.join(directory, "port")
                process = self.launch(directory, "--port-file", port, stderr=writer)
                os.close(writer)
                if gone:
                    os.close(reader)
                until(lambda: os.path.exists(port) or process.poll() is not None, "it does not listen")
                client = Client(int(read(port)))
                until(lambda: client.request("GET", "/ready")[0] == 200, "it does not get ready")
                for _ in range(20):
                    self.assertEqual(client.request("GET", "/nope")[0], 404)
                self.assertEqual(client.answer("model-a", "What is 47 + 385?"), "47 + 385 = 432.")
                process.terminate()
                self.assertEqual(process.wait(DEADLINE), 0)
                if not gone:
                    os.close(reader)

    def test_a_port_file_that_is_a_device_or_a_link_is_refused_and_left_alone(self):
        with tempfile.TemporaryDirectory() as directory, open(os.path.join(directory, "log"), "w+b") as log:
            link = os.path.join(directory, "link")
            os.symlink("/dev/null", link)
            process = self.launch(directory, "--port", "0", "--port-file", link, stderr=log)
            self.assertEqual(process.wait(DEADLINE), 1, read(log.name))
            self.assertTrue(os.path.islink(link))

    def test_duet_ctl_ends_with_an_error_on_answers_of_another_form(self):
        for body in (b"hello", b"{}", b'{"models":[1]}', b"[" * 100000):
            with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as server:
                path = os.path.join(directory, "s")
                server.bind(path)
                server.listen()

                def serve():
                    peer, _ = server.accept()
                    peer.recv(4096)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                    peer.close()
                for command in ("wait", "models", "ps", "trace", "budget"):
                    thread = threading.Thread(target=serve)
                    thread.start()
                    done = ctl(command, path=path)
                    thread.join()
                    self.assertEqual(done.returncode, 1, (command, body[:20], done))
                    self.assertIn("another form", done.stderr)

    def test_what_a_server_says_does_not_steer_the_terminal(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()

            def serve():
                peer, _ = server.accept()
                peer.recv(4096)
                text = json.dumps({"choices": [{"index": 0, "delta": {"content": "a\x1b[2Jb\u009b2Jc\u202ed\0e"}, "finish_reason": None}]})
                peer.sendall(f"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndata: {text}\r\n\r\ndata: [DONE]\r\n\r\n".encode())
                peer.close()
            thread = threading.Thread(target=serve)
            thread.start()
            done = ctl("ask", "--address", f"127.0.0.1:{server.getsockname()[1]}", "m=x")
            thread.join()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("a [2Jb 2Jc d e", done.stdout)
            for character in "\x1b\u009b\u202e\0":
                self.assertNotIn(character, done.stdout)

    def test_several_servers_share_a_fresh_cache_and_a_damaged_one_is_mended(self):
        words = [SERVER, "--check", "--model", f"a={os.path.join(MODELS, 'abacus-q8_0.gguf')}"]
        with tempfile.TemporaryDirectory() as directory:
            cache = os.path.join(directory, "cache")
            starts = [subprocess.Popen([*words, "--cache", cache], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       text=True) for _ in range(4)]
            told = [start.communicate(timeout=DEADLINE)[1] for start in starts]
            self.assertEqual([start.returncode for start in starts], [0] * 4, told)
            self.assertEqual(sum("duet-server: packed " in text for text in told), 1, told)
            package = next(name for name in os.listdir(cache) if os.path.isdir(os.path.join(cache, name)))

            def again():
                return subprocess.run([*words, "--cache", cache], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE)
            for spoil in (lambda: open(os.path.join(cache, "key.pub"), "w").close(), lambda: open(os.path.join(cache, "key.pem"), "w").close(),
                          lambda: os.remove(os.path.join(cache, package, "manifest.yaml")), lambda: os.mkdir(os.path.join(cache, "x.partial-1"))):
                spoil()
                done = again()
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("duet-server: found ", again().stderr)


class Completion(unittest.TestCase):
    """deploy/bash-completion/duet: what a shell offers."""

    def offered(self, *words):
        script = os.path.join(MODELS, "..", "..", "deploy", "bash-completion", "duet")
        done = subprocess.run(["bash", "-c", 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _duet; printf "%s\\n" "${COMPREPLY[@]}"',
                               script, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE,
                              env={**os.environ, "PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"]})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_commands_and_the_options_of_their_help_are_offered(self):
        self.assertEqual(self.offered("duet-ctl", ""), ["ps", "models", "trace", "budget", "cancel", "wait", "ask"])
        self.assertEqual(self.offered("duet-ctl", "trace", "--o"), ["--overlap"])
        self.assertIn("--admin-socket", self.offered("duet-server", "--"))
        self.assertEqual(self.offered("duet-pack", "build", "--kv"), ["--kv-slots"])


class Checks(unittest.TestCase):
    """duet-server --check on the specification's sample configuration. R-10.5"""

    SAMPLE = os.path.join(MODELS, "..", "..", "config", "sample.yaml")
    # What is changed in the sample, the line that must be named, and the key.
    SPOILED = (
        ("schema: calculet-dual-model/v1", "schema: calculet-dual-model/v2", 1, "schema"), ("type: pcie", "type: usb", 3, "device.type"),
        ("type: pcie", "type: [pcie]", 3, "device.type"), ("expected_chips: 2", "expected_chips: 3", 4, "device.expected_chips"),
        ("expected_chips: 2", "expected_chips: two", 4, "device.expected_chips"), ("expected_chips: 2", "expected_chip: 2", 4, "expected_chip"),
        ("alias: model-a", "alias: model-c", 7, "models[0].alias"), ("alias: model-b", "alias: model-a", 14, "models[1].alias"),
        ("alias: model-a", 'alias: ""', 7, "models[0].alias"), ("chip_id: 0", "chip_id: 1", 15, "models[1].chip_id"),
        ("chip_id: 1", "chip_id: 0", 15, "models[1].chip_id"), ("chip_id: 0", "chip_id: -1", 8, "models[0].chip_id"),
        ("prefill_graph: model_a_prefill", "prefill_graph: model_a_prefil", 9, "models[0].prefill_graph"),
        ("prefill_graph: model_b_prefill", "prefill_graph: model_a_prefill", 16, "models[1].prefill_graph"),
        ("decode_graph: model_a_decode", "decode_graph: model_a_prefill", 10, "models[0].decode_graph"),
        ("context_limit: 4096", "context_limit: 8192", 11, "models[0].context_limit"), ("context_limit: 4096", "context_limit: 4k", 11, "models[0].context_limit"),
        ("max_inflight: 1", "max_inflight: 0", 12, "models[0].max_inflight"), ("max_inflight: 1", "max_inflight: 1.5", 12, "models[0].max_inflight"),
        ("max_waiting_requests: 64", "max_waiting_requests: -64", 13, "models[0].max_waiting_requests"),
        ("max_waiting_requests: 64", "max_waiting: 64", 13, "max_waiting"), ("recovery:", "recover:", 21, "recover"),
        ("allow_session_reset: false", "allow_session_reset: maybe", 22, "recovery.allow_session_reset"),
        ("restart_process_on_unknown_dma: true", "restart_process_on_unknown_dma: 1", 23, "recovery.restart_process_on_unknown_dma"),
        ("recovery:", "\trecovery:", 21, ""), ("max_inflight: 1", "max_inflight: 1\n    max_inflight: 2", 13, "max_inflight"))

    def check(self, directory, text):
        path = os.path.join(directory, "duet.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return subprocess.run([SERVER, "--config", path, "--check"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE)

    def test_the_sample_passes_with_only_the_package_path_changed_and_spoiled_ones_name_file_line_and_key(self):
        sample = read(self.SAMPLE)
        self.assertEqual(sample.count("/models/dual-a-b"), 1)
        sample = sample.replace("/models/dual-a-b", os.path.join(BUILD, "demo-package"))
        with tempfile.TemporaryDirectory() as directory:
            done = self.check(directory, sample)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreaterEqual(len(self.SPOILED), 20)
            for old, new, line, key in self.SPOILED:
                self.assertIn(old, sample)
                done = self.check(directory, sample.replace(old, new, 1))
                self.assertEqual(done.returncode, 1, (new, done.stderr))
                errors = [text for text in done.stderr.splitlines() if "error: " in text]
                self.assertTrue(any(f"duet.yaml:{line}:" in text and key in text for text in errors), (new, line, key, errors))


class Revocation(unittest.TestCase):
    """security.revoked_signers: a package by a lost key is not served, whoever trusts the key. R-6.5"""

    KEY = os.path.join(BUILD, "demo-key.pub")

    def start(self, directory, revoked, *words, more=""):
        """Starts a server that must end by itself, and returns it with what it wrote on standard error."""
        path = os.path.join(directory, "revoked")
        with open(path, "w", encoding="utf-8") as file:
            file.write(revoked)
        config = configuration(directory, board=f"e2e-revoked-{os.getpid()}", security=dict(revoked_signers=f"[{path}]"))
        with open(config, "a", encoding="utf-8") as file:
            file.write(more)
        port = os.path.join(directory, "port")
        done = subprocess.run([SERVER, "--config", config, "--port-file", port, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=DEADLINE)
        self.assertFalse(os.path.exists(port))
        return done

    def signer(self):
        """The demo key as 64 hex digits: the last 32 bytes of what PEM holds."""
        return base64.b64decode("".join(read(self.KEY).splitlines()[1:-1]))[-32:].hex()

    def test_a_package_by_a_revoked_key_is_refused_though_trusted_in_one_message_and_one_record(self):
        key = self.signer()
        for revoked in (f"# lost in March\n\n{'1' * 64}\n{key}  # laptop\n", key.upper(), read(self.KEY)):
            with tempfile.TemporaryDirectory() as directory:
                log = os.path.join(directory, "log")
                done = self.start(directory, revoked, more=f"log:\n  file: {log}\n")
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertTrue(done.stderr.startswith("duet-server: P410 error checksums.sha256.sig: is by the revoked key " + key), done.stderr)
                records = [json.loads(line) for line in read(log).splitlines()]
                self.assertEqual([(r["event"], r["level"], r["signature"], r["signer"], r["codes"]) for r in records],
                                 [("package_refused", "error", "revoked", key, ["P410"])])
                # A check says the same and writes no record.
                done = self.start(directory, revoked, "--check", more=f"log:\n  file: {log}\n")
                self.assertEqual(done.returncode, 1)
                self.assertIn("P410", done.stderr)
                self.assertEqual(len(read(log).splitlines()), 1)

    def test_other_keys_in_the_list_do_no_harm(self):
        with tempfile.TemporaryDirectory() as directory:
            done = self.start(directory, "1" * 64 + "\n", "--check")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_spoiled_list_stops_the_start_and_names_file_line_and_key(self):
        for words in ((), ("--check",)):
            with tempfile.TemporaryDirectory() as directory:
                done = self.start(directory, self.signer() + "\nnot a key\n", *words)
                self.assertEqual(done.returncode, 1, done.stderr)
                config = os.path.join(directory, "duet.yaml")
                line = 1 + next(i for i, text in enumerate(read(config).splitlines()) if "revoked_signers" in text)
                self.assertRegex(done.stderr, rf"^duet-server: error: {config}:{line}:\d+: security\.revoked_signers\[0\]: "
                                 rf"{os.path.join(directory, 'revoked')}: line 2 is not a public key of 64 hex digits\n$")


class ModelFiles(unittest.TestCase):
    """duet-server --model: from GGUF files to answers in one command."""

    def start(self, directory, *words):
        port = os.path.join(directory, "port")
        if os.path.exists(port):
            os.remove(port)
        log = open(os.path.join(directory, "log"), "w", encoding="utf-8")
        process = subprocess.Popen([SERVER, "--cache", os.path.join(directory, "cache"), "--port", "0", "--port-file", port, "--board",
                                    f"e2e-models-{os.getpid()}", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self.addCleanup(log.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        until(lambda: os.path.exists(port) or process.poll() is not None, lambda: read(log.name))
        self.assertIsNone(process.poll(), read(log.name))
        client = Client(int(read(port)))
        until(lambda: client.request("GET", "/ready")[0] == 200, lambda: read(log.name))
        return process, client, log.name

    def test_two_model_files_are_packed_once_and_served(self):
        words = []
        for alias, name in (("sums", "abacus"), ("tales", "fable")):
            words += ["--model", f"{alias}={os.path.join(MODELS, name)}-q8_0.gguf"]
        with tempfile.TemporaryDirectory() as directory:
            for start in ("packed", "found"):
                process, client, log = self.start(directory, *words)
                self.assertEqual(client.answer("sums", "What is 47 + 385?"), "47 + 385 = 432.")
                self.assertIn("fox", client.answer("tales", "Tell me a story about a brave fox and a river."))
                process.terminate()
                self.assertEqual(process.wait(DEADLINE), 0)
                text = read(log)
                self.assertIn(f"duet-server: {start} ", text)
                for chip in (0, 1):
                    self.assertIn(f"duet-server: budget: chip {chip}: go: ", text)
            # A damaged package is not served but made anew.
            cache = os.path.join(directory, "cache")
            package = next(os.path.join(cache, name) for name in os.listdir(cache) if os.path.isdir(os.path.join(cache, name)))
            with open(os.path.join(package, "manifest.yaml"), "a", encoding="utf-8") as file:
                file.write("# changed\n")
            process, client, log = self.start(directory, *words)
            self.assertIn("56", client.answer("sums", "What is 7 x 8?"))
            self.assertIn("duet-server: packed ", read(log))
            process.terminate()
            self.assertEqual(process.wait(DEADLINE), 0)

    def test_one_file_alone_leaves_the_other_chip_idle(self):
        with tempfile.TemporaryDirectory() as directory:
            process, client, _ = self.start(directory, "--model", f"only={os.path.join(MODELS, 'abacus-q8_0.gguf')}")
            self.assertEqual(client.answer("only", "What is 47 + 385?"), "47 + 385 = 432.")
            process.terminate()
            self.assertEqual(process.wait(DEADLINE), 0)

    def test_wrong_model_options_end_with_one_clear_message(self):
        good = os.path.join(MODELS, "abacus-q8_0.gguf")
        with tempfile.TemporaryDirectory() as directory:
            cut = os.path.join(directory, "cut.gguf")
            with open(good, "rb") as file, open(cut, "wb") as out:
                out.write(file.read()[:5000])
            for words, code, part in ((["--model", "a"], 2, "ALIAS=FILE"), (["--model", f"a={good}", "--config", "x"], 2, "exclude"),
                                      (["--model", f"a={good}"] * 3, 2, "two"), (["--model", f"a={good}"] * 2, 1, "alias"),
                                      (["--model", "a=/no/such.gguf"], 1, "/no/such.gguf"), (["--model", f"a={cut}"], 1, "cut.gguf"),
                                      (["--model", f"a b={good}"], 1, "a b"), (["--model", f"a={directory}"], 1, directory)):
                done = subprocess.run([SERVER, "--cache", os.path.join(directory, "cache"), "--port", "0", *words], capture_output=True, text=True,
                                      stdin=subprocess.DEVNULL, timeout=DEADLINE)
                self.assertEqual(done.returncode, code, (words, done.stderr))
                self.assertIn(part, done.stderr)


if __name__ == "__main__":
    main(__file__)
