#!/usr/bin/env python3
"""Starts duet-server on the demo package and talks to it as clients do, with Python's own HTTP client.

  python3 tests/tools/server_test.py BUILD
"""
import concurrent.futures
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = sys.argv.pop(1)
SERVER = os.path.join(BUILD, "bin", "duet-server")


def configuration(directory, **changes):
    values = dict(package=os.path.join(BUILD, "demo-package"), key=os.path.join(BUILD, "demo-key.pub"), address="127.0.0.1",
                  alias="model-a", board=f"server-test-{os.getpid()}")
    values.update(changes)
    path = os.path.join(directory, "duet.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("""schema: calculet-dual-model/v1
device:
  type: emulated
  runtime: emulator
  board: {board}
  expected_chips: 2
  combined_calbin: {package}
models:
  - alias: {alias}
    chip_id: 0
  - alias: model-b
    chip_id: 1
http:
  address: {address}
  port: 0
security:
  trusted_signers: [{key}]
""".format(**values))
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Client:
    def __init__(self, port):
        self.port = port

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, data, headers or ({"Content-Type": "application/json"} if body is not None else {}))
        response = connection.getresponse()
        text = response.read().decode("utf-8")
        connection.close()
        return response.status, dict((k.lower(), v) for k, v in response.getheaders()), text

    def chat(self, model, question, **more):
        body = dict(model=model, messages=[dict(role="user", content=question)], temperature=0, **more)
        status, headers, text = self.request("POST", "/v1/chat/completions", body)
        if not more.get("stream") or status != 200:
            return status, headers, json.loads(text)
        events = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
        assert events[-1] == "[DONE]", text
        return status, headers, [json.loads(event) for event in events[:-1]]

    def answer(self, model, question, **more):
        status, _, body = self.chat(model, question, **more)
        assert status == 200, body
        if more.get("stream"):
            return "".join(c["delta"].get("content") or "" for event in body for c in event["choices"])
        return body["choices"][0]["message"]["content"]


class Server:
    def __init__(self, config, directory):
        self.port_file = os.path.join(directory, "port")
        self.log = open(os.path.join(directory, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([SERVER, "--config", config, "--port-file", self.port_file], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        while not os.path.exists(self.port_file):
            assert self.process.poll() is None, self.text()
            time.sleep(0.01)
        self.client = Client(int(read(self.port_file)))
        while self.client.request("GET", "/ready")[0] != 200:
            assert self.process.poll() is None, self.text()
            time.sleep(0.01)

    def text(self):
        self.log.flush()
        return read(self.log.name)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self.log.close()
        return code


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.server = Server(configuration(cls.directory.name), cls.directory.name)
        cls.client = cls.server.client

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        text = read(os.path.join(cls.directory.name, "log"))
        cls.directory.cleanup()
        assert code == 0, f"exit code {code}\n{text}"

    #
    def test_models_are_listed_without_chips(self):
        status, _, text = self.client.request("GET", "/v1/models")
        self.assertEqual(status, 200)
        self.assertEqual([m["id"] for m in json.loads(text)["data"]], ["model-a", "model-b"])
        self.assertNotIn("chip", text)

    #
    def test_both_models_answer_at_once_streamed_and_not(self):
        asked = [("model-a", "What is 47 + 385?"), ("model-b", "Tell me a story about a brave fox and a river.")] * 3
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(lambda item: self.client.answer(*item[1], stream=item[0] % 2 == 0), enumerate(asked)))
        self.assertEqual(answers[0::2], ["47 + 385 = 432."] * 3)
        for story in answers[1::2]:
            self.assertEqual(story, answers[1])
            self.assertIn("fox", story)
            self.assertIn("river", story)

    def test_usage_and_finish_are_told_once(self):
        _, _, events = self.client.chat("model-a", "What is 7 x 8?", stream=True, stream_options=dict(include_usage=True))
        self.assertEqual(events[0]["choices"][0]["delta"].get("role"), "assistant")
        self.assertEqual([c["finish_reason"] for e in events for c in e["choices"] if c["finish_reason"]], ["stop"])
        self.assertEqual(events[-1]["choices"], [])
        self.assertEqual(events[-1]["usage"]["completion_tokens"], events[-1]["usage"]["total_tokens"] - events[-1]["usage"]["prompt_tokens"])

    def test_plain_completions_take_text_and_token_ids(self):
        status, _, text = self.client.request("POST", "/v1/completions", dict(model="model-a", prompt="12 + 30 =", temperature=0, stop="\n"))
        self.assertEqual((status, json.loads(text)["choices"][0]["text"]), (200, " 42."))
        status, _, text = self.client.request("POST", "/v1/completions", dict(model="model-a", prompt=[1, 640], temperature=0))
        self.assertEqual(status, 400)
        self.assertIn("640", text)

    # the context's edge is decided before headers, with both counts.
    def test_a_prompt_over_the_context_is_refused(self):
        for stream in (False, True):
            for length, right in ((4095, 200), (4096, 400), (4097, 400)):
                body = dict(model="model-a", prompt=[20] * length, temperature=0, stream=stream)
                status, _, text = self.client.request("POST", "/v1/completions", body)
                self.assertEqual(status, right, text)
                if right == 400:
                    self.assertIn(str(length), text)
                    self.assertIn("4096", text)

    def test_errors_are_openai_objects(self):
        for body, right in ((dict(model="model-c", messages=[dict(role="user", content="x")]), 404),
                            (dict(messages=[dict(role="user", content="x")]), 400), ("{", 400), ("[]", 400)):
            status, _, text = self.client.request("POST", "/v1/chat/completions", body)
            self.assertEqual(status, right, text)
            self.assertEqual(sorted(json.loads(text)["error"]), ["code", "message", "param", "type"])

    def test_a_client_that_disappears_frees_its_sequence_and_counts_as_aborted(self):
        before = self.metric("aborted")
        body = json.dumps(dict(model="model-b", messages=[dict(role="user", content="Tell me a story.")], stream=True, n=4, temperature=1, seed=3))
        connection = socket.create_connection(("127.0.0.1", self.client.port))
        connection.sendall((f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                            f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        received = b""
        while received.count(b"data: ") < 3:
            received += connection.recv(4096)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")   # reset
        connection.close()
        self.assertTrue(self.client.answer("model-b", "Hello!").startswith("I only tell stories"))
        while self.metric("aborted") == before:
            time.sleep(0.01)

    def metric(self, word):
        _, _, text = self.client.request("GET", "/metrics")
        lines = [line for line in text.splitlines() if word in line and not line.startswith("#")]
        self.assertTrue(lines, text)
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    def test_no_prompt_is_logged(self):
        self.client.answer("model-a", "What is 123 + 321?")
        self.assertNotIn("123 + 321", self.server.text())
        self.assertIn('"event":"request"', self.server.text())


class Refused(unittest.TestCase):
    def run_server(self, **changes):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([SERVER, "--config", configuration(directory, **changes), "--port", "0"], capture_output=True,
                                  text=True, timeout=120, stdin=subprocess.DEVNULL)
            return done.returncode, done.stderr

    def test_bad_starts_name_file_line_and_key(self):
        for changes, words in ((dict(alias="model-x"), ("duet.yaml:9", "model-x")), (dict(address="0.0.0.0"), ("http.address",)),
                               (dict(package="/no/such/package"), ("/no/such/package",)), (dict(key="/no/such/key"), ("/no/such/key",))):
            code, text = self.run_server(**changes)
            self.assertEqual(code, 1, text)
            for word in words:
                self.assertIn(word, text)

    def test_wrong_use_is_told_apart(self):
        for words in ([], ["--nope"], ["--config"], ["--config", "x", "--port", "70000"], ["more"]):
            done = subprocess.run([SERVER] + words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            self.assertIn(done.returncode, (1, 2) if "70000" in words else (2,), words)
            self.assertTrue(done.stderr.startswith("duet-server: "), done.stderr)

    def test_check_opens_no_device(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([SERVER, "--config", configuration(directory), "--check"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("right", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
