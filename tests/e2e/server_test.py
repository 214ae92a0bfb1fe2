#!/usr/bin/env python3
"""Starts duet-server on the demo package and talks to it as clients do, with Python's own HTTP client.

  python3 tests/e2e/server_test.py BUILD
"""
import concurrent.futures
import json
import subprocess
import tempfile
import unittest

from harness import CONTEXT, SERVER, SHORT_CONTEXT, ServedCase, configuration, main


class Served(ServedCase):
    changes = SHORT_CONTEXT

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
        self.assertEqual(events[-1]["usage"]["completion_tokens"],
                         events[-1]["usage"]["total_tokens"] - events[-1]["usage"]["prompt_tokens"])

    def test_plain_completions_take_text_and_token_ids(self):
        status, _, text = self.client.request("POST", "/v1/completions", dict(model="model-a", prompt="12 + 30 =", temperature=0,
                                                                              stop="\n"))
        self.assertEqual((status, json.loads(text)["choices"][0]["text"]), (200, " 42."))
        status, _, text = self.client.request("POST", "/v1/completions", dict(model="model-a", prompt=[1, 640], temperature=0))
        self.assertEqual(status, 400)
        self.assertIn("640", text)

    # the context's edge is decided before headers, with both counts.
    def test_a_prompt_over_the_context_is_refused(self):
        for stream in (False, True):
            for length, right in ((CONTEXT - 1, 200), (CONTEXT, 400), (CONTEXT + 1, 400)):
                body = dict(model="model-a", prompt=[20] * length, temperature=0, stream=stream)
                status, _, text = self.client.request("POST", "/v1/completions", body)
                self.assertEqual(status, right, text)
                if right == 400:
                    self.assertIn(str(length), text)
                    self.assertIn(str(CONTEXT), text)

    def test_errors_are_openai_objects(self):
        for body, right in ((dict(model="model-c", messages=[dict(role="user", content="x")]), 404),
                            (dict(messages=[dict(role="user", content="x")]), 400), ("{", 400), ("[]", 400)):
            status, _, text = self.client.request("POST", "/v1/chat/completions", body)
            self.assertEqual(status, right, text)
            self.assertEqual(sorted(json.loads(text)["error"]), ["code", "message", "param", "type"])

    def test_no_prompt_is_logged(self):
        self.client.answer("model-a", "What is 123 + 321?")
        self.assertNotIn("123 + 321", self.server.text())
        self.assertIn('"event":"request"', self.server.text())

    #
    def test_the_start_record_says_what_the_signature_is_worth(self):
        records = [json.loads(line) for line in self.server.text().splitlines() if line.startswith("{")]
        self.assertEqual([record["signature"] for record in records if record["event"] == "start"], ["verified"])


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

    #
    def test_a_package_that_a_stranger_signed_is_not_served(self):
        with tempfile.NamedTemporaryFile("w", suffix=".pub") as stranger:
            stranger.write("11" * 32)
            stranger.flush()
            code, text = self.run_server(key=stranger.name)
        self.assertEqual(code, 1, text)
        self.assertIn("P407", text)

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
    main(__file__)
