// duet_ctl.cpp: an operator's view of a running server, through its administration socket.
#include "tools/admin_client.hpp"
#include "tools/answer_screen.hpp"
#include "tools/arguments.hpp"
#include "tools/chat_client.hpp"
#include "tools/ctl_budget.hpp"
#include "tools/ctl_show.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace duet::tools;   // NOLINT: the program of these parts
namespace json = boost::json;

constexpr const char* help = R"(usage: duet-ctl COMMAND [options]

Looks into a running duet-server through its administration socket, and asks its models.

  ps                  the actors as a tree: state, since when, what each waits for, and where
  models              state, requests, sequences and jobs of each model
  trace               what the chips recorded since the last trace: jobs, compute time, overlap
  budget              what each chip's memory holds beside what the served package planned
  cancel ID           cancel a running or queued request
  wait                until every model is ready, or one has failed
  ask ALIAS=TEXT ...  ask over HTTP, all at the same time, and show the answers as they come

  --socket PATH       the server's administration socket; default: $DUET_ADMIN_SOCKET
  --json              print the server's answer, one JSON object (not for ask and wait)
  --chrome FILE       trace: also write it for the viewers of Chrome and Perfetto
  --overlap           trace: exit code 1 unless both chips computed at the same time
  --bound PERCENT     budget: mark what is further from the plan than this part of it; default 1
  --strict            budget: exit code 1 if anything is marked
  --seconds N         wait: give up after so long; default 120
  --address HOST:PORT ask: where the server listens; default 127.0.0.1:8000. A key is taken from
                      $OPENAI_API_KEY
  --max-tokens N      ask: length of an answer at most; default 400
  --help              this text

Exit codes: 0 done, 1 the server refused, failed or did not answer, 2 wrong use.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-ctl: %s; see duet-ctl --help\n", what.c_str());
  return exit_wrong_use;
}

int failed(const std::string& what) {
  std::fprintf(stderr, "duet-ctl: error: %s\n", printable(what).c_str());
  return exit_finding;
}

std::string socket_of(const Arguments& arguments) {
  const char* const variable = std::getenv("DUET_ADMIN_SOCKET");   // NOLINT: one thread
  return arguments.last("--socket", variable == nullptr ? "" : variable);
}

/// Asks the socket and hands the JSON to `use`, which returns an exit code.
int with_answer(const Arguments& arguments, const char* method, const std::string& target,
                const std::function<int(const json::value&)>& use) {
  const std::string socket = socket_of(arguments);
  if (socket.empty()) return wrong_use("--socket is missing and DUET_ADMIN_SOCKET is not set");
  const auto answer = ask_admin(socket, method, target);
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) {
    return failed("the server answered " + std::to_string(answer->status) + ": " + answer->body);
  }
  try {
    return use(json::parse(answer->body));
  } catch (const std::exception& exception) {
    return failed(std::string("the answer has another form: ") + exception.what());
  }
}

int print(const Arguments& arguments, const json::value& value,
          std::string (*show)(const json::value&)) {
  const std::string text =
      arguments.flag("--json") ? json::serialize(value) + "\n" : printable(show(value));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return std::fflush(stdout) == 0 ? exit_done : failed("cannot write the answer");
}

int ps(const Arguments& arguments) {
  return with_answer(arguments, "GET", "/actors", [&](const json::value& value) {
    return print(arguments, value, show_actors);
  });
}

int models(const Arguments& arguments) {
  return with_answer(arguments, "GET", "/models", [&](const json::value& value) {
    return print(arguments, value, show_models);
  });
}

int trace(const Arguments& arguments) {
  return with_answer(arguments, "GET", "/trace", [&](const json::value& value) {
    if (const int code = print(arguments, value, show_trace); code != exit_done) return code;
    const std::string chrome = arguments.last("--chrome", "");
    if (!chrome.empty()) {
      std::ofstream file(chrome);
      file << json::serialize(chrome_trace(value)) << '\n';
      file.close();
      if (!file.good()) return failed("cannot write " + chrome);
    }
    const json::value& overlap = value.at("overlap");
    const bool both =
        !overlap.is_null() && overlap.at("both_busy_ns").to_number<std::uint64_t>() > 0;
    if (arguments.flag("--overlap") && !both) {
      return failed("the chips did not compute at the same time");
    }
    return exit_done;
  });
}

int budget(const Arguments& arguments) {
  const auto bound = parse_number(arguments.last("--bound", "1"), 0, 100);
  if (!bound) return wrong_use("--bound wants a number of percent from 0 to 100");
  return with_answer(arguments, "GET", "/memory", [&](const json::value& value) {
    json::value judged = value;
    const std::uint64_t marks = mark_budget(judged, static_cast<unsigned>(*bound));
    if (const int code = print(arguments, judged, show_budget); code != exit_done) return code;
    if (arguments.flag("--strict") && marks > 0) {
      return failed("the memory is not as planned: " + std::to_string(marks) + " marked");
    }
    return exit_done;
  });
}

int cancel(const Arguments& arguments) {
  const std::string& id = arguments.words()[0];
  if (!std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
    return wrong_use("a request's id has visible ASCII characters only");
  }
  return with_answer(arguments, "DELETE", "/requests/" + id, [&](const json::value& value) {
    return print(arguments, value, [](const json::value&) { return std::string("cancelled\n"); });
  });
}

/// 0 ready, 1 failed, nothing: not yet.
std::optional<int> readiness(const json::value& models, std::string& what) {
  bool ready = true;
  for (const json::value& model : models.at("models").as_array()) {
    const std::string state = model.at("state").as_string().c_str();
    ready = ready && state == "ready";
    if (state == "ready") continue;
    what = std::string(model.at("model").as_string()) + " is " + state;
    if (state == "failed") return exit_finding;
  }
  return ready ? std::optional<int>(exit_done) : std::nullopt;
}

int wait(const Arguments& arguments) {
  const auto seconds = parse_number(arguments.last("--seconds", "120"), 1, 86400);
  if (!seconds) return wrong_use("--seconds wants a number from 1 to 86400");
  const std::string socket = socket_of(arguments);
  if (socket.empty()) return wrong_use("--socket is missing and DUET_ADMIN_SOCKET is not set");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(*seconds);
  std::string what;
  for (;;) {
    const auto answer = ask_admin(socket, "GET", "/models");
    what = answer ? "" : answer.error().message;
    try {
      if (answer && answer->status == 200) {
        const auto state = readiness(json::parse(answer->body), what);
        if (state == exit_done) return exit_done;
        if (state) return failed(what);
      }
    } catch (const std::exception& exception) {
      return failed(std::string("the answer has another form: ") + exception.what());
    }
    if (std::chrono::steady_clock::now() >= end) return failed("waited in vain: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

int ask_all(const std::vector<ChatQuestion>& questions) {
  std::vector<std::string> titles;
  for (const ChatQuestion& question : questions) titles.push_back(question.model);
  AnswerScreen screen(std::move(titles), terminal_columns());
  // All connect before the first one asks.
  std::barrier connected(static_cast<std::ptrdiff_t>(questions.size()));
  std::vector<std::string> errors(questions.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto done = stream_chat(
          questions[i], [&] { connected.arrive_and_wait(); },
          [&](const std::string& text) { screen.append(i, text); });
      screen.finish(i);
      if (!done) errors[i] = done.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  int code = std::fflush(stdout) == 0 ? exit_done : failed("cannot write the answers");
  for (const std::string& error : errors) {
    if (!error.empty()) code = failed(error);
  }
  return code;
}

int ask(const Arguments& arguments) {
  ChatQuestion common;
  const std::string address = arguments.last("--address", "127.0.0.1:8000");
  const std::size_t colon = address.rfind(':');
  if (colon == 0 || colon == std::string::npos ||
      !parse_number(address.substr(colon + 1), 1, 65535)) {
    return wrong_use("--address wants HOST:PORT, not '" + address + "'");
  }
  common.host = address.substr(0, colon);
  common.port = address.substr(colon + 1);
  if (common.host.starts_with('[') && common.host.ends_with(']')) {
    common.host = common.host.substr(1, common.host.size() - 2);   // IPv6
  }
  const auto tokens = parse_number(arguments.last("--max-tokens", "400"), 1, 1U << 20U);
  if (!tokens) return wrong_use("--max-tokens wants a number from 1 to 1048576");
  common.tokens_max = static_cast<std::uint32_t>(*tokens);
  const char* const key = std::getenv("OPENAI_API_KEY");   // NOLINT: one thread yet
  if (key != nullptr) common.key = key;
  std::vector<ChatQuestion> questions;
  for (const std::string& word : arguments.words()) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return wrong_use("ask wants ALIAS=TEXT, not '" + word + "'");
    }
    questions.push_back(common);
    questions.back().model = word.substr(0, equals);
    questions.back().text = word.substr(equals + 1);
  }
  return ask_all(questions);
}

struct Command {
  const char* name;
  int (*run)(const Arguments&);
  std::vector<std::string> flags;
  std::vector<std::string> options;
  std::size_t words_min = 0;
  std::size_t words_max = 0;
};

const std::vector<Command>& commands() {
  constexpr std::size_t questions_max = 16;   // more do not fit on a screen
  static const std::vector<Command> all = {
      {"ps", ps, {"--json"}, {"--socket"}},
      {"models", models, {"--json"}, {"--socket"}},
      {"trace", trace, {"--json", "--overlap"}, {"--socket", "--chrome"}},
      {"budget", budget, {"--json", "--strict"}, {"--socket", "--bound"}},
      {"cancel", cancel, {"--json"}, {"--socket"}, 1, 1},
      {"wait", wait, {}, {"--socket", "--seconds"}},
      {"ask", ask, {}, {"--address", "--max-tokens"}, 1, questions_max},
  };
  return all;
}

}   // namespace

int main(int argc, char** argv) {
  secure_standard_streams();
  std::vector<std::string> words(argv + 1, argv + argc);
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      std::fputs(help, stdout);
      return exit_done;
    }
  }
  if (words.empty()) return wrong_use("a command is missing");
  const std::string name = words.front();
  words.erase(words.begin());
  for (const Command& command : commands()) {
    if (name != command.name) continue;
    const ArgumentRules rules{command.flags, command.options, command.words_min, command.words_max};
    std::string error;
    const auto arguments = Arguments::parse(words, rules, error);
    if (!arguments) return wrong_use(error);
    return command.run(*arguments);
  }
  return wrong_use("unknown command '" + name + "'");
}
