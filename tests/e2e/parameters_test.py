#!/usr/bin/env python3
"""Numbers, prompts, types and names that a client gets wrong.

  python3 tests/e2e/parameters_test.py BUILD
"""
from harness import CONTEXT, MODELS, SHORT_CONTEXT, SLOW, ServedCase, Wire, chat_request, choices_of, content_of, events_of, main, text_request

VOCABULARY = {"model-a": 640, "model-b": 1024}


class Parameters(ServedCase):
    changes = SHORT_CONTEXT

    def setUp(self):
        self.wire = Wire(self.server.port)
        self.addCleanup(self.wire.socket.close)

    def ask(self, request):
        """The answer, on a connection that must survive whatever is sent."""
        answer = self.wire.post(request).response()
        self.assertNotIn(answer.status // 100, (3, 5), answer.body)
        return answer

    def refused(self, request, param=None, words=(), status=400):
        """The request is refused with an OpenAI error that names `param` and holds each of `words`, streamed or not."""
        path, body = request
        variants = [body, {**body, "stream": True}] if isinstance(body, dict) and "stream" not in body else [body]
        for variant in variants:
            with self.subTest(path=path, body=str(variant)[:200]):
                answer = self.ask((path, variant))
                self.assertEqual(answer.status, status, answer.body[:1000])
                error = answer.json["error"]
                self.assertEqual(sorted(error), ["code", "message", "param", "type"])
                self.assertEqual((error["type"], answer.headers["content-type"]), ("invalid_request_error", "application/json"))
                self.assertLess(len(answer.body), 1000)
                if param is not None:
                    self.assertEqual(error["param"], param, error)
                for word in words:
                    self.assertIn(str(word), error["message"])

    def served(self, request):
        with self.subTest(request=str(request)[:200]):
            answer = self.ask(request)
            self.assertEqual(answer.status, 200, answer.body[:1000])
            return answer

    # C11
    def test_max_tokens_is_a_number_from_1_or_is_refused_by_name(self):
        requests = [text_request("model-b", "Once upon a time"), chat_request("model-b", "A story, please."),
                    chat_request("model-a", "Count to 20."),
                    text_request("model-a", "12 + 30 =")]
        for path, body in requests:
            names = ("max_tokens", "max_completion_tokens") if "chat" in path else ("max_tokens",)
            for name in names:
                for value in (0, -1, 2**31, 2**32, 2**63, 2**63 - 1, -2**63, 2**64, 10**30, 1e300, "10", "", 1.5, 0.5, True, [], [1], {},
                              "null"):
                    self.refused((path, {**body, name: value}), name)
                for tokens in (1, 2, 7, 7.0):
                    answer = self.served((path, {**body, name: tokens}))
                    self.assertLessEqual(answer.json["usage"]["completion_tokens"], tokens)
                self.assertEqual(self.served((path, {**body, name: 1})).json["choices"][0]["finish_reason"], "length")

    # C11: null is what absent is.
    def test_null_is_the_default_of_every_parameter(self):
        names = ("max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "stream", "stream_options", "seed",
                 "logit_bias",
                 "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "user", "response_format", "tools", "tool_choice")
        for path, body in (chat_request("model-a", "What is 47 + 385?"), chat_request("model-b", "Hello!"),
                           text_request("model-a", "12 + 30 =", max_tokens=8)):
            wanted = content_of(self.served((path, body)).json)
            nulls = {name: None for name in names if name not in body or name == "stop"}
            self.assertEqual(content_of(self.served((path, {**body, **nulls})).json), wanted)

    # C11
    def test_both_names_of_the_limit_together_are_refused(self):
        for values in ((5, 5), (5, 6), (1, 1)):
            self.refused(chat_request("model-a", "x", max_tokens=values[0], max_completion_tokens=values[1]), "max_tokens",
                         ["max_completion_tokens"])
        self.refused(chat_request("model-b", "x", max_tokens=0, max_completion_tokens=5), "max_tokens")
        for values in ((None, 5), (5, None)):
            self.served(chat_request("model-a", "x", max_tokens=values[0], max_completion_tokens=values[1]))

    # C11's neighbours: the other numbers.
    def test_other_numbers_out_of_range_are_refused_by_name(self):
        for model in MODELS:
            for name, values in dict(temperature=(-0.1, 2.1, "1", [], 1e9), top_p=(-0.1, 1.1, "x"), n=(0, -1, 129, 1.5, "2", 2**63, 2**64),
                                     presence_penalty=(-2.1, 2.1, "0"), frequency_penalty=(3, {}), seed=("1", 1.5, 2**64, -2**63 - 1, []),
                                     logit_bias=([], {"a": 1}, {"1": 101}, {"1": "x"}, {"-1": 1}, {"01": 1}),
                                     stop=(1, [1], [""], "", [[]], ["x"] * 17, {}),
                                     top_k=(-2, 1.5, "4")).items():
                for value in values:
                    self.refused(chat_request(model, "x", **{name: value}), name)
            for more in (dict(temperature=0), dict(temperature=2), dict(top_p=0), dict(top_p=1), dict(seed=0), dict(seed=-2**63),
                         dict(seed=2**64 - 1),
                         dict(seed=3.0), dict(n=1), dict(presence_penalty=-2), dict(logit_bias={"1": -100, "2": 100.0}),
                         dict(stop=["a"] * 16),
                         dict(logit_bias={}), dict(stop=[])):
                self.served(chat_request(model, "x", max_tokens=1, **more))

    # C12
    def test_token_ids_are_served_and_a_wrong_one_is_named_by_its_place(self):
        for model, size in VOCABULARY.items():
            text = self.served(text_request(model, [20, 21, size - 1, 22], max_tokens=4)).json
            self.assertEqual(text["usage"]["prompt_tokens"], 4)
            lists = self.served(text_request(model, [[20, 21, size - 1, 22], [20]], max_tokens=4)).json
            self.assertEqual(content_of(lists)[0], content_of(text)[0])
            self.assertEqual((len(lists["choices"]), lists["usage"]["prompt_tokens"]), (2, 5))
            for bad in (size, size + 1, 2**31, 2**32 - 1):
                self.refused(text_request(model, [bad]), words=[bad])
                self.refused(text_request(model, [20, 21, bad]), words=["2"])
                self.refused(text_request(model, [[20], [20, bad]]), words=["1"])
            for bad in (-1, 2**32, 2**63, 2**64, 1.5, "20", None, True, [], {}):
                self.refused(text_request(model, [20, bad]), "prompt[1]")
            for bad in (-1, "20", [20], None, 0.5):
                self.refused(text_request(model, [[20], [20, 20, bad]]), "prompt[1][2]")

    # C12
    def test_prompts_are_of_one_kind_and_not_empty(self):
        for model in MODELS:
            for prompt in (["x", 1], ["x", [20]], ["x", None], [[20], "x"], [[20], 20], [[20], None]):
                self.refused(text_request(model, prompt), "prompt[1]")
            for prompt, param in (([], "prompt"), ([[]], "prompt[0]"), ([[20], []], "prompt[1]"), (None, "prompt"), ({}, "prompt"),
                                  (20, "prompt"), (True, "prompt"),
                                  ([None], "prompt[0]"), ([{}], "prompt[0]"), (["x"] * 129, "prompt"), ([[20]] * 129, "prompt")):
                self.refused(text_request(model, prompt), param)
            self.refused(("/v1/completions", dict(model=model)), "prompt")
            for prompt in ("x", ["x"], ["x", "y"], [20], [[20]], [[20], [21, 22]]):
                self.served(text_request(model, prompt, max_tokens=1))

    # C12
    def test_an_empty_text_is_an_answer_or_a_refusal(self):
        for model in MODELS:
            for prompt in ("", [""], ["", "x"]):
                self.assertIn(self.ask(text_request(model, prompt, max_tokens=1)).status, (200, 400))

    # C13
    def test_wrong_types_are_never_coerced(self):
        chat = "/v1/chat/completions"
        for model in MODELS:
            for value in ("true", "false", 1, 0, "", [], {}):
                for path, body in (chat_request(model, "x"), text_request(model, "x")):
                    self.refused((path, {**body, "stream": value}), "stream")
            message = dict(role="user", content="x")
            for messages, param in ((message, "messages"), ("x", "messages"), (1, "messages"), ([], "messages"), (None, "messages"),
                                    (["x"], "messages[0]"),
                                    ([[message]], "messages[0]"), ([None], "messages[0]"), ([message, 7], "messages[1]"),
                                    (True, "messages")):
                self.refused((chat, dict(model=model, messages=messages)), param)
            for content in (1, 1.5, True, {}, dict(type="text", text="x")):
                self.refused((chat, dict(model=model, messages=[dict(role="user", content=content)])), "messages[0].content")
            for role in (1, None, "", "User", "robot", [], "USER"):
                self.refused((chat, dict(model=model, messages=[message, dict(role=role, content="x")])), "messages[1].role")
        self.refused((chat, dict(model=1, messages=[])), "model")
        self.refused((chat, dict(model=["model-a"], messages=[])), "model")

    # C13
    def test_a_body_that_is_no_object_is_refused(self):
        for path in ("/v1/chat/completions", "/v1/completions"):
            for body in (b"null", b"42", b"[]", b'"x"', b"true", b"", b" ", b"{", b"}", b"{}{}", b"{} x", b"{'model':'model-a'}",
                         b'{"model":}', b"NaN",
                         b'{"model":"model-a",}', b'[{"model":"model-a"}]', b"\xef\xbb\xbf{}", b"{\"model\":\"model-a\"\0}", b"-",
                         b'{"a":1e}', b"/**/{}"):
                self.refused((path, body))

    # C14
    def test_content_may_be_text_parts_and_other_parts_are_refused_by_name(self):
        question = "What is 47 + 385?"
        for model in MODELS:
            wanted = content_of(self.served(chat_request(model, question)).json)
            path, body = chat_request(model, "")
            for parts in ([dict(type="text", text=question)], [dict(type="text", text=question, cache_control=None)]):
                answer = self.served((path, {**body, "messages": [dict(role="user", content=parts)]}))
                self.assertEqual(content_of(answer.json), wanted)
            self.served((path, {**body, "messages": [dict(role="user", content=[dict(type="text", text="What is"),
                                                                                dict(type="text", text="47 + 385?")])]}))
            for part, param in ((dict(type="image_url", image_url=dict(url="data:")), "content[1].type"),
                                (dict(type="input_audio"), "content[1].type"),
                                (dict(type="Text", text="x"), "content[1].type"), (dict(type=""), "content[1].type"),
                                (dict(text="x"), "content[1].type"),
                                (dict(type=1, text="x"), "content[1].type"), (dict(type="text"), "content[1].text"),
                                (dict(type="text", text=1), "content[1].text"),
                                (dict(type="text", text=None), "content[1].text"), ("x", "content[1]"), (None, "content[1]"),
                                ([], "content[1]")):
                self.refused((path, {**body, "messages": [dict(role="user", content=[dict(type="text", text="x"), part])]}),
                             "messages[0]." + param)
            self.refused((path, {**body, "messages": [dict(role="user", content=[])]}), "messages[0].content")

    # C14
    def test_messages_without_content_and_of_tools_are_served_or_refused_never_thrown(self):
        user = dict(role="user", content="What is 7 x 8?")
        call = dict(id="c1", type="function", function=dict(name="f", arguments="{}"))
        for model in MODELS:
            for message, param in ((dict(role="user", content=None), "content"), (dict(role="user"), "content"),
                                   (dict(role="system"), "content"),
                                   (dict(role="assistant"), "content"), (dict(role="assistant", content=None), "content"),
                                   (dict(role="tool", content="x"), "tool_call_id"),
                                   (dict(role="assistant", content=None, tool_calls=[]), "content"),
                                   (dict(role="assistant", content=None, tool_calls="x"), "tool_calls")):
                self.refused(("/v1/chat/completions", dict(model=model, messages=[user, message])), "messages[1]." + param)
            for messages in ([dict(role="assistant", content=None, tool_calls=[call])], [dict(role="assistant", tool_calls=[call])],
                             [dict(role="assistant", content=None, tool_calls=[call]), dict(role="tool", tool_call_id="c1", content="56")],
                             [dict(role="tool", tool_call_id="c1", content="56")], [dict(role="assistant", content="")],
                             [dict(role="system", content="x")],
                             [dict(role="developer", content="x")], [dict(role="user", content="")],
                             [dict(role="user", content="x", name="n")],
                             [dict(role="assistant", content="x")] * 3, [dict(role="user", content="{{ messages }} {% raise %}")]):
                for order in ([user] + messages, messages + [user], messages):
                    answer = self.ask(("/v1/chat/completions", dict(model=model, messages=order, max_tokens=2)))
                    self.assertIn(answer.status, (200, 400), answer.body)

    # C15
    def test_a_model_is_named_exactly_and_an_unknown_ones_echo_is_bounded(self):
        for path, body in (chat_request("", "x"), text_request("", "x")):
            for name in ("Model-a", "MODEL-A", "model-a ", " model-a", "", "model", "model-aa", "model-a\0", "gpt-4o", "x" * 65536,
                         "\u00e9" * 30000, "model-\u0430",
                         "model-a\r\nX: y", '"', "../model-a"):
                self.refused((path, {**body, "model": name}), "model", status=404)
                self.assertEqual(self.ask((path, {**body, "model": name})).json["error"]["code"], "model_not_found")
            del body["model"]
            self.refused((path, body), "model", status=400)
            self.refused((path, {**body, "model": None}), "model", status=400)
            for value in (1, [], {}, True):
                self.refused((path, {**body, "model": value}), "model", status=400)
        for name, status in (("model-a", 200), ("model-b", 200), ("Model-a", 404), ("x" * 5000, 404), ("%6dodel-a", 200)):
            answer = self.wire.get(f"/v1/models/{name}").response()
            self.assertEqual(answer.status, status, answer.body)
            self.assertLess(len(answer.body), 1000)

    # C16: the edge of the context is decided before the head of the answer, with both counts in the message.
    def test_a_prompt_that_leaves_no_room_is_refused_with_both_counts(self):
        for model in MODELS:
            for stream in (False, True):
                for length in (CONTEXT - 1, CONTEXT, CONTEXT + 1, 2 * CONTEXT):
                    path, body = text_request(model, [20] * length, stream=stream)
                    if length < CONTEXT:
                        answer = self.served((path, body))
                        [(_, reason)] = choices_of(events_of(answer.text)) if stream else content_of(answer.json)
                        self.assertIn(reason, ("length", "stop"))
                    else:
                        self.refused((path, body), words=[length, CONTEXT])
                # As text and as chat: counts come from the tokenizer.
                for request in (text_request(model, "1 " * 3000, stream=stream), chat_request(model, "9" * 5000, stream=stream),
                                text_request(model, ["x", "1 " * 3000], stream=stream)):
                    answer = self.ask(request)
                    self.assertEqual(answer.status, 400, answer.body[:300])
                    self.assertIn(str(CONTEXT), answer.json["error"]["message"])

    # C16
    def test_a_prompt_and_max_tokens_over_the_context_are_refused_with_both_counts(self):
        ends_at_once = {"model-a": {"639": 100}, "model-b": {"2": 100}}
        for model in MODELS:
            for prompt, tokens in ((100, CONTEXT - 100), (CONTEXT - 2, 2)):
                answer = self.served(text_request(model, [20] * prompt, max_tokens=tokens, logit_bias=ends_at_once[model]))
                self.assertEqual(answer.json["usage"]["prompt_tokens"], prompt)
            for prompt, tokens in ((100, CONTEXT - 99), (CONTEXT - 2, 3), (1, CONTEXT), (10, 2**24)):
                self.refused(text_request(model, [20] * prompt, max_tokens=tokens), words=[prompt, CONTEXT, tokens])
            for name in ("max_tokens", "max_completion_tokens"):
                self.refused(chat_request(model, "x", **{name: CONTEXT}), words=[CONTEXT])

    # C16: without max_tokens an answer that the model does not end is as long as the context allows, and says so.
    def test_an_answer_ends_by_length_at_the_contexts_edge(self):
        for model, stops in (("model-a", {"637": -100, "639": -100}), ("model-b", {"2": -100})):
            prompt = CONTEXT - (20 if SLOW else 60)
            for stream in (False, True):
                answer = self.served(text_request(model, [20] * prompt, logit_bias=stops, stream=stream))
                if stream:
                    reasons = [choice["finish_reason"] for event in events_of(answer.text) for choice in event["choices"] if choice["finish_reason"]]
                    self.assertEqual(reasons, ["length"])
                else:
                    self.assertEqual((answer.json["choices"][0]["finish_reason"], answer.json["usage"]["total_tokens"]),
                                     ("length", CONTEXT))


if __name__ == "__main__":
    main(__file__)
