// duet_bench_serve.cpp: streams against a server on a null board.
#include "tools/duet_bench_serve.hpp"

#include "tools/duet_bench_actors_hand_off.hpp"
#include "tools/duet_bench_client.hpp"
#include "tools/duet_bench_process.hpp"
#include "tools/duet_bench_raw.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace duet::tools {
namespace {

constexpr std::size_t ttft_samples = 200;      // a run
constexpr std::uint32_t alone_tokens = 3000;   // of the one stream; the prompt takes the rest
constexpr int alone_answers = 3;

/// The sum of a counter of the metrics page.
std::uint64_t counter(const std::string& page, const std::string& name) {
  const std::size_t at = page.find("\n" + name + " ");
  if (at == std::string::npos) throw std::runtime_error("/metrics does not have " + name);
  return std::stoull(page.substr(at + name.size() + 2));
}

std::string request(const std::string& model, std::uint32_t tokens) {
  const std::string body =
      R"({"model":")" + model +
      R"(","messages":[{"role":"user","content":"Tell me a story about a fox and a river."}],)"
      R"("stream":true,"stream_options":{"include_usage":true},"temperature":0,"max_tokens":)" +
      std::to_string(tokens) + "}";
  return "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
         "application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// Throws unless the answer is whole and has exactly so many tokens.
void check_answer(const BenchStream& stream, std::uint32_t tokens) {
  const std::string usage = "\"completion_tokens\":" + std::to_string(tokens);
  if (stream.tail.find("data: [DONE]") == std::string::npos ||
      stream.tail.find(usage) == std::string::npos) {
    throw std::runtime_error("an answer is not whole: ..." + stream.tail);
  }
}

/// duet-server on a null board, in a directory of its own.
class NullServer {
 public:
  explicit NullServer(const ServeBench& bench) {
    const std::string programs = program_directory();
    const std::string package = bench.package.empty() ? pack(programs, bench) : bench.package;
    std::ofstream(directory_.at("null.yaml"))
        << "schema: calculet-dual-model/v1\ndevice:\n  type: emulated\n  profile: \"null\"\n"
        << "  board: bench-" << ::getpid() << "\n  lock_directory: .\n  combined_calbin: "
        << std::filesystem::absolute(package).string()
        << "\nmodels:\n  - alias: model-a\n    chip_id: 0\n    max_waiting_requests: 512\n"
        << "  - alias: model-b\n    chip_id: 1\n    max_waiting_requests: 512\n"
        << "http:\n  port: 0\nsecurity:\n  allow_unsigned: true\nlog:\n  file: duet.log\n"
        << "runtime:\n  threads: " << bench.threads << "\n";
    const std::string server = bench.server.empty() ? programs + "/duet-server" : bench.server;
    const std::string log = directory_.at("server.log");
    process_ = std::make_unique<BenchProcess>(
        std::vector<std::string>{server, "--config", directory_.at("null.yaml"), "--port-file",
                                 directory_.at("port")},
        log);
    port_ = await_port(directory_.at("port"), *process_, log);
    await_ready();
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t cpu() const { return process_->cpu_nanoseconds(); }
  [[nodiscard]] std::string metrics() const { return fetch(port_, "/metrics"); }

 private:
  static void add_model(std::vector<std::string>& words, const char* name, const char* file) {
    const auto folder = std::filesystem::path(DUET_SOURCE_DIR) / "tools" / "demo_models";
    const std::string path = (folder / file).string();
    words.push_back("--model");
    words.push_back(std::string(name) + "=" + path + "-q8_0.gguf");
    words.push_back("--golden");
    words.push_back(std::string(name) + "=" + path + ".golden.json");
  }

  std::string pack(const std::string& programs, const ServeBench& bench) {
    const std::string log = directory_.at("pack.log");
    std::vector<std::string> words{programs + "/duet-pack",
                                   "build",
                                   "--kv-slots",
                                   std::to_string((bench.streams + 1) / 2),
                                   "-o",
                                   directory_.at("package")};
    add_model(words, "model-a", "abacus");
    add_model(words, "model-b", "fable");
    BenchProcess packer(words, log);
    if (packer.wait() != 0) throw std::runtime_error("the demo models cannot be packed");
    return directory_.at("package");
  }

  /// Listening comes before Ready.
  void await_ready() {
    for (int tries = 0; tries < 6000; ++tries) {
      try {
        static_cast<void>(fetch(port_, "/ready"));
        return;
      } catch (const std::runtime_error&) {
        ::usleep(10'000);
      }
    }
    throw std::runtime_error("the server does not become ready");
  }

  BenchDirectory directory_;
  std::unique_ptr<BenchProcess> process_;
  std::uint16_t port_ = 0;
};

class ServeRun {
 public:
  explicit ServeRun(const ServeBench& bench) : bench_(bench), server_(bench) {
    for (std::uint32_t i = 0; i < bench.streams; ++i) {
      streams_.push_back(std::make_unique<BenchStream>(server_.port()));
      readers_.add(*streams_.back());
    }
  }

  void warm_up() {
    static_cast<void>(cpu_of_all(200));
    static_cast<void>(cpu_of_one(200, 1));
  }
  void once() {
    std::string page = server_.metrics();
    alone_.push_back(cpu_of_one(alone_tokens, alone_answers));
    raw_alone_.push_back(cpu_of_raw_writes(page, 1, alone_tokens * alone_answers));
    turns_.push_back(hand_off_turn_cpu(20'000));
    page = server_.metrics();
    many_.push_back(cpu_of_all(bench_.tokens));
    raw_.push_back(cpu_of_raw_writes(page, bench_.streams, bench_.tokens * bench_.streams));
    tokens_a_write_.push_back(tokens_a_write_now_);
    ttft_alone_.push_back(ttft(false));
    ttft_beside_.push_back(ttft(true));
  }
  [[nodiscard]] std::vector<BenchResult> results() const;

 private:
  BenchStream& stream(std::size_t index) { return *streams_.at(index); }
  static std::string model_of(std::size_t index) { return index % 2 == 0 ? "model-a" : "model-b"; }

  void await_end(BenchStream& one) {
    while (!one.ended) readers_.step();
  }

  /// Microseconds of CPU a token.
  double cpu_of_one(std::uint32_t tokens, int answers) {
    const std::uint64_t before = server_.cpu();
    for (int i = 0; i < answers; ++i) {
      stream(0).send(request("model-a", tokens));
      await_end(stream(0));
      check_answer(stream(0), tokens);
    }
    return static_cast<double>(server_.cpu() - before) / tokens / answers / 1000;
  }

  double cpu_of_all(std::uint32_t tokens) {
    const std::uint64_t before = server_.cpu();
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      stream(i).send(request(model_of(i), tokens));
    }
    for (std::size_t open = streams_.size(); open > 0;) open -= readers_.step().size();
    const std::uint64_t cost = server_.cpu() - before;
    for (const auto& each : streams_) check_answer(*each, tokens);
    return static_cast<double>(cost) / tokens / static_cast<double>(streams_.size()) / 1000;
  }

  /// The same of a process that only writes what the server has written since `before`.
  double cpu_of_raw_writes(const std::string& before, std::uint32_t streams, std::uint32_t tokens) {
    const std::string after = server_.metrics();
    RawLoad load;
    load.streams = streams;
    load.writes =
        counter(after, "duet_http_writes_total") - counter(before, "duet_http_writes_total");
    load.bytes = counter(after, "duet_http_written_bytes_total") -
                 counter(before, "duet_http_written_bytes_total");
    tokens_a_write_now_ = static_cast<double>(tokens) / static_cast<double>(load.writes);
    return static_cast<double>(writer_.write(load)) / tokens / 1000;
  }

  /// The median time from a request to its first token, milliseconds; alone, or while all other
  /// streams are kept busy.
  double ttft(bool beside) {
    constexpr std::uint32_t background_tokens = 2000;
    std::vector<double> samples;
    for (std::size_t i = 1; beside && i < streams_.size(); ++i) {
      stream(i).send(request(model_of(i), background_tokens));
    }
    BenchStream& one = stream(0);
    one.timed = true;
    while (samples.size() < ttft_samples) {
      one.send(request("model-a", 8));
      while (!one.ended) {
        for (BenchStream* const each : readers_.step()) {
          if (each == &one) continue;
          check_answer(*each, background_tokens);
          each->send(request(model_of(index_of(*each)), background_tokens));
        }
      }
      if (!one.first_token) throw std::runtime_error("an answer had no token: " + one.tail);
      samples.push_back(
          std::chrono::duration<double, std::milli>(*one.first_token - one.sent).count());
    }
    one.timed = false;
    for (const auto& each : streams_) await_end(*each);
    std::nth_element(samples.begin(), samples.begin() + ttft_samples / 2, samples.end());
    return samples[ttft_samples / 2];
  }

  std::size_t index_of(const BenchStream& wanted) const {
    const auto found = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const auto& each) { return each.get() == &wanted; });
    return static_cast<std::size_t>(found - streams_.begin());
  }

  const ServeBench bench_;
  RawWriter writer_;   // forked first, while this process is small
  NullServer server_;
  std::vector<std::unique_ptr<BenchStream>> streams_;
  BenchReaders readers_;
  std::vector<double> alone_, raw_alone_, turns_, many_, raw_, tokens_a_write_, ttft_alone_,
      ttft_beside_;
  double tokens_a_write_now_ = 0;
};

std::vector<BenchResult> ServeRun::results() const {
  const std::string many = std::to_string(bench_.streams) + "_streams";
  std::vector<BenchResult> results;
  const auto add = [&](const std::string& name, const char* unit, const std::vector<double>& runs,
                       double bar) -> BenchResult& {
    BenchResult result;
    result.name = name;
    result.unit = unit;
    result.runs = runs;
    result.lower_is_better = true;
    result.bar = bar;
    results.push_back(std::move(result));
    return results.back();
  };
  const auto median = [](const std::vector<double>& runs) {
    BenchResult result;
    result.runs = runs;
    return result.median();
  };
  // The peer's own lines come right behind what it is compared with.
  add("cpu_a_token_1_stream", "us", alone_, 5).peer = median(raw_alone_);
  add("raw_writes_a_token_1_stream", "us", raw_alone_, 0);
  add("thread_hand_offs_a_job", "us", turns_, 0);
  add("cpu_a_token_" + many, "us", many_, median(raw_) + 3).peer = median(raw_);
  add("raw_writes_a_token_" + many, "us", raw_, 0);
  add("tokens_a_write_" + many, "tokens", tokens_a_write_, 0);
  add("ttft_p50_alone", "ms", ttft_alone_, 0.6);
  add("ttft_p50_beside_" + std::to_string(bench_.streams - 1) + "_streams", "ms", ttft_beside_, 2);
  return results;
}

}   // namespace

std::vector<BenchResult> run_serve_bench(const ServeBench& bench) {
  if (bench.pin) run_on(Processors::last);   // what is started now stays there
  ServeRun run(bench);
  if (bench.pin) run_on(Processors::first);
  run.warm_up();
  for (std::uint32_t i = 0; i < bench.runs; ++i) run.once();
  return run.results();
}

}   // namespace duet::tools
