// duet_ctl.cpp: an operator's view of a running server, through its administration socket.
#include "tools/admin_client.hpp"
#include "tools/arguments.hpp"
#include "tools/ctl_show.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace duet::tools;   // NOLINT: the program of these parts

constexpr const char* help = R"(usage: duet-ctl COMMAND [options]

Looks into a running duet-server through its administration socket.

  ps                  the actors as a tree: state, since when, what each waits for, and where
  models              state, requests, sequences and jobs of each model
  trace               what the chips recorded since the last trace: jobs, compute time, overlap
  cancel ID           cancel a running or queued request

  --socket PATH       the server's administration socket; default: $DUET_ADMIN_SOCKET
  --json              print the server's answer, one JSON object
  --chrome FILE       trace: also write it for the viewers of Chrome and Perfetto
  --help              this text

Exit codes: 0 done, 1 the server refused or did not answer, 2 wrong use.
)";

int wrong_use(const std::string& what) {
  std::fprintf(stderr, "duet-ctl: %s; see duet-ctl --help\n", what.c_str());
  return exit_wrong_use;
}

int failed(const std::string& what) {
  std::fprintf(stderr, "duet-ctl: error: %s\n", what.c_str());
  return exit_finding;
}

struct Command {
  const char* name;
  const char* method;
  const char* target;
  std::string (*show)(const boost::json::value&);
  std::size_t words;
};

std::string show_cancelled(const boost::json::value& value) {
  static_cast<void>(value);
  return "cancelled\n";
}

constexpr std::array<Command, 4> commands = {{
    {"ps", "GET", "/actors", show_actors, 0},
    {"models", "GET", "/models", show_models, 0},
    {"trace", "GET", "/trace", show_trace, 0},
    {"cancel", "DELETE", "/requests/", show_cancelled, 1},
}};

int show(const Command& command, const Arguments& arguments, const std::string& body) {
  const boost::json::value value = boost::json::parse(body);
  const std::string text =
      arguments.flag("--json") ? boost::json::serialize(value) + "\n" : command.show(value);
  const std::string chrome = arguments.last("--chrome", "");
  if (!chrome.empty()) {
    std::ofstream file(chrome);
    file << boost::json::serialize(chrome_trace(value)) << '\n';
    file.close();
    if (!file.good()) return failed("cannot write " + chrome);
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return exit_done;
}

int run(const Command& command, const Arguments& arguments) {
  const char* const variable = std::getenv("DUET_ADMIN_SOCKET");   // NOLINT: one thread
  const std::string socket = arguments.last("--socket", variable == nullptr ? "" : variable);
  if (socket.empty()) return wrong_use("--socket is missing and DUET_ADMIN_SOCKET is not set");
  std::string target = command.target;
  if (command.words > 0) target += arguments.words()[0];
  const auto answer = ask_admin(socket, command.method, target);
  if (!answer) return failed(answer.error().message);
  if (answer->status != 200) {
    return failed("the server answered " + std::to_string(answer->status) + ": " + answer->body);
  }
  try {
    return show(command, arguments, answer->body);
  } catch (const std::exception& exception) {
    return failed(std::string("the answer is of another kind: ") + exception.what());
  }
}

}   // namespace

int main(int argc, char** argv) {
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
  for (const Command& command : commands) {
    if (name != command.name) continue;
    ArgumentRules rules;
    rules.flags = {"--json"};
    rules.options = {"--socket"};
    if (name == "trace") rules.options.emplace_back("--chrome");
    rules.words_min = rules.words_max = command.words;
    std::string error;
    const auto arguments = Arguments::parse(words, rules, error);
    if (!arguments) return wrong_use(error);
    return run(command, *arguments);
  }
  return wrong_use("unknown command '" + name + "'");
}
