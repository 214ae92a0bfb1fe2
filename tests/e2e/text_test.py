#!/usr/bin/env python3
"""Text over tokens: stops at every split, text that is held back, and bodies that are no Unicode.

  python3 tests/e2e/text_test.py BUILD
"""
import concurrent.futures
import json
import os
import tempfile

from harness import BUILD, MODELS, SLOW, ServedCase, chat_request, choices_of, content_of, events_of, main, post_bytes, read, text_request

SUM = "What is 47 + 385?"
STORY = "Tell me a story about a brave fox and a river."


class TextCase(ServedCase):
    def check(self, cases):
        """Each case is a request, and the choices that it must have, streamed and not."""
        def ask(case):
            (path, body), wanted, stream = case
            answer = self.client.choices((path, {**body, "stream": stream}))
            return None if answer == wanted else f"{body}: {answer} instead of {wanted}"

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            wrong = [w for w in pool.map(ask, [(request, wanted, s) for request, wanted in cases for s in (False, True)]) if w]
        self.assertEqual(wrong, [])
        self.assertGreater(len(cases), 1)

    def pieces(self, request):
        """The text of each streamed token of a greedy answer."""
        path, body = request
        wire = self.server.wire()
        events = [json.loads(event[6:]) for event in wire.post((path, {**body, "stream": True})).stream() if event != "data: [DONE]"]
        wire.socket.close()
        pieces = [c["delta"].get("content") or "" if "delta" in c else c["text"] for event in events for c in event["choices"]]
        return [piece for piece in pieces if piece]


class Stops(TextCase):
    # C02: every part of the answer is a stop once.
    def test_a_stop_at_any_split_of_an_answer_ends_it_there_and_nothing_else_is_lost(self):
        answer = self.client.answer("model-a", SUM)
        self.assertEqual(answer, "47 + 385 = 432.")
        parts = {answer[i:j] for i in range(len(answer)) for j in range(i + 1, len(answer) + 1)}
        self.assertGreater(len(parts), 100)
        parts = sorted(parts)[::7 if SLOW else 1]
        self.check([(chat_request("model-a", SUM, stop=part), [(answer[:answer.find(part)], "stop")]) for part in parts])

    # C02, the other model, the other API, tokens of several letters.
    def test_a_stop_inside_words_ends_a_plain_completion_at_its_first_byte(self):
        request = text_request("model-b", "Once upon a time", max_tokens=24)
        [(whole, reason)] = self.client.choices(request)
        self.assertEqual(reason, "length")
        self.assertTrue(any(len(piece) > 2 for piece in self.pieces(request)))
        parts = sorted({whole[i:i + size] for size in (1, 2, 3, 5, 9, 17) for i in range(len(whole) - size + 1)})
        self.check([(text_request("model-b", "Once upon a time", max_tokens=24, stop=[part]), [(whole[:whole.find(part)], "stop")])
                    for part in parts[::5 if SLOW else 1]])

    # C02: the stop begins in one token and ends in another, at every border of the answer.
    def test_a_stop_that_spans_a_token_border_never_leaks_a_byte(self):
        request = chat_request("model-b", STORY, max_tokens=40)
        pieces = self.pieces(request)
        whole = "".join(pieces)
        cases, border = [], 0
        for piece in pieces[:-1]:
            border += len(piece)
            for before, after in ((1, 1), (2, 1), (1, 2), (3, 4)):
                part = whole[max(border - before, 0):border + after]
                cases.append((chat_request("model-b", STORY, max_tokens=40, stop=part), [(whole[:whole.find(part)], "stop")]))
        self.check(cases[::6 if SLOW else 1])

    # C02: the answer ends by length while its last letters could have become a stop.
    def test_text_held_back_for_a_stop_is_flushed_when_the_answer_ends_by_length(self):
        cases = []
        for tokens in range(1, 13):
            request = text_request("model-b", "Long ago, there lived", max_tokens=tokens)
            [(text, reason)] = self.client.choices(request)
            self.assertEqual(reason, "length")
            for held in range(1, len(text) + 1, 3 if SLOW else 1):
                stop = text[-held:] + "\u2603"
                cases.append((text_request("model-b", "Long ago, there lived", max_tokens=tokens, stop=stop), [(text, "length")]))
        self.check(cases)

    # C02: the same when the model ends.
    def test_text_held_back_for_a_stop_is_flushed_when_the_model_ends(self):
        answer = self.client.answer("model-a", SUM)
        self.check([(chat_request("model-a", SUM, stop=[answer[i:] + end]), [(answer, "stop")])
                    for i in range(len(answer)) for end in ("!", "..", "\n")])

    # C02: a stop that completes with the very last token allowed is a stop, not a length.
    def test_a_stop_completed_by_the_last_token_is_a_stop(self):
        [(text, _)] = self.client.choices(text_request("model-b", "Once upon a time", max_tokens=9))
        last = self.pieces(text_request("model-b", "Once upon a time", max_tokens=9))[-1]
        first = text.find(last)
        self.check([(text_request("model-b", "Once upon a time", max_tokens=9, stop=last), [(text[:first], "stop")]),
                    (text_request("model-b", "Once upon a time", max_tokens=9, stop=text[-5:]), [(text[:text.find(text[-5:])], "stop")]),
                    (text_request("model-b", "Once upon a time", max_tokens=8, stop=last + "\n"), [(text[:-len(last)], "length")])])

    def test_of_several_stops_the_first_to_complete_wins_and_prefixes_of_others_are_given_back(self):
        answer = self.client.answer("model-a", SUM)   # 47 + 385 = 432.
        for stops, end in ((["385", "432"], "385"), (["432", "385"], "385"), (["385 = 433", "432"], "432"), (["= 4", "385 = 5"], "= 4"),
                           (["nowhere", "+"], "+"), (["47 + 386", " + 385 = 432."], " + 385 = 432.")):
            self.check([(chat_request("model-a", SUM, stop=stops), [(answer[:answer.find(end)], "stop")])] * 2)

    # The stop is looked for in the answer, not in the prompt; each choice has its own.
    def test_each_choice_looks_for_its_own_stop(self):
        request = text_request("model-b", "Once upon a time", temperature=1.3, seed=6, n=3, max_tokens=40)
        whole = self.client.choices(request)
        self.assertEqual(len({text for text, _ in whole}), 3)
        stop = whole[0][0][20:24]
        wanted = [(text[:text.find(stop)], "stop") if stop in text else (text, reason) for text, reason in whole]
        self.check([(text_request("model-b", "Once upon a time", temperature=1.3, seed=6, n=3, max_tokens=40, stop=stop), wanted)] * 2)


DEMO_MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "demo_models")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
TEXTS = ["\U0001f600", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", FAMILY, "a" + FAMILY + "b", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7",
         "e\u0301 and \u00e9",
         "\U0001f44d\U0001f3fd\U0001f44d\U0001f3ff", "\u0928\u092e\u0938\u094d\u0924\u0947", "x\U0001f600y\u4f60z\u00df",
         "\n\U0001f600\n\u4f60\n", "\U0001d11e\U0010ffff\u0080\u07ff\u0800\uffff",
         "\U0001f600" * 40, "\u4f60\u597d" * 30, "\u200d\u200d", " \u4f60 \U0001f601",
         "\ud55c\uad6d\uc5b4 \u65e5\u672c\u8a9e \U0001f1ef\U0001f1f5"]
MIXED = "\u4f60\u597d\uff0c\U0001f600\U0001f601!" + FAMILY


def byte_tokens(model):
    """The token of each single byte. Byte-level BPE writes bytes that are no visible letters as letters from U+0100 on; SentencePiece has
    its byte fallback."""
    tokens = json.loads(read(os.path.join(BUILD, "demo-package", "tokenizer", model, "tokenizer.json")))["tokens"]
    if model == "model-b":
        return [tokens.index(f"<0x{byte:02X}>") for byte in range(256)]
    visible = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    return [tokens.index(chr(byte if byte in visible else 0x100 + others.index(byte))) for byte in range(256)]


class Scripted(TextCase):
    """Answers whose every byte is a token of its own, so that each character is split wherever it can be."""

    @classmethod
    def setUpClass(cls):
        cls.scripts = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scripts.cleanup)
        path = os.path.join(cls.scripts.name, "faults.yaml")
        cls.bytes = {model: byte_tokens(model) for model in MODELS}
        goldens = {model: json.loads(read(os.path.join(DEMO_MODELS, f"{name}.golden.json")))["prompts"] for model,
                   name in zip(MODELS, ("abacus", "fable"))}
        cls.chats = {model: [golden for golden in goldens[model] if "messages" in golden][:len(TEXTS)] for model in MODELS}
        with open(path, "w", encoding="utf-8") as file:
            file.write("schema: duet-faults/v1\nanswers:\n")
            for model in MODELS:
                scripts = [(cls.prompt(number), text) for number, text in enumerate(TEXTS + [MIXED])]
                scripts += [(chat["prompt_ids"], text) for chat, text in zip(cls.chats[model], TEXTS)]
                for prompt, text in scripts:
                    file.write(f"  - model: {model}\n    prompt_tokens: {prompt}\n    answer_tokens: {[cls.bytes[model][b] for b in text.encode()]}\n")
        cls.changes = dict(device=dict(profile='"null"', faults=path))
        super().setUpClass()

    @staticmethod
    def prompt(number):
        return [20, 21, 30 + number]

    def requests(self):
        """Every scripted request, plain and chat, of both models, with its text."""
        for model in MODELS:
            for number, text in enumerate(TEXTS):
                yield text_request(model, self.prompt(number)), text
                yield chat_request(model, None, messages=self.chats[model][number]["messages"]), text
            yield text_request(model, self.prompt(len(TEXTS))), MIXED

    # C01
    def test_split_characters_arrive_whole_and_as_soon_as_they_are_complete(self):
        for (path, body), text in self.requests():
            with self.subTest(path=path, model=body["model"], text=text):
                whole = json.loads(self.client.request("POST", path, body)[2])
                self.assertEqual(content_of(whole), [(text, "stop")])
                self.assertEqual(whole["usage"]["completion_tokens"], len(text.encode()) + 1)   # and the end
                wire = self.server.wire().post((path, {**body, "stream": True}))
                events = [json.loads(event[6:]) for event in wire.stream() if event != "data: [DONE]"]   # each is UTF-8 of its own
                wire.socket.close()
                self.assertEqual(choices_of(events), [(text, "stop")])
                pieces = [c.get("text") or c.get("delta", {}).get("content") for event in events for c in event["choices"]]
                self.assertEqual([piece for piece in pieces if piece], list(text))   # nothing waits for what comes after it

    # C01: with what may hold text back or follow it: stops, several choices, usage, log-probabilities.
    def test_split_characters_survive_stops_choices_and_logprobs(self):
        for (path, body), text in self.requests():
            chat = "chat" in path
            for more in (dict(stop=["\U0001f602", "\u4f61", "zz"]), dict(n=2), dict(stream_options=dict(include_usage=True)),
                         dict(max_tokens=len(text.encode()) + 1),
                         dict(logprobs=True, top_logprobs=3) if chat else dict(logprobs=3)):
                with self.subTest(path=path, text=text, more=more):
                    status, _, streamed = self.client.request("POST", path, {**body, **more, "stream": True})
                    self.assertEqual(status, 200, streamed)
                    self.assertEqual(choices_of(events_of(streamed)), [(text, "stop")] * more.get("n", 1))
                    self.assertNotIn("\ufffd", streamed)
                    if "stream_options" not in more:
                        self.assertEqual(content_of(json.loads(self.client.request("POST", path, {**body, **more})[2])),
                                         [(text, "stop")] * more.get("n", 1))
                    if chat and "logprobs" in more:
                        tokens = [token for e in events_of(streamed) for c in e["choices"] for token in (c["logprobs"] or {}).get("content",
                                                                                                                                  [])]
                        self.assertEqual(bytes(byte for token in tokens for byte in token["bytes"]).decode(), text)

    # C01: an answer that ends by length inside a character has every character before it.
    def test_an_answer_cut_inside_a_character_keeps_all_before_it(self):
        data = MIXED.encode()
        for model in MODELS:
            for tokens in range(1, len(data) + 1):
                request = text_request(model, self.prompt(len(TEXTS)), max_tokens=tokens)
                whole = data[:tokens].decode("utf-8", "ignore")
                [(text, reason)] = self.client.choices(request)
                self.assertEqual(reason, "length")
                self.assertIn(text, (whole, whole + "\ufffd") if len(whole.encode()) < tokens else (whole,))
                self.assertEqual(self.client.choices((request[0], {**request[1], "stream": True})), [(text, reason)])

    # C02: a stop of characters, each of them in pieces; of two that share all but their last byte only the right one counts.
    def test_a_stop_of_split_characters_ends_the_answer_at_its_first_byte(self):
        parts = sorted({MIXED[i:j] for i in range(len(MIXED)) for j in range(i + 1, min(i + 5, len(MIXED)) + 1)})
        cases = [(text_request(model, self.prompt(len(TEXTS)), stop=part), [(MIXED[:MIXED.find(part)],
                                                                             "stop")]) for model in MODELS for part in parts]
        cases += [(text_request(model, self.prompt(len(TEXTS)), stop=stop), [(MIXED, "stop")]) for model in MODELS
                  for stop in ("\U0001f602", "\u4f61", MIXED[-1] + "\u200d", MIXED + "!", "\U0001f600\U0001f602", "\u597d\uff0d")]
        self.check(cases[::3 if SLOW else 1])

    # C02: held back at the end by length.
    def test_half_a_stop_of_split_characters_is_flushed_when_the_answer_ends_by_length(self):
        self.check([(text_request(model, self.prompt(len(TEXTS)), max_tokens=len(MIXED[:cut].encode()),
                                  stop=MIXED[max(cut - held, 0):cut] + "\u2603"),
                     [(MIXED[:cut], "length")]) for model in MODELS for cut in range(1, len(MIXED) + 1) for held in (1, 2, 4)])


def raw_chat(content):
    """A chat whose content's JSON is these bytes."""
    return "/v1/chat/completions", b'{"model":"model-a","temperature":0,"messages":[{"role":"user","content":' + content + b'}]}'


class Unicode(ServedCase):
    # C03
    def test_what_is_no_unicode_is_refused_and_the_connection_goes_on(self):
        good = post_bytes(chat_request("model-a", SUM))
        bodies = [raw_chat(content) for content in (
            rb'"\ud800"', rb'"\udfff"', rb'"\ud83d"', rb'"\ud83dx"', rb'"\ud83d\u0041"', rb'"\ude00\ud83d"', rb'"a\udc00b"', rb'"\uD83D\n"',
            b'"\xff"', b'"a\xff\xfeb"', b'"\xc3"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xf0\x9f\x98"', b'"\x80"',
            rb'"\u12"', rb'"\uZZZZ"')]
        bodies += [("/v1/completions", b'{"model":"model-b","prompt":"\xff"}'), ("/v1/completions",
                                                                                 rb'{"model":"model-b","prompt":"\ud800"}'),
                   ("/v1/completions", b'{"model":"model-b","prompt":["ok","\xe2\x82"]}'),
                   ("/v1/completions", b'{"model":"\xff","prompt":"x"}'),
                   ("/v1/completions", b'{"model":"model-b","prompt":"x","stop":"\xff"}'),
                   ("/v1/completions", b'{"model":"model-b","prompt":"x","\xff":1}'),
                   ("/v1/chat/completions", b"\xff"), ("/v1/completions", b'{"model":"model-b","prompt":"x"}\xff')]
        for stream in (b"", b',"stream":true'):
            with self.server.wire() as wire:
                for path, body in bodies:
                    body = body.replace(b'"temperature":0', b'"temperature":0' + stream)
                    with self.subTest(body=body):
                        answer = wire.send(post_bytes((path, body))).response()
                        self.assertEqual(answer.status, 400, answer.body)
                        self.assertEqual(sorted(answer.json["error"]), ["code", "message", "param", "type"])
                        self.assertEqual(answer.json["error"]["type"], "invalid_request_error")
                        again = wire.send(good).response()
                        self.assertEqual((again.status, again.json["choices"][0]["message"]["content"]), (200, "47 + 385 = 432."))

    # C03's other side: whatever is Unicode is served.
    def test_every_way_to_write_unicode_is_served(self):
        with self.server.wire() as wire:
            for content in (rb'"\ud83d\ude00"', '"\U0001f600"'.encode(), '"\u4f60\u597d"'.encode(),
                            '"\U0001f468\u200d\U0001f469\u200d\U0001f467"'.encode(),
                            rb'"\u0000"', b'"\x7f"', rb'"\uffff"', '"\ufeff"'.encode(), '"e\u0301"'.encode(), rb'"\u2028"'):
                with self.subTest(content=content):
                    answer = wire.send(post_bytes(raw_chat(content))).response()
                    self.assertEqual(answer.status, 200, answer.body)
                    self.assertNotIn("\ufffd", answer.text)

    # A pair of escapes and the character itself are one text: the same tokens, the same answer.
    def test_an_escaped_pair_is_the_character(self):
        counts = set()
        for content in (rb'"\ud83d\ude00"', '"\U0001f600"'.encode()):
            with self.server.wire() as wire:
                counts.add(json.dumps(wire.send(post_bytes(raw_chat(content))).response().json["usage"]))
        self.assertEqual(len(counts), 1)

    # C01 without a script: single bytes of characters are tokens; half a character never leaves, streamed or not.
    def test_bytes_that_never_become_a_character_are_the_same_streamed_and_not(self):
        for seed in range(4 if SLOW else 16):
            request = text_request("model-b", "Once", max_tokens=24, temperature=2, seed=seed, n=2,
                                   logit_bias={str(3 + byte): 40 for byte in (0xE2, 0x82, 0xAC, 0xC3, 0xA9, 0x41)})
            path, body = request
            self.assertEqual(self.client.choices(request), self.client.choices((path, {**body, "stream": True})))


if __name__ == "__main__":
    main(__file__)
