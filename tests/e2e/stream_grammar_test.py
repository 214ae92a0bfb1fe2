#!/usr/bin/env python3
"""What a stream is made of: heads, roles, usage, ends of choices.

  python3 tests/e2e/stream_grammar_test.py BUILD
"""
import json

from harness import MODELS, SLOW, ServedCase, chat_request, choices_of, content_of, events_of, main, text_request

STORY = "Tell me a story about a brave fox and a river."

# (chat or not, model, further fields): the shapes that every rule of this file is checked on.
SHAPES = [(model, chat, more) for model in MODELS for chat in (True, False)
          for more in (dict(max_tokens=12), dict(max_tokens=9, n=3, temperature=1, seed=8), dict(stop=["."], max_tokens=30),
                       dict(max_tokens=1),
                       dict(max_tokens=10, n=2, logprobs=True), dict(max_tokens=20, temperature=2, seed=1, n=2))]


def request_of(model, chat, more):
    more = dict(more)
    if "logprobs" in more and not chat:
        more["logprobs"] = 2
    if chat:
        return chat_request(model, STORY if model == "model-b" else "Count to 20.", **more)
    return text_request(model, "Once upon a time" if model == "model-b" else "12 + 30 =", **more)


class Grammar(ServedCase):
    def stream(self, request, **more):
        path, body = request
        status, headers, text = self.client.request("POST", path, {**body, "stream": True, **more})
        self.assertEqual(status, 200, text)
        return headers, events_of(text)

    # C07
    def test_usage_comes_in_one_last_chunk_if_and_only_if_it_is_asked_for(self):
        for shape in SHAPES:
            request = request_of(*shape)
            path, body = request
            with self.subTest(request=request):
                usage = json.loads(self.client.request("POST", path, body)[2])["usage"]
                for options in (dict(include_usage=True), dict(include_usage=False), {}, None, dict(include_usage=None)):
                    _, events = self.stream(request, stream_options=options)
                    if options and options.get("include_usage"):
                        self.assertEqual((events[-1]["choices"], events[-1]["usage"]), ([], usage))
                        self.assertEqual([event["usage"] for event in events[:-1]], [None] * (len(events) - 1))
                        events = events[:-1]
                    else:
                        self.assertEqual([event for event in events if "usage" in event], [])
                    self.assertEqual([event for event in events if len(event["choices"]) != 1], [])
                self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
                self.assertLessEqual(usage["completion_tokens"], body.get("max_tokens", 4096) * body.get("n", 1))

    # C07
    def test_stream_options_without_a_stream_are_refused_by_name(self):
        for path, body in (chat_request("model-a", "x"), text_request("model-b", "x"), chat_request("model-b", "x", n=2)):
            for more, param in ((dict(stream_options=dict(include_usage=True)), "stream_options"),
                                (dict(stream_options={}), "stream_options"),
                                (dict(stream=False, stream_options=dict(include_usage=False)), "stream_options"),
                                (dict(stream=True, stream_options=[]), "stream_options"),
                                (dict(stream=True, stream_options="usage"), "stream_options"),
                                (dict(stream=True, stream_options=dict(include_usage="true")), "stream_options.include_usage"),
                                (dict(stream=True, stream_options=dict(include_usage=1)), "stream_options.include_usage")):
                with self.subTest(path=path, more=more):
                    status, headers, text = self.client.request("POST", path, {**body, **more})
                    self.assertEqual((status, json.loads(text)["error"]["param"]), (400, param), text)
                    self.assertEqual(headers["content-type"], "application/json")

    # C08
    def test_each_choice_ends_once_and_every_chunk_names_its_index(self):
        for model, seeds in (("model-b", range(2 if SLOW else 6)), ("model-a", range(2))):
            for chat in (True, False):
                for seed in seeds:
                    request = request_of(model, chat, dict(n=3, temperature=1.5, seed=seed, stop=[".", "5"], max_tokens=40))
                    with self.subTest(request=request):
                        _, events = self.stream(request)
                        ends = {}
                        for event in events:
                            [choice] = event["choices"]
                            self.assertIn(choice["index"], (0, 1, 2))
                            self.assertNotIn(choice["index"], ends, "a chunk after its choice's end")
                            self.assertIn("finish_reason", choice)
                            if choice["finish_reason"] is not None:
                                ends[choice["index"]] = choice["finish_reason"]
                        self.assertEqual(sorted(ends), [0, 1, 2])
                        self.assertLessEqual(set(ends.values()), {"stop", "length"})
                        path, body = request
                        self.assertEqual(choices_of(events), content_of(json.loads(self.client.request("POST", path, body)[2])))

    # C08: choices of different lengths are not padded, cut or mixed up: some pair of lengths differs.
    def test_choices_of_different_lengths_each_keep_their_own(self):
        _, events = self.stream(chat_request("model-b", STORY, n=3, temperature=1.5, seed=4, max_tokens=300))
        texts = [text for text, _ in choices_of(events)]
        self.assertEqual(len({len(text) for text in texts}), 3)
        # Choice i of n is the same whatever n is.
        _, alone = self.stream(chat_request("model-b", STORY, n=1, temperature=1.5, seed=4, max_tokens=300))
        self.assertEqual(choices_of(alone)[0][0], texts[0])

    # C08: prompts times choices, in the order of the prompts.
    def test_choices_of_several_prompts_are_numbered_by_prompt_then_choice(self):
        prompts = ["Once upon a time", "Long ago, there lived", "The"]
        path, body = text_request("model-b", prompts, n=2, temperature=1, seed=3, max_tokens=10)
        _, events = self.stream((path, body))
        self.assertEqual([len(choices_of(events)), content_of(json.loads(self.client.request("POST", path, body)[2]))],
                         [6, choices_of(events)])
        greedy = self.client.choices(text_request("model-b", prompts, n=2, max_tokens=10))
        self.assertEqual(greedy[0::2], greedy[1::2])
        self.assertEqual(greedy[0::2], [self.client.choices(text_request("model-b", prompt, max_tokens=10))[0] for prompt in prompts])

    # C09
    def test_the_role_comes_first_and_once_for_each_choice(self):
        for shape in SHAPES:
            request = request_of(*shape)
            with self.subTest(request=request):
                _, events = self.stream(request)
                if not shape[1]:
                    self.assertEqual([event for event in events if "delta" in event["choices"][0]], [])
                    continue
                seen = set()
                for event in events:
                    [choice] = event["choices"]
                    self.assertEqual("role" in choice["delta"], choice["index"] not in seen)
                    self.assertEqual(choice["delta"].get("role", "assistant"), "assistant")
                    seen.add(choice["index"])
                self.assertEqual(len(seen), shape[2].get("n", 1))

    # C09
    def test_all_chunks_share_one_id_time_model_and_object(self):
        ids = set()
        for shape in SHAPES:
            with self.subTest(shape=shape):
                headers, events = self.stream(request_of(*shape), stream_options=dict(include_usage=True))
                self.assertEqual(len({(event["id"], event["created"], event["model"], event["object"]) for event in events}), 1)
                self.assertEqual(events[0]["model"], shape[0])
                self.assertEqual(events[0]["object"], "chat.completion.chunk" if shape[1] else "text_completion")
                self.assertEqual(events[0]["id"], headers["x-request-id"])
                ids.add(events[0]["id"])
        self.assertEqual(len(ids), len(SHAPES))

    # C09
    def test_a_stream_has_its_type_is_not_cached_and_not_compressed(self):
        for number, (path, body) in enumerate(request_of(*shape) for shape in SHAPES):
            for fields in ({}, {"Accept-Encoding": "gzip, deflate, br", "Accept": "text/event-stream"}, {"Accept": "application/json"},
                           {"x-request-id": f"mine-{number}"}):
                with self.subTest(path=path, fields=fields):
                    status, headers, text = self.client.request("POST", path, {**body, "stream": True},
                                                                {"Content-Type": "application/json", **fields})
                    self.assertEqual((status, headers["content-type"], headers["cache-control"]), (200, "text/event-stream", "no-cache"))
                    self.assertNotIn("content-encoding", headers)
                    self.assertNotIn("content-length", headers)
                    self.assertEqual(headers["transfer-encoding"], "chunked")
                    if "x-request-id" in fields:
                        self.assertEqual((headers["x-request-id"], events_of(text)[0]["id"]), (f"mine-{number}",) * 2)

    # C09's other side: without a stream it is one JSON document of known length.
    def test_without_a_stream_the_answer_is_one_document(self):
        for path, body in (request_of(*shape) for shape in SHAPES):
            for stream in ({}, dict(stream=False), dict(stream=None)):
                status, headers, text = self.client.request("POST", path, {**body, **stream})
                self.assertEqual((status, headers["content-type"], int(headers["content-length"])),
                                 (200, "application/json", len(text.encode())))
                answer = json.loads(text)
                self.assertEqual(answer["id"], headers["x-request-id"])
                self.assertEqual([choice["index"] for choice in answer["choices"]], list(range(body.get("n", 1))))
                self.assertEqual([choice for choice in answer["choices"] if choice["finish_reason"] not in ("stop", "length")], [])


if __name__ == "__main__":
    main(__file__)
