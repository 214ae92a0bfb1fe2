// metrics_page.cpp: Prometheus' text format, 0.0.4.
#include "http/json_text.hpp"
#include "http/pages.hpp"

#include "actors/limits.hpp"

#include <array>
#include <vector>

namespace duet::http {

namespace {

using actors::ModelMetrics;

class Page {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += "# HELP ";
    out_ += name;
    out_ += ' ';
    out_ += help;
    out_ += "\n# TYPE ";
    out_ += name;
    out_ += ' ';
    out_ += type;
    out_ += '\n';
  }
  /// `labels` is `a="b"`, or empty.
  template <typename T>
  void sample(std::string_view suffix, std::string_view labels, T value) {
    out_ += name_;
    out_ += suffix;
    if (!labels.empty()) {
      out_ += '{';
      out_ += labels;
      out_ += '}';
    }
    out_ += ' ';
    append_number(out_, value);
    out_ += '\n';
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
  std::string_view name_;
};

std::string label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

struct Counter {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t ModelMetrics::*value;
};

constexpr std::array counters = {
    Counter{"vllm:num_requests_running", "gauge", "Requests that are being answered.",
            &ModelMetrics::requests_running},
    Counter{"vllm:num_requests_waiting", "gauge", "Requests in the queue.",
            &ModelMetrics::requests_waiting},
    Counter{"vllm:prompt_tokens_total", "counter", "Tokens of prompts.",
            &ModelMetrics::prompt_tokens},
    Counter{"vllm:generation_tokens_total", "counter", "Tokens of answers.",
            &ModelMetrics::generation_tokens},
    Counter{"duet_requests_accepted_total", "counter",
            "Accepted requests: finished, failed, aborted or running.",
            &ModelMetrics::requests_accepted},
    Counter{"duet_requests_finished_total", "counter", "Answered to the end.",
            &ModelMetrics::requests_finished},
    Counter{"duet_requests_failed_total", "counter", "Ended by an error after acceptance.",
            &ModelMetrics::requests_failed},
    Counter{"duet_requests_aborted_total", "counter", "Ended by their client or an operator.",
            &ModelMetrics::requests_aborted},
    Counter{"duet_requests_refused_total", "counter", "Never accepted.",
            &ModelMetrics::requests_refused},
    Counter{"duet_jobs_submitted_total", "counter", "Jobs given to the device.",
            &ModelMetrics::jobs_submitted},
    Counter{"duet_jobs_done_total", "counter", "Jobs that came back whole.",
            &ModelMetrics::jobs_done},
    Counter{"duet_jobs_failed_total", "counter", "Jobs that failed.", &ModelMetrics::jobs_failed},
    Counter{"duet_completions_stale_total", "counter",
            "Completions of an earlier generation, dropped.", &ModelMetrics::completions_stale},
    Counter{"duet_sequences_active", "gauge", "Sequences with a key/value slot.",
            &ModelMetrics::sequences_active},
    Counter{"duet_kv_slots_used", "gauge", "Key/value slots in use.", &ModelMetrics::kv_slots_used},
    Counter{"duet_kv_slots_total", "gauge", "Key/value slots there are.",
            &ModelMetrics::kv_slots_total},
};

struct Histogram {
  std::string_view name;
  std::string_view help;
  std::vector<std::uint64_t> ModelMetrics::*buckets;
  double ModelMetrics::*sum;
};

constexpr std::array histograms = {
    Histogram{"vllm:time_to_first_token_seconds", "From acceptance to the first token.",
              &ModelMetrics::ttft_buckets, &ModelMetrics::ttft_seconds_sum},
    Histogram{"vllm:time_per_output_token_seconds", "Between tokens of an answer.",
              &ModelMetrics::tpot_buckets, &ModelMetrics::tpot_seconds_sum},
    Histogram{"vllm:e2e_request_latency_seconds", "From acceptance to the end of the answer.",
              &ModelMetrics::e2e_buckets, &ModelMetrics::e2e_seconds_sum},
};

std::string model_labels(std::size_t engine, const std::string& alias) {
  return label("engine", std::to_string(engine)) + "," + label("model_name", alias);
}

void add_histogram(Page& page, const Histogram& histogram, const ModelMetrics& model,
                   const std::string& labels) {
  const auto& bounds = actors::limits::latency_buckets_seconds;
  const std::vector<std::uint64_t>& buckets = model.*histogram.buckets;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i <= bounds.size(); ++i) {
    if (i < buckets.size()) all = buckets[i];
    std::string bound = "+Inf";
    if (i < bounds.size()) {
      bound.clear();
      append_number(bound, bounds[i]);
    }
    page.sample("_bucket", labels + "," + label("le", bound), all);
  }
  page.sample("_sum", labels, model.*histogram.sum);
  page.sample("_count", labels, all);
}

void add_server(Page& page, const ServerCounters& counters_of_server) {
  const auto one = [&page](std::string_view name, std::string_view type, std::string_view help,
                           const std::atomic<std::uint64_t>& value) {
    page.family(name, type, help);
    page.sample("", "", value.load(std::memory_order_relaxed));
  };
  one("duet_http_connections_total", "counter", "Connections accepted.",
      counters_of_server.connections_accepted);
  one("duet_http_connections_refused_total", "counter", "Connections above the limit.",
      counters_of_server.connections_refused);
  one("duet_http_connections", "gauge", "Connections open.", counters_of_server.connections_open);
  one("duet_http_answers", "gauge", "Completions under way.", counters_of_server.answers_open);
  one("duet_http_readers_gone_total", "counter", "Clients that left before their answer's end.",
      counters_of_server.readers_gone);
  one("duet_http_readers_too_slow_total", "counter", "Answers dropped because nobody read them.",
      counters_of_server.readers_too_slow);
  one("duet_http_writes_total", "counter", "Writes to clients' sockets.",
      counters_of_server.writes);
  one("duet_http_written_bytes_total", "counter", "Bytes that they took.",
      counters_of_server.bytes_written);
  page.family("duet_http_responses_total", "counter", "Answers by route and status.");
  for (const RouteInfo& route : routes()) {
    for (std::size_t column = 0; column < ServerCounters::statuses.size(); ++column) {
      const std::uint64_t count = counters_of_server.responses(route.id, column);
      if (count == 0) continue;   // most of the table never happens
      const unsigned status = ServerCounters::statuses[column];
      page.sample("",
                  label("route", route.name) + "," +
                      label("code", status == 0 ? "other" : std::to_string(status)),
                  count);
    }
  }
}

}   // namespace

std::string metrics_page(std::span<const actors::ModelMetrics> models,
                         std::span<const actors::ModelStatus> statuses,
                         const ServerCounters& counters_of_server) {
  Page page;
  std::vector<std::string> labels;
  for (std::size_t engine = 0; engine < models.size(); ++engine)
    labels.push_back(model_labels(engine, models[engine].alias));
  for (const Counter& counter : counters) {
    page.family(counter.name, counter.type, counter.help);
    for (std::size_t engine = 0; engine < models.size(); ++engine)
      page.sample("", labels[engine], models[engine].*counter.value);
  }
  page.family("vllm:kv_cache_usage_perc", "gauge", "Key/value slots in use, 1 = all.");
  for (std::size_t engine = 0; engine < models.size(); ++engine) {
    const auto total = static_cast<double>(models[engine].kv_slots_total);
    const auto used = static_cast<double>(models[engine].kv_slots_used);
    page.sample("", labels[engine], total > 0 ? used / total : 0.0);
  }
  for (const Histogram& histogram : histograms) {
    page.family(histogram.name, "histogram", histogram.help);
    for (std::size_t engine = 0; engine < models.size(); ++engine)
      add_histogram(page, histogram, models[engine], labels[engine]);
  }
  page.family("duet_model_state", "gauge", "1 for the state that the model is in.");
  for (std::size_t engine = 0; engine < statuses.size(); ++engine) {
    page.sample("",
                model_labels(engine, statuses[engine].alias) + "," +
                    label("state", actors::to_string(statuses[engine].state)),
                std::uint64_t{1});
  }
  add_server(page, counters_of_server);
  return page.take();
}

}   // namespace duet::http
