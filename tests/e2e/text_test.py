#!/usr/bin/env python3
"""Text over tokens: stops at every split, text that is held back, and bodies that are no Unicode.

  python3 tests/e2e/text_test.py BUILD
"""
import concurrent.futures
import json
import unittest

from harness import SLOW, ServedCase, chat_request, main, post_bytes, text_request

SUM = "What is 47 + 385?"
STORY = "Tell me a story about a brave fox and a river."


class Stops(ServedCase):
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
        bodies += [("/v1/completions", b'{"model":"model-b","prompt":"\xff"}'), ("/v1/completions", rb'{"model":"model-b","prompt":"\ud800"}'),
                   ("/v1/completions", b'{"model":"model-b","prompt":["ok","\xe2\x82"]}'), ("/v1/completions", b'{"model":"\xff","prompt":"x"}'),
                   ("/v1/completions", b'{"model":"model-b","prompt":"x","stop":"\xff"}'), ("/v1/completions", b'{"model":"model-b","prompt":"x","\xff":1}'),
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
            for content in (rb'"\ud83d\ude00"', '"\U0001f600"'.encode(), '"\u4f60\u597d"'.encode(), '"\U0001f468\u200d\U0001f469\u200d\U0001f467"'.encode(),
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
