// request_reader_test.cpp: framing of requests, whole and in pieces; routes and admission.
#include "http/request_reader.hpp"

#include "http/admission.hpp"
#include "http/routes.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace duet::http::tests {

namespace {

using Status = RequestReader::Status;

struct Outcome {
  Status status = Status::need_more;
  unsigned error = 0;
  std::string body;
  std::string rest;   // what was not consumed
};

/// Feeds in pieces of `piece` bytes, each time all that was not consumed.
Outcome feed(const std::string& bytes, std::size_t piece, ReaderLimits limits = {}) {
  RequestReader reader(limits);
  std::string waiting;
  Outcome outcome;
  std::size_t given = 0;
  for (;;) {
    waiting.erase(0, reader.feed(waiting));
    outcome.status = reader.status();
    if (outcome.status == Status::complete || outcome.status == Status::failed) break;
    if (outcome.status == Status::head_complete) continue;
    if (given == bytes.size()) break;
    waiting += bytes.substr(given, piece);
    given = std::min(bytes.size(), given + piece);
  }
  if (outcome.status == Status::complete) outcome.body = reader.take_body();
  outcome.error = reader.error_status();
  outcome.rest = waiting + bytes.substr(given);
  return outcome;
}

const std::string head = "POST /v1/completions HTTP/1.1\r\nHost: t\r\n";

}   // namespace

BOOST_AUTO_TEST_SUITE(http_request_reader)

// C17
BOOST_AUTO_TEST_CASE(a_body_is_the_same_in_every_framing_and_every_piece) {
  const std::string plain = head + "Content-Length: 5\r\n\r\nhello";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  const std::vector<std::string> requests = {
      plain,
      chunked + "5\r\nhello\r\n0\r\n\r\n",
      chunked + "1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n0\r\n\r\n",
      chunked + "00005;name=value\r\nhello\r\n0;x\r\n\r\n",
      chunked + "2\r\nhe\r\n3\r\nllo\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n",
      chunked + "2\r\nhe\r\n3\r\nllo\r\n0\r\nAuthorization: Bearer x\r\n\r\n",
      head + "TRANSFER-ENCODING: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "\r\n\r\n" + plain,
  };
  for (const std::string& request : requests) {
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{1000}}) {
      BOOST_TEST_CONTEXT("pieces of " << piece << ": " << request) {
        const Outcome outcome = feed(request + "GET ", piece);
        BOOST_TEST((outcome.status == Status::complete));
        BOOST_TEST(outcome.body == "hello");
        BOOST_TEST(outcome.rest == "GET ");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_empty_chunked_body_is_complete) {
  for (std::size_t piece = 1; piece < 8; ++piece) {
    const Outcome outcome = feed(head + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", piece);
    BOOST_TEST((outcome.status == Status::complete));
    BOOST_TEST(outcome.body.empty());
  }
}

// C17, and request smuggling
BOOST_AUTO_TEST_CASE(framing_that_two_parties_could_read_differently_is_refused) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::vector<std::string> requests = {
      head + "Content-Length: 5\r\n" + chunked + "\r\n0\r\n\r\n",
      head + chunked + "Content-Length: 5\r\n\r\n0\r\n\r\n",
      head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      head + "Content-Length: 5, 6\r\n\r\nhello",
      head + "Content-Length: -1\r\n\r\n",
      head + "Content-Length: +5\r\n\r\nhello",
      head + "Content-Length: 0x5\r\n\r\nhello",
      head + "Content-Length: 18446744073709551616\r\n\r\n",
      head + "Content-Length:\r\n\r\n",
      head + "Transfer-Encoding: gzip\r\n\r\n",
      head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      head + "Transfer-Encoding: identity\r\n\r\n",
      head + "Transfer-Encoding: xchunked\r\n\r\n",
      head + chunked + chunked + "\r\n0\r\n\r\n",
      "POST / HTTP/1.0\r\n" + chunked + "\r\n0\r\n\r\n",
      head + "Content-Length : 5\r\n\r\nhello",
      head + "Host: other\r\n\r\n",
      head + chunked + "\r\n\r\n",
      head + chunked + "\r\nx\r\n",
      head + chunked + "\r\n-1\r\n",
      head + chunked + "\r\n5 \r\nhello\r\n0\r\n\r\n",
      head + chunked + "\r\n5\r\nhelloXX0\r\n\r\n",
      head + chunked + "\r\nFFFFFFFFFFFFFFFF\r\nhello",
      head + chunked + "\r\nFFFFFFFFFFFFFFFF1\r\nhello",
      head + chunked + "\r\n10000000000\r\nhello",
      head + chunked + "\r\n0\r\nbad trailer\r\n\r\n",
      "GET\r\n\r\n",
      "GET  / HTTP/1.1\r\n\r\n",
      std::string("GET /\0 HTTP/1.1\r\n\r\n", 19),
      "G@T / HTTP/1.1\r\nA(b: c\r\n\r\n",
  };
  for (const std::string& request : requests) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}}) {
      BOOST_TEST_CONTEXT("pieces of " << piece << ": " << request) {
        const Outcome outcome = feed(request, piece);
        BOOST_TEST((outcome.status == Status::failed));
        BOOST_TEST(outcome.error == 400U);
      }
    }
  }
  BOOST_TEST(feed("GET / HTTP/2.0\r\n\r\n", 100).error == 505U);
  BOOST_TEST(feed(head + "Expect: magic\r\n\r\n", 100).error == 417U);
}

BOOST_AUTO_TEST_CASE(headers_and_bodies_have_bounds) {
  const ReaderLimits small{1024, 100};
  BOOST_TEST(
      feed(head + "Content-Length: 100\r\n\r\n" + std::string(100, 'x'), 50, small).body.size() ==
      100U);
  BOOST_TEST(feed(head + "Content-Length: 101\r\n\r\n", 50, small).error == 413U);
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  BOOST_TEST(feed(chunked + "65\r\n", 50, small).error == 413U);
  BOOST_TEST(feed(chunked + "64\r\n" + std::string(100, 'x') + "\r\n1\r\ny\r\n", 50, small).error ==
             413U);
  BOOST_TEST(feed(head + "A: " + std::string(2000, 'x'), 100, small).error == 431U);
  BOOST_TEST(feed("GET /" + std::string(2000, 'x'), 100, small).error == 431U);
  std::string many = head;
  for (int i = 0; i < 100; ++i) many += "A" + std::to_string(i) + ": some value here\r\n";
  BOOST_TEST(feed(many, 30, small).error == 431U);
  BOOST_TEST(feed(many + "\r\n", 100000, small).error == 431U);
  BOOST_TEST(feed(chunked + "1;" + std::string(5000, 'e'), 100, small).error == 400U);
  BOOST_TEST(feed(chunked + "0\r\nT: " + std::string(5000, 'e'), 100, small).error == 400U);
  // A byte of body in a hundred bytes of chunk.
  std::string overhead = chunked;
  for (int i = 0; i < 99; ++i) overhead += "1;" + std::string(100, 'e') + "\r\nx\r\n";
  BOOST_TEST(feed(overhead, 1000, small).error == 400U);
}

// C18, the reader's part
BOOST_AUTO_TEST_CASE(requests_without_a_body_end_with_their_head) {
  for (const char* request : {"DELETE /internal/requests/x HTTP/1.1\r\nHost: t\r\n\r\n",
                              "GET / HTTP/1.1\r\nHost: t\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
                              "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n"}) {
    const Outcome outcome = feed(std::string(request) + "GET /next", 1000);
    BOOST_TEST((outcome.status == Status::complete));
    BOOST_TEST(outcome.rest == "GET /next");
  }
}

BOOST_AUTO_TEST_CASE(keep_alive_follows_version_and_connection_field) {
  const auto keeps = [](const std::string& request) {
    RequestReader reader({});
    reader.feed(request);
    BOOST_TEST_REQUIRE((reader.status() == Status::head_complete));
    return reader.head().keep_alive;
  };
  BOOST_TEST(keeps("GET / HTTP/1.1\r\n\r\n"));
  BOOST_TEST(!keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  BOOST_TEST(!keeps("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n"));
  BOOST_TEST(!keeps("GET / HTTP/1.0\r\n\r\n"));
  BOOST_TEST(keeps("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(a_discarded_body_is_counted_and_not_kept) {
  RequestReader reader({16384, 100});
  const std::string request = head + "Content-Length: 50\r\n\r\n" + std::string(50, 'x');
  std::size_t used = reader.feed(request);
  BOOST_TEST_REQUIRE((reader.status() == Status::head_complete));
  reader.discard_body();
  used += reader.feed(std::string_view(request).substr(used));
  BOOST_TEST((reader.status() == Status::complete));
  BOOST_TEST(used == request.size());
  BOOST_TEST(reader.take_body().empty());
}

// C20
BOOST_AUTO_TEST_CASE(paths_lead_where_they_say) {
  const auto id = [](std::string_view target) { return match_route(Method::get, target).id; };
  BOOST_TEST((id("/v1/models") == RouteId::models));
  BOOST_TEST((id("/v1/models/") == RouteId::models));
  BOOST_TEST((id("/v1/models?x=1") == RouteId::models));
  BOOST_TEST((id("/v1/models/?x=/ready") == RouteId::models));
  BOOST_TEST((id("http://host:1/v1/models") == RouteId::models));
  BOOST_TEST((id("/v1/models/a") == RouteId::model));
  BOOST_TEST((id("/v2/models/a/ready") == RouteId::kserve_model_ready));
  for (const char* none : {"/",
                           "",
                           "*",
                           "//",
                           "/v1",
                           "/v1//models",
                           "//v1/models",
                           "/v1/models//",
                           "/V1/models",
                           "/v1/%6dodels",
                           "/v1/./models",
                           "/v1/%2e%2e/v1/models",
                           "/v1/models/%2",
                           "/v1/models/%zz",
                           "/health%2f",
                           "/v1/chat",
                           "/v1/chat/completions/x",
                           "/internal/requests/",
                           "/v2/models//ready",
                           "http://host",
                           "/v1/models//a"}) {
    BOOST_TEST((id(none) == RouteId::not_found), none);
  }
  BOOST_TEST(match_route(Method::get, "/v1/models/org%2Fname").parameter == "org/name");
  BOOST_TEST(match_route(Method::get, "/v1/models/org/name").parameter == "org/name");
  BOOST_TEST(match_route(Method::get, "/v1/models/%2e%2e").parameter == "..");
  BOOST_TEST(query_value("a=1&model=x%20y&b", "model") == "x y");
  BOOST_TEST(query_value("a=1", "model").empty());
}

// C20: each route allows exactly its methods, and says so.
BOOST_AUTO_TEST_CASE(each_route_allows_its_methods_only) {
  for (const RouteInfo& route : routes()) {
    if (route.path.empty()) continue;
    std::string path(route.path);
    if (const std::size_t hole = path.find("{}"); hole != std::string::npos)
      path.replace(hole, 2, "x");
    for (const Method method :
         {Method::get, Method::head, Method::post, Method::delete_, Method::other}) {
      const RouteMatch match = match_route(method, path);
      BOOST_TEST((match.id == route.id), path);
      const bool wanted =
          (route.method == "GET" && (method == Method::get || method == Method::head)) ||
          (route.method == "POST" && method == Method::post) ||
          (route.method == "DELETE" && method == Method::delete_);
      BOOST_TEST(match.method_allowed == wanted, path);
      BOOST_TEST(!match.allow.empty());
    }
  }
}

// C22: a row for every route; a new one without a row fails here.
BOOST_AUTO_TEST_CASE(each_route_asks_for_a_key_or_does_not) {
  struct Row {
    std::string method;
    std::string target;
    bool needs_key;
  };
  const std::vector<Row> rows = {
      {"GET", "/v1/models", true},
      {"GET", "/v1/models/x", true},
      {"POST", "/v1/chat/completions", true},
      {"POST", "/v1/completions", true},
      {"DELETE", "/internal/requests/x", true},
      {"GET", "/health", false},
      {"GET", "/ready", false},
      {"GET", "/metrics", false},
      {"GET", "/v2/health/live", false},
      {"GET", "/v2/health/ready", false},
      {"GET", "/v2/models/x/ready", false},
  };
  BOOST_TEST(rows.size() + 1 == routes().size());
  const std::vector<ApiKey> keys = {{"alice", "secret-a", false}, {"root", "secret-r", true}};
  for (const Row& row : rows) {
    const auto status_with = [&](const std::string& fields) {
      RequestReader reader({});
      reader.feed(row.method + " " + row.target + " HTTP/1.1\r\n" + fields + "\r\n");
      const Admission admission = admit(reader.head(), keys);
      return admission.refusal ? admission.refusal->status : 0U;
    };
    BOOST_TEST_CONTEXT(row.target) {
      const unsigned refused = row.needs_key ? 401 : 0;
      BOOST_TEST(status_with("") == refused);
      BOOST_TEST(status_with("Authorization: Bearer wrong\r\n") == refused);
      BOOST_TEST(status_with("Authorization: Bearer secret-\r\n") == refused);
      BOOST_TEST(status_with("Authorization: Bearer secret-aa\r\n") == refused);
      BOOST_TEST(status_with("Authorization: Basic secret-a\r\n") == refused);
      BOOST_TEST(status_with("Authorization: Bearer secret-a\r\n") == 0U);
      BOOST_TEST(status_with("Authorization: bearer  secret-r \r\n") == 0U);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_gives_a_name_and_its_rights) {
  const std::vector<ApiKey> keys = {{"alice", "a", false}, {"root", "r", true}};
  const auto admit_with = [&](const std::string& secret) {
    RequestReader reader({});
    reader.feed("GET /v1/models HTTP/1.1\r\nAuthorization: Bearer " + secret + "\r\n\r\n");
    return admit(reader.head(), keys);
  };
  BOOST_TEST(admit_with("a").key == "alice");
  BOOST_TEST(!admit_with("a").any_key);
  BOOST_TEST(admit_with("r").any_key);
}

// C19
BOOST_AUTO_TEST_CASE(json_is_recognised_by_its_type) {
  for (const char* type :
       {"", "application/json", "APPLICATION/JSON", "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"", "application/json ; x=y; charset=us-ascii"}) {
    BOOST_TEST(is_json_type(type), type);
  }
  for (const char* type : {"text/plain", "text/plain; application/json", "application/jsonx",
                           "application/json; charset=utf-16", "multipart/form-data",
                           "application/x-www-form-urlencoded", ";", "json"}) {
    BOOST_TEST(!is_json_type(type), type);
  }
}

BOOST_AUTO_TEST_CASE(request_ids_are_fit_for_headers_and_logs) {
  BOOST_TEST(is_request_id("a"));
  BOOST_TEST(is_request_id("chatcmpl-0123:4.5_6"));
  BOOST_TEST(is_request_id(std::string(128, 'x')));
  BOOST_TEST(!is_request_id(std::string(129, 'x')));
  BOOST_TEST(!is_request_id(""));
  BOOST_TEST(!is_request_id("a b"));
  BOOST_TEST(!is_request_id("a\"b"));
  BOOST_TEST(!is_request_id("\xC3\xA9"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::http::tests
