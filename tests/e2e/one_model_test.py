#!/usr/bin/env python3
"""One model under two aliases, a chip each, and one model alone with an idle chip. R-5.C

  python3 tests/e2e/one_model_test.py BUILD
"""
import json
import os
import subprocess
import tempfile
import threading
import unittest

from harness import BUILD, DEADLINE, SLOW, Server, chat_request, main

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "demo_models", "abacus")
# Of different numbers, so that what is counted for the wrong alias is seen.
QUESTIONS = {"model-a": (("What is 47 + 385?", "47 + 385 = 432."), ("What is 7 x 8?", "7 * 8 = 56.")) * (1 if SLOW else 3),
             "model-b": (("What is 47 + 385?", "47 + 385 = 432."), ("What is 7 x 8?", "7 * 8 = 56."), ("What is 90 - 35?", "90 - 35 = 55."))}
WATCHDOG = "    job_deadline_min: 10m\n" if SLOW else ""


def pack(directory, models, *words):
    """A package of abacus under each name of `models`, signed with the demo key."""
    for model in models:
        words += ("--model", f"{model}={DEMO}-q8_0.gguf", "--golden", f"{model}={DEMO}.golden.json")
    subprocess.run([os.path.join(BUILD, "bin", "duet-pack"), "build", "--quiet", "-o", directory, "--sign-key", os.path.join(BUILD, "demo-key.pem"),
                    *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=DEADLINE)


def config_of(directory, package, chips):
    """A configuration of {alias: chip} with an administration socket."""
    path = os.path.join(directory, "duet.yaml")
    models = "".join(f"  - alias: {alias}\n    chip_id: {chip}\n{WATCHDOG}" for alias, chip in chips.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""schema: calculet-dual-model/v1
device:
  type: emulated
  board: e2e-one-model-{os.getpid()}
  expected_chips: 2
  combined_calbin: {package}
models:
{models}http:
  port: 0
admin:
  socket: {os.path.join(directory, "admin")}
security:
  trusted_signers: [{os.path.join(BUILD, "demo-key.pub")}]
""")
    return path


class OneModel(unittest.TestCase):
    def serve(self, directory, package, chips):
        server = Server(directory, config_of(directory, package, chips))
        self.addCleanup(lambda: server.process.poll() is None and server.process.kill())
        return server

    def ctl(self, directory, command):
        done = subprocess.run([os.path.join(BUILD, "bin", "duet-ctl"), command, "--json", "--socket", os.path.join(directory, "admin")],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def computed(self, directory):
        """{alias: (chip, jobs that it computed since the last time)}."""
        return {chip["model"]: (chip["chip"], sum(event["kind"] == "compute" for event in chip["events"]))
                for chip in self.ctl(directory, "trace")["chips"]}

    def test_the_same_model_under_two_aliases_answers_rightly_on_two_chips_and_is_counted_apart(self):
        with tempfile.TemporaryDirectory() as directory:
            package = os.path.join(directory, "package")
            pack(package, QUESTIONS)
            weights = [read_bytes(os.path.join(package, model, "params", "parameters.bin")) for model in QUESTIONS]
            self.assertEqual(weights[0], weights[1])
            # It is the alias that binds, not the order.
            server = self.serve(directory, package, {"model-b": 1, "model-a": 0})
            self.assertEqual({m["model"]: m["chip"] for m in self.ctl(directory, "models")["models"]}, {"model-a": 0, "model-b": 1})
            self.computed(directory)   # of the goldens
            before = server.client.metrics()
            usage = {model: [] for model in QUESTIONS}
            failures = []

            def ask(model, question, answer):
                try:
                    status, _, text = server.client.request("POST", *chat_request(model, question))
                    body = json.loads(text)
                    assert status == 200 and body["model"] == model, text
                    assert body["choices"][0]["message"]["content"] == answer, text
                    usage[model].append((body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]))
                except BaseException as failure:   # shown by the main thread
                    failures.append(failure)
            threads = [threading.Thread(target=ask, args=(model, *pair)) for model, pairs in QUESTIONS.items() for pair in pairs]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            after = server.client.metrics()

            def grown(name, model):
                return sum(value - before[name].get(labels, 0) for labels, value in after[name].items() if f'model_name="{model}"' in labels)
            computed = self.computed(directory)
            for chip, (model, pairs) in enumerate(QUESTIONS.items()):
                self.assertEqual(len(usage[model]), len(pairs))
                self.assertEqual(grown("duet_requests_finished_total", model), len(pairs))
                self.assertEqual(grown("vllm:prompt_tokens_total", model), sum(prompt for prompt, _ in usage[model]))
                self.assertEqual(grown("vllm:generation_tokens_total", model), sum(generated for _, generated in usage[model]))
                jobs = grown("duet_jobs_done_total", model)
                self.assertGreaterEqual(jobs, len(pairs))
                self.assertEqual(computed[model], (chip, jobs))
            self.assertEqual(server.client.request("POST", *chat_request("abacus", "What is 7 x 8?"))[0], 404)
            self.assertEqual(server.stop(), 0)
            records = [json.loads(line) for line in server.text().splitlines() if line.startswith("{")]
            served = [(record["model"], record["chip"]) for record in records if record["event"] == "request" and record["error"] is None]
            self.assertEqual(sorted(served), [("model-a", 0)] * len(QUESTIONS["model-a"]) + [("model-b", 1)] * len(QUESTIONS["model-b"]))

    def test_one_model_alone_is_served_on_either_chip_and_the_other_is_idle(self):
        for chip in (0, 1):
            with tempfile.TemporaryDirectory() as directory:
                package = os.path.join(directory, "package")
                pack(package, ["only"], "--chip", f"only={chip}")
                server = self.serve(directory, package, {"only": chip})
                self.assertEqual([model["id"] for model in json.loads(server.client.request("GET", "/v1/models")[2])["data"]], ["only"])
                self.computed(directory)
                for question, answer in QUESTIONS["model-b"]:
                    self.assertEqual(server.client.answer("only", question), answer)
                self.assertEqual(server.client.request("POST", *chat_request("model-a", "What is 7 x 8?"))[0], 404)
                self.assertEqual({model: on for model, (on, jobs) in self.computed(directory).items() if jobs > 0}, {"only": chip})
                self.assertEqual([(each["chip"], each["model"]) for each in self.ctl(directory, "budget")["chips"]], [(chip, "only")])
                self.assertEqual(server.stop(), 0)


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    main(__file__)
