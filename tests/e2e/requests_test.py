#!/usr/bin/env python3
"""400 requests, 40 at a time, each compared with its own answer on an idle server.

  python3 tests/e2e/requests_test.py BUILD
"""
import concurrent.futures
import random

from harness import MODELS, SLOW, ServedCase, chat_request, main, text_request

REQUESTS = 120 if SLOW else 400
AT_A_TIME = 40


def distinct_requests():
    """Both models, both routes, greedy and seeded, one choice and two, ended by the model, by a stop and by length."""
    story = "Tell me a story about a {} and a {}."
    for number, (left, right) in enumerate([(47, 385), (120, 9), (33, 66), (999, 1)]):
        yield chat_request("model-a", f"What is {left} + {right}?")
        yield chat_request("model-a", f"What is {right} - {left}?", temperature=1, seed=number)
        yield text_request("model-a", f"{left} + {right} =", max_tokens=12)
    yield chat_request("model-a", "Count to 20.")
    yield chat_request("model-a", "Count from 5 to 60 by 5.", temperature=0.7, top_p=0.9, seed=2**63 + 11)
    yield chat_request("model-a", "Which is larger, 12 or 87?", n=2, temperature=1.5, seed=5, max_tokens=24)
    yield text_request("model-a", "7 * 8 =", temperature=2, top_k=40, seed=77, n=2, max_tokens=20)
    for number, (hero, thing) in enumerate([("fox", "river"), ("crow", "lamp"), ("bear", "storm")]):
        yield chat_request("model-b", story.format(hero, thing), max_tokens=40)
        yield chat_request("model-b", story.format(hero, thing), max_tokens=40, temperature=0.7, seed=number)
        yield text_request("model-b", f"Once upon a time a {hero}", stop=["."], max_tokens=60)
        yield text_request("model-b", "Long ago, there lived", temperature=1, min_p=0.02, seed=100 + number, max_tokens=30)
    yield chat_request("model-b", "Hello!")
    yield chat_request("model-b", "A story, please.", n=2, temperature=1.2, seed=-4, max_tokens=24, presence_penalty=0.5)
    yield text_request("model-b", ["Once upon a time", "Long ago, there lived"], max_tokens=16)
    yield text_request("model-b", "The", temperature=2, seed=9, max_tokens=48, logit_bias={"2": -100})


class Requests(ServedCase):
    # neighbours change nothing, and nothing is lost or counted twice.
    def test_every_answer_under_load_equals_its_answer_on_an_idle_server(self):
        distinct = [(path, {**body, "stream": stream}) for path, body in distinct_requests() for stream in (False, True)]
        solo = [self.client.choices(request) for request in distinct]
        for unstreamed, streamed, request in zip(solo[0::2], solo[1::2], distinct[0::2]):
            self.assertEqual(streamed, unstreamed, request)
        self.assertGreater(len({text for choices in solo for text, _ in choices}), 30)
        self.check_rest(self.client)

        numbers = [number % len(distinct) for number in range(REQUESTS)]
        random.Random(1).shuffle(numbers)
        with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            answers = list(pool.map(lambda number: self.client.choices(distinct[number]), numbers))
        for number, answer in zip(numbers, answers):
            self.assertEqual(answer, solo[number], distinct[number])

        metrics = self.check_rest(self.client)   # accepted = finished + failed + aborted, jobs submitted = done + failed + stale
        total = {name: sum(values.values()) for name, values in metrics.items()}
        self.assertEqual(total["duet_requests_accepted_total"], len(distinct) + REQUESTS)
        self.assertEqual(total["duet_requests_finished_total"], len(distinct) + REQUESTS)
        for name in ("duet_requests_refused_total", "duet_jobs_failed_total", "duet_http_readers_gone_total"):
            self.assertEqual(total[name], 0, name)
        for model in MODELS:
            self.assertGreater(self.client.metric("duet_jobs_done_total", model), REQUESTS / 4)


class RequestsOnThreeThreads(Requests):
    changes = dict(runtime=dict(threads=3))


if __name__ == "__main__":
    main(__file__)
