#!/usr/bin/env python3
"""HTTP as impolite, old and careless clients speak it.

  python3 tests/e2e/http_test.py BUILD
"""
import json

from harness import SLOW, ServedCase, chat_request, events_of, head_bytes, main, post_bytes, text_request

SUM = chat_request("model-a", "What is 47 + 385?")
RIGHT = "47 + 385 = 432."
HEALTH = head_bytes("GET", "/health", "Host: x")


def streamed(request):
    path, body = request
    return path, {**body, "stream": True}


class Http(ServedCase):
    def check_sum(self, answer):
        self.assertEqual((answer.status, answer.json["choices"][0]["message"]["content"]), (200, RIGHT), answer.body)

    def check_stream(self, answer):
        self.assertEqual((answer.status, answer.headers["content-type"]), (200, "text/event-stream"), answer.body)
        text = "".join(choice["delta"].get("content") or "" for event in events_of(answer.text) for choice in event["choices"])
        self.assertEqual(text, RIGHT)

    # C18: requests of every kind in one segment, and in segments that end anywhere.
    def test_requests_sent_together_are_answered_in_order_wherever_the_segments_end(self):
        data = HEALTH + post_bytes(SUM) + head_bytes("GET", "/v1/models", "Host: x") + post_bytes(streamed(SUM)) + \
            head_bytes("DELETE", "/internal/requests/nobody", "Host: x") + HEALTH + post_bytes(("/v1/chat/completions",
                                                                                                b"{")) + post_bytes(SUM) + \
            post_bytes(("/nowhere", {"a": 1})) + head_bytes("HEAD", "/health", "Host: x") + HEALTH
        for size in (len(data), 1000, 97) + (() if SLOW else (7,)):
            with self.subTest(size=size), self.server.wire() as wire:
                for start in range(0, len(data), size):
                    wire.send(data[start:start + size])
                self.assertEqual(wire.response().json, {"status": "alive"})
                self.check_sum(wire.response())
                self.assertEqual(wire.response().json["object"], "list")
                self.check_stream(wire.response())
                self.assertEqual(wire.response().status, 404)
                self.assertEqual(wire.response().json, {"status": "alive"})
                self.assertEqual(wire.response().status, 400)
                self.check_sum(wire.response())
                self.assertEqual(wire.response().status, 404)
                self.assertEqual(wire.response(head_only=True).status, 200)
                self.assertEqual(wire.response().json, {"status": "alive"})

    # C18
    def test_many_requests_in_one_segment_are_all_answered(self):
        count = 20 if SLOW else 60
        with self.server.wire() as wire:
            wire.send(b"".join(post_bytes(chat_request("model-a", f"What is {n} + 1?", stream=n % 3 == 0)) + HEALTH for n in range(1,
                                                                                                                                   count)))
            for n in range(1, count):
                answer = wire.response()
                text = answer.text if n % 3 else "".join(c["delta"].get("content") or "" for e in events_of(answer.text) for c in e["choices"])
                self.assertIn(f"{n} + 1 = {n + 1}.", text)
                self.assertEqual(wire.response().json, {"status": "alive"})

    # C18: a method that may have a body and has neither length nor coding has none.
    def test_a_request_without_length_does_not_swallow_the_next(self):
        for first, status in ((head_bytes("DELETE", "/internal/requests/nobody", "Host: x"), 404),
                              (head_bytes("GET", "/nowhere", "Host: x"), 404),
                              (head_bytes("POST", "/v1/chat/completions", "Host: x", "Content-Type: application/json"), 400),
                              (head_bytes("DELETE", "/v1/models", "Host: x"), 405), (head_bytes("PUT", "/v1/models", "Host: x"), 405),
                              (head_bytes("GET", "/v1/models", "Host: x", "Content-Length: 5") + b"GET /", 200),
                              (head_bytes("DELETE", "/internal/requests/nobody", "Host: x", "Content-Length: 2") + b"{}", 404)):
            with self.subTest(first=first), self.server.wire() as wire:
                wire.send(first + HEALTH + post_bytes(SUM))
                self.assertEqual(wire.response().status, status)
                self.assertEqual(wire.response().json, {"status": "alive"})
                self.check_sum(wire.response())

    # C18: HTTP/1.0 closes unless it asks to stay, and never sees a chunk.
    def test_http_1_0_is_answered_without_chunks_and_kept_if_it_asks(self):
        def old(request, *fields):
            return post_bytes(request, *fields).replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        old_health = HEALTH.replace(b"HTTP/1.1", b"HTTP/1.0", 1)
        with self.server.wire() as wire:
            for _ in range(2):
                answer = wire.send(old(SUM, "Connection: keep-alive")).response()
                self.check_sum(answer)
                self.assertEqual(answer.headers["connection"].lower(), "keep-alive")
            self.assertEqual(wire.send(old_health.replace(b"\r\n\r\n", b"\r\nConnection: Keep-Alive\r\n\r\n")).response().status, 200)
            self.check_sum(wire.send(post_bytes(SUM)).response())   # and may grow up
        for data, check in ((old(SUM), self.check_sum), (old(streamed(SUM)), self.check_stream),
                            (old(streamed(SUM), "Connection: keep-alive"), self.check_stream),
                            (old_health, lambda answer: self.assertEqual(answer.status, 200))):
            with self.subTest(data=data), self.server.wire() as wire:
                answer = wire.send(data).response()
                check(answer)
                self.assertNotIn("transfer-encoding", answer.headers)
                self.assertEqual(answer.headers["connection"].lower(), "close")
                self.assertTrue(wire.ended())

    # C18: the connection of a stream is as good as any after it.
    def test_a_connection_goes_on_right_after_a_finished_stream(self):
        with self.server.wire() as wire:
            for turn in range(5):
                self.check_stream(wire.send(post_bytes(streamed(SUM))).response())
                self.check_sum(wire.send(post_bytes(SUM)).response())
                self.assertEqual(wire.send(HEALTH).response().status, 200)
                story = wire.send(post_bytes(text_request("model-b", "Once upon a time", stream=True, max_tokens=30, n=2))).response()
                self.assertEqual(story.headers.get("connection", "keep-alive").lower(), "keep-alive", turn)
            # Sent while the stream is under way.
            wire.send(post_bytes(streamed(chat_request("model-b", "Tell me a story about a fox and a river."))))
            wire.send(HEALTH + post_bytes(SUM))
            self.assertTrue(events_of(wire.response().text))
            self.assertEqual(wire.response().status, 200)
            self.check_sum(wire.response())
        with self.server.wire() as wire:
            answer = wire.send(post_bytes(streamed(SUM), "Connection: close")).response()
            self.check_stream(answer)
            self.assertEqual(answer.headers["connection"].lower(), "close")
            self.assertTrue(wire.ended())

    # C19
    def test_a_content_type_is_json_in_utf_8_or_415(self):
        path, body = SUM
        data = json.dumps(body).encode()
        with self.server.wire() as wire:
            for kind, status in ((None, 200), ("application/json", 200), ("application/json; charset=utf-8", 200),
                                 ('application/json;charset="UTF-8"', 200),
                                 ("APPLICATION/JSON", 200), ("Application/Json; Charset=UTF-8", 200),
                                 ("application/json ;  charset=us-ascii", 200),
                                 ("application/json; version=1", 200), ("application/json;", 200), ("", 200),
                                 ("text/plain", 415), ("TEXT/PLAIN", 415), ("text/json", 415), ("application/json; charset=utf-16", 415),
                                 ("application/jsonx", 415),
                                 ("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=x", 415), ("json", 415),
                                 ("application/json charset=utf-8", 415),
                                 ("application/json; charset=latin-1", 415), ("\xff", 415)):
                for stream in (False, True):
                    sent = data[:-1] + b',"stream":true}' if stream else data
                    fields = ("Host: x", f"Content-Length: {len(sent)}") + (() if kind is None else (f"Content-Type: {kind}",))
                    with self.subTest(kind=kind, stream=stream):
                        answer = wire.send(head_bytes("POST", path, *fields).replace("\xff".encode(), b"\xff") + sent).response()
                        self.assertEqual(answer.status, status, answer.body)
                        if status == 200:
                            (self.check_stream if stream else self.check_sum)(answer)
                        else:
                            self.assertEqual(answer.json["error"]["code"], "unsupported_media_type")
            for coding, status in (("gzip", 415), ("identity", 200), ("br", 415)):
                self.assertEqual(wire.send(post_bytes(SUM, f"Content-Encoding: {coding}")).response().status, status)
            # Nobody asks for the type of a body that nobody reads.
            self.assertEqual(wire.send(head_bytes("GET", "/health", "Host: x", "Content-Type: text/plain")).response().status, 200)

    # C20
    def test_a_path_is_served_or_404_and_never_redirected(self):
        with self.server.wire() as wire:
            for path, right in (("/v1/chat/completions", 200), ("/v1/chat/completions/", 200), ("/v1/chat/completions?a=b", 200),
                                ("/v1/chat/completions/?", 200),
                                ("/v1/chat/completions?x=%2e%2e", 200), ("http://any.host:1/v1/chat/completions", 200),
                                ("//v1/chat/completions", 404), ("/v1//chat/completions", 404), ("/v1/chat//completions", 404),
                                ("/v1/chat/completions//", 404),
                                ("/v1/%2e%2e/v1/chat/completions", 404), ("/v1/../v1/chat/completions", 404),
                                ("/v1/./chat/completions", 404), ("/%76%31/chat/completions", 404),
                                ("/v1/chat/completions%2f", 404), ("/v1/chat/completions%00", 404), ("/V1/chat/completions", 404),
                                ("/v1/chat", 404), ("/", 404),
                                ("/v1/chat/completions;x", 404), ("/chat/completions", 404), ("/v1/chat/completions/x", 404), ("*", 404)):
                for stream in (False, True):
                    with self.subTest(path=path, stream=stream):
                        answer = wire.send(post_bytes((path, dict(SUM[1], stream=stream)))).response()
                        self.assertEqual(answer.status, right, answer.body)
                        self.assertNotIn("location", answer.headers)
                        if right == 200:
                            (self.check_stream if stream else self.check_sum)(answer)
                        else:
                            self.assertEqual(answer.json["error"]["code"], "not_found")
            for path, right in (("/health", 200), ("/health/", 200), ("/health?x", 200), ("//health", 404), ("/health//", 404),
                                ("/%68ealth", 404), ("/v1/models/", 200),
                                ("/v1/models/model-a/", 200), ("/v1/models//model-a", 404), ("/v1/models/model%2da", 200),
                                ("/v1/models/..%2f", 404),
                                ("/v1/models/%2e%2e", 404), ("/v1/models/model-a%", 404), ("/ready/?model=model-a", 200),
                                ("/metrics/../health", 404)):
                with self.subTest(path=path):
                    self.assertEqual(wire.get(path).response().status, right)

    # C20
    def test_a_wrong_method_gets_405_with_the_right_ones(self):
        with self.server.wire() as wire:
            for path, methods, allow in (("/v1/chat/completions", ("GET", "HEAD", "DELETE", "PUT", "PATCH", "OPTIONS", "BREW"), "POST"),
                                         ("/v1/completions", ("GET", "PUT"), "POST"), ("/v1/models", ("POST", "DELETE", "PUT", "OPTIONS"),
                                                                                       "GET, HEAD"),
                                         ("/v1/models/model-a", ("DELETE", "POST"), "GET, HEAD"),
                                         ("/health", ("POST", "DELETE"), "GET, HEAD"),
                                         ("/metrics", ("POST",), "GET, HEAD"), ("/ready", ("PUT",), "GET, HEAD"),
                                         ("/internal/requests/x", ("GET", "POST", "HEAD"), "DELETE"),
                                         ("/v1/chat/completions/", ("GET",), "POST")):
                for method in methods:
                    with self.subTest(path=path, method=method):
                        if method == "BREW":   # one that HTTP does not know
                            with self.server.wire() as other:
                                self.assertIn(other.get(path, method=method).response().status, (400, 405, 501))
                            continue
                        data = b'{"a":1}' if method in ("POST", "PUT", "PATCH") else b""
                        fields = (f"Content-Length: {len(data)}",) if data else ()
                        wire.send(head_bytes(method, path, "Host: x", *fields) + data)
                        answer = wire.response(head_only=method == "HEAD")
                        self.assertEqual((answer.status, answer.headers["allow"]), (405, allow), answer.body)
            self.check_sum(wire.send(post_bytes(SUM)).response())

    # C20: HEAD is GET without the body, of the same length.
    def test_head_is_get_without_its_body(self):
        with self.server.wire() as wire:
            for path in ("/health", "/ready", "/v1/models", "/v1/models/model-b", "/v2/health/live", "/v2/models/model-a/ready", "/nowhere",
                         "/v1/models/none"):
                whole = wire.get(path).response()
                head = wire.get(path, method="HEAD").response(head_only=True)
                with self.subTest(path=path):
                    self.assertEqual(head.status, whole.status)
                    self.assertEqual(head.headers["content-type"], whole.headers["content-type"])
                    if not path.endswith("ready"):   # which tells a time
                        self.assertEqual(head.headers["content-length"], str(len(whole.body)))
            self.assertEqual(wire.get("/metrics", method="HEAD").response(head_only=True).status, 200)
            self.assertEqual(wire.get("/health").response().json, {"status": "alive"})


if __name__ == "__main__":
    main(__file__)
