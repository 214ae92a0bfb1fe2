// key_table.cpp: the table of keys.
#include "config/key_table.hpp"

#include "actors/limits.hpp"
#include "config/limits.hpp"
#include "device/contract/limits.hpp"
#include "runtime/assert.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

namespace duet::config {
namespace {

using std::string_view;

constexpr std::uint64_t second = 1000;   // milliseconds
constexpr std::uint64_t minute = 60 * second;
constexpr std::uint64_t hour = 60 * minute;
constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t gib = 1024 * mib;
constexpr std::uint64_t tokens_max = 1U << 24U;   // longer than any context; products fit 64 bits

constexpr std::array<string_view, 1> schemas = {"calculet-dual-model/v1"};
constexpr std::array<string_view, 2> types = {"pcie", "emulated"};
constexpr std::array<string_view, 2> runtimes = {"emulator", "plugin"};
constexpr std::array<string_view, 3> dialects = {"auto", "combined", "sessions"};
constexpr std::array<string_view, 3> profiles = {"combined", "timed", "null"};
constexpr std::array<string_view, 4> levels = {"debug", "info", "warning", "error"};

template <typename T>
struct DurationStep {
  static constexpr std::uint64_t value = 1;
};
template <>
struct DurationStep<std::chrono::seconds> {
  static constexpr std::uint64_t value = second;
};

// A field takes the part of a Value that its type says.
void assign(std::string& field, const Value& value) {
  field = value.text;
}
void assign(std::vector<std::string>& field, const Value& value) {
  field = value.texts;
}
void assign(std::vector<std::uint32_t>& field, const Value& value) {
  field.clear();
  for (const std::uint64_t n : value.numbers) field.push_back(static_cast<std::uint32_t>(n));
}
template <typename Rep, typename Period>
void assign(std::chrono::duration<Rep, Period>& field, const Value& value) {
  field = std::chrono::duration_cast<std::chrono::duration<Rep, Period>>(
      std::chrono::milliseconds(value.number));
}
template <typename T>
requires std::is_integral_v<T> || std::is_enum_v<T>
void assign(T& field, const Value& value) {
  field = static_cast<T>(value.number);   // in range: the table's bounds fit the field
}

template <typename T>
Value value_of(const T& field) {
  Value value;
  if constexpr (std::is_same_v<T, std::string>) {
    value.text = field;
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    value.texts = field;
  } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
    value.numbers.assign(field.begin(), field.end());
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    value.number = static_cast<std::uint64_t>(field);
  } else {
    value.number = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(field).count());
  }
  return value;
}

template <typename Class, typename Member>
Class class_of(Member Class::*);

/// The field at the end of a chain of members.
template <auto First, auto... Rest>
struct Field {
  static auto& in(const Target& target) {
    if constexpr (std::is_same_v<decltype(class_of(First)), actors::ModelOptions>) {
      return ((target.model->*First).*....*Rest);
    } else {
      return ((target.config->*First).*....*Rest);
    }
  }
  using Type = std::remove_reference_t<decltype(in(Target{}))>;
  static void set(const Target& target, const Value& value) { assign(in(target), value); }
  static Value get(const Target& target) { return value_of(in(target)); }
};

/// What beside kind and range there may be.
struct More {
  bool required = false;
  string_view absent = {};
};

Key block(string_view parent, string_view name, string_view help, More more = {}) {
  Key key;
  key.parent = parent;
  key.name = name;
  key.help = help;
  key.required = more.required;
  return key;
}

Key reserved(string_view parent, string_view name, string_view help) {
  Key key = block(parent, name, help);
  key.kind = ValueKind::reserved;
  return key;
}

template <auto... Members>
Key key(string_view parent, string_view name, ValueKind kind, std::uint64_t min, std::uint64_t max,
        string_view help, More more = {}) {
  Key key = block(parent, name, help, more);
  using Type = typename Field<Members...>::Type;
  key.kind = kind;
  key.min = min;
  key.max = max;
  key.step = DurationStep<Type>::value;
  key.absent = more.absent;
  key.set = &Field<Members...>::set;
  key.get = &Field<Members...>::get;
  return key;
}

template <auto... Members>
Key boolean(string_view parent, string_view name, string_view help) {
  return key<Members...>(parent, name, ValueKind::boolean, 0, 1, help);
}

template <auto... Members>
Key number(string_view parent, string_view name, std::uint64_t min, std::uint64_t max,
           string_view help, More more = {}) {
  using Type = typename Field<Members...>::Type;
  DUET_ASSERT(max <= std::numeric_limits<Type>::max(), max);
  return key<Members...>(parent, name, ValueKind::number, min, max, help, more);
}

template <auto... Members>
Key size(string_view parent, string_view name, std::uint64_t min, std::uint64_t max,
         string_view help) {
  return key<Members...>(parent, name, ValueKind::size, min, max, help);
}

template <auto... Members>
Key duration(string_view parent, string_view name, std::uint64_t min, std::uint64_t max,
             string_view help) {
  return key<Members...>(parent, name, ValueKind::duration, min, max, help);
}

template <auto... Members>
Key path(string_view parent, string_view name, string_view help, More more = {}) {
  return key<Members...>(parent, name, ValueKind::path, 1, limits::text_bytes_max, help, more);
}

template <auto... Members>
Key socket(string_view parent, string_view name, string_view help) {
  return key<Members...>(parent, name, ValueKind::path, 1, limits::socket_path_bytes_max, help);
}

template <auto... Members>
Key choice(string_view parent, string_view name, std::span<const string_view> choices,
           string_view help, More more = {}) {
  Key row = key<Members...>(parent, name, ValueKind::choice, 0, choices.size() - 1, help, more);
  row.choices = choices;
  return row;
}

using Table = std::vector<Key>;

void add_device(Table& t) {
  using D = DeviceSelection;
  using S = actors::ServiceOptions;
  using P = actors::DeviceOptions;
  constexpr auto device = &Config::device;
  constexpr auto service = &Config::service;
  t.push_back(block("", "device", "The board, and who drives it.", {.required = true}));
  t.push_back(choice<device, &D::type>("device", "type", types,
                                       "How the board is attached. `emulated` implies `runtime: "
                                       "emulator`.",
                                       {.required = true}));
  t.push_back(number<device, &D::expected_chips>(
      "device", "expected_chips", 1, 2, "Chips that the board must have, as the package says."));
  t.push_back(
      path<service, &S::device, &P::package>("device", "combined_calbin",
                                             "Directory of the package that holds all models. "
                                             "Needed unless each model has its `calbin`."));
  t.push_back(choice<device, &D::runtime>(
      "device", "runtime", runtimes,
      "What drives the board. Without it `type: pcie` can be checked, not served."));
  t.push_back(path<device, &D::plugin>(
      "device", "plugin",
      "The vendor runtime's plug-in. Needed with, and only with, `runtime: "
      "plugin`."));
  t.push_back(key<device, &D::board>("device", "board", ValueKind::name, 1, 64,
                                     "Which board of the host. One process owns it."));
  t.push_back(choice<device, &D::dialect>(
      "device", "dialect", dialects,
      "The calls that a runtime offers; `auto` takes what there is, sessions first."));
  t.push_back(choice<device, &D::profile>(
      "device", "profile", profiles,
      "The emulated board: `combined` computes; `timed` and `\"null\"` make their answers up, "
      "which then mean nothing: `timed` in a board's time, `\"null\"` at once, to measure the "
      "server."));
  t.push_back(number<device, &D::threads_per_chip>(
      "device", "threads_per_chip", 1, 2, "The emulated board: 2 gives each CalCore a thread."));
  t.push_back(path<device, &D::lock_directory>("device", "lock_directory",
                                               "The emulated board: where its lock file is.",
                                               {.absent = "the emulator's choice"}));
  t.push_back(duration<service, &S::device, &P::call_deadline>(
      "device", "call_deadline", second, hour,
      "Of a life-cycle call. Past it the process must be restarted."));
  t.push_back(duration<service, &S::device, &P::drain_deadline>(
      "device", "drain_deadline", second, hour, "Requests of a chip may finish for so long."));
  t.push_back(number<service, &S::device, &P::golden_prompts_max>(
      "device", "golden_prompts_max", 0, 1000,
      "Golden prompts that each model must pass before it is ready; 0 = all."));
  t.push_back(path<device, &D::faults_file>(
      "device", "faults",
      "The emulated board, `timed` or `\"null\"`: file of the answers it is to give to chosen "
      "prompts."));
}

void add_models(Table& t) {
  using M = actors::ModelOptions;
  constexpr string_view in = "models[]";
  t.push_back(
      block("", "models", "One or two models, each on a chip of its own.", {.required = true}));
  t.back().kind = ValueKind::blocks;
  t.back().min = 1;
  t.back().max = limits::models_max;
  t.push_back(key<&M::alias>(in, "alias", ValueKind::name, 1, actors::limits::alias_bytes_max,
                             "The public name, exactly as clients write it.", {.required = true}));
  t.push_back(key<&M::package_model>(in, "model", ValueKind::name, 1, 128,
                                     "The model's name in the package's manifest.",
                                     {.absent = "the one with this alias"}));
  t.push_back(
      number<&M::chip>(in, "chip_id", 0, 1, "The chip it was compiled for.", {.required = true}));
  t.push_back(key<&M::prefill_graph>(in, "prefill_graph", ValueKind::name, 1, 128,
                                     "The exact name of its prefill graph; checked against the "
                                     "manifest.",
                                     {.absent = "the manifest's"}));
  t.push_back(key<&M::decode_graph>(in, "decode_graph", ValueKind::name, 1, 128,
                                    "The exact name of its decode graph; checked against the "
                                    "manifest.",
                                    {.absent = "the manifest's"}));
  t.push_back(number<&M::context_max>(in, "context_limit", 1, tokens_max,
                                      "Tokens of prompt and answer together; at most the "
                                      "package's.",
                                      {.absent = "the package's"}));
  t.push_back(number<&M::inflight_max>(in, "max_inflight", 1, device::limits::inflight_per_chip_max,
                                       "Jobs on the chip at a time; 2 needs both job engines in "
                                       "the package."));
  t.push_back(number<&M::sequences_max>(in, "max_sequences", 1, 4096,
                                        "Sequences with key/value memory at a time; at most the "
                                        "package's slots.",
                                        {.absent = "the package's"}));
  t.push_back(number<&M::requests_waiting_max>(in, "max_waiting_requests", 1, 65535,
                                               "The queue; a request beyond it gets 503."));
  t.push_back(number<&M::prompt_tokens_waiting_max>(in, "max_waiting_prompt_tokens", 1,
                                                    std::uint64_t{1} << 32U,
                                                    "Prompt tokens in the queue; at least "
                                                    "`context_limit`."));
  t.push_back(duration<&M::queue_timeout>(in, "queue_timeout", 1, 24 * hour,
                                          "Longest wait for a first job; then 503."));
  t.push_back(duration<&M::request_timeout>(in, "request_timeout", 1, 24 * hour,
                                            "Longest life of a request."));
  t.push_back(duration<&M::job_deadline_min>(in, "job_deadline_min", 1, hour,
                                             "The watchdog never ends a job before this."));
  t.push_back(path<&M::package>(in, "calbin",
                                "Directory of the model's own package (dialect `sessions`), "
                                "instead of `device.combined_calbin`."));
  t.push_back(key<&M::tokenizer_sha256>(in, "tokenizer_sha256", ValueKind::hash, 64, 64,
                                        "What the package's tokenizer must be.",
                                        {.absent = "not checked"}));
}

void add_serving(Table& t) {
  using S = actors::ServiceOptions;
  using G = actors::SchedulingOptions;
  constexpr auto service = &Config::service;
  constexpr auto scheduling = &S::scheduling;
  t.push_back(block("", "scheduling", "Which job of a model runs next."));
  t.push_back(number<service, scheduling, &G::short_prefill_tokens>(
      "scheduling", "short_prefill_tokens", 1, tokens_max, "A prompt up to this is short."));
  t.push_back(number<service, scheduling, &G::medium_prefill_tokens>(
      "scheduling", "medium_prefill_tokens", 1, tokens_max,
      "A prompt up to this is medium, above it long."));
  t.push_back(number<service, scheduling, &G::decode_run_max>(
      "scheduling", "decode_run_max", 1, 65536,
      "After so many decodes a waiting prefill gets its turn."));
  t.push_back(duration<service, scheduling, &G::prefill_wait_max>(
      "scheduling", "prefill_wait_max", 1, hour, "After so long it does, too."));

  using P = actors::DeviceOptions;
  using R = RecoveryOptions;
  constexpr auto recovery = &Config::recovery;
  t.push_back(block("", "recovery", "What happens after a fault of the device."));
  t.push_back(boolean<recovery, &R::allow_session_reset>(
      "recovery", "allow_session_reset",
      "Reset one session instead of the device, where the board promises it and "
      "`conformance_report` shows it."));
  t.push_back(boolean<service, &S::device, &P::restart_on_unknown_dma>(
      "recovery", "restart_process_on_unknown_dma",
      "Leave with exit code 75 if a transfer may still be writing."));
  t.push_back(path<recovery, &R::conformance_report>(
      "recovery", "conformance_report",
      "Report of `duet-accept conformance` for this very board."));
  t.push_back(number<service, &S::device, &P::recovery_attempts>(
      "recovery", "attempts", 1, 100, "Recoveries in a row; then the model has failed."));
  t.push_back(duration<service, &S::device, &P::recovery_backoff>(
      "recovery", "backoff", 1, hour, "Before the second attempt; then doubled."));
  t.push_back(duration<recovery, &R::replay_wait>(
      "recovery", "replay_wait", 0, hour,
      "A request without a token yet waits so long to be replayed."));
  t.push_back(number<recovery, &R::quarantine_max>("recovery", "quarantine_max", 1,
                                                   device::limits::quarantine_max,
                                                   "Jobs of a chip that never came back."));
}

void add_http(Table& t) {
  using H = http::ServerOptions;
  using L = http::ServerLimits;
  constexpr auto h = &Config::http;
  constexpr auto limits_of = &H::limits;
  constexpr string_view in = "http.limits";
  t.push_back(block("", "http", "Where and how clients are served."));
  t.push_back(key<h, &H::address>("http", "address", ValueKind::text, 0, 64,
                                  "IPv4 or IPv6 address, or `localhost`; `\"\"` = no TCP. Not "
                                  "loopback needs keys."));
  t.push_back(number<h, &H::port>("http", "port", 0, 65535, "0 = the system chooses."));
  t.push_back(socket<h, &H::unix_socket>("http", "unix_socket", "Also listen on this path."));
  t.push_back(reserved("http", "tls", "TLS is not in this version; put a proxy in front"));
  t.push_back(reserved("http", "per_model_ports",
                       "a port for each model is not in this version; leave it out"));
  t.push_back(block("http", "limits", "What one client may use."));
  t.push_back(size<h, limits_of, &L::body_bytes>(in, "body_bytes", kib, gib,
                                                 "Of a request's body; above it 413."));
  t.push_back(size<h, limits_of, &L::header_bytes>(in, "header_bytes", kib, mib,
                                                   "Of request line and fields."));
  t.push_back(number<h, limits_of, &L::nesting_depth>(in, "nesting_depth", 4, 256,
                                                      "Levels of a JSON body."));
  t.push_back(number<h, limits_of, &L::connections>(in, "connections", 1, 1'000'000,
                                                    "At a time; a further one gets 503."));
  t.push_back(duration<h, limits_of, &L::keep_alive_idle>(in, "keep_alive_idle", 1, 24 * hour,
                                                          "Between two requests."));
  t.push_back(duration<h, limits_of, &L::header_deadline>(in, "header_deadline", 1, hour,
                                                          "From the first byte of a request."));
  t.push_back(duration<h, limits_of, &L::body_deadline>(in, "body_deadline", 1, hour,
                                                        "From the end of the header."));
  t.push_back(size<h, limits_of, &L::stream_high_bytes>(in, "stream_high_bytes", kib, gib,
                                                        "Unsent bytes at which an answer pauses."));
  t.push_back(size<h, limits_of, &L::stream_low_bytes>(
      in, "stream_low_bytes", 1, gib, "Unsent bytes at which it goes on; below the former."));
  t.push_back(duration<h, limits_of, &L::slow_reader>(
      in, "slow_reader", 1, hour, "A client that reads nothing for so long loses its answer."));
  t.push_back(duration<h, limits_of, &L::ping_interval>(in, "ping_interval", second, hour,
                                                        "A silent stream gets a comment."));
  t.push_back(duration<h, limits_of, &L::linger>(in, "linger", 1, minute,
                                                 "Input is read away after a last answer."));
  t.push_back(size<h, limits_of, &L::socket_send_bytes>(in, "socket_send_bytes", 4 * kib, 64 * mib,
                                                        "What the kernel buffers a connection."));
}

void add_rest(Table& t) {
  using A = AdminOptions;
  using L = LogOptions;
  using S = actors::ServiceOptions;
  using P = actors::DeviceOptions;
  constexpr auto service = &Config::service;
  t.push_back(block("", "admin", "The administration socket."));
  t.push_back(socket<&Config::admin, &A::socket>("admin", "socket", "Its path."));
  t.push_back(key<&Config::admin, &A::allow_uid>(
      "admin", "allow_uid", ValueKind::numbers, 0, std::numeric_limits<std::uint32_t>::max() - 1,
      "Users who may connect, besides the server's own.", {.absent = "nobody else"}));
  t.push_back(block("", "security", "Who may ask, and whose packages are loaded."));
  t.push_back(path<&Config::keys_file>("security", "keys_file",
                                       "Clients' keys, one a line: `NAME SECRET [admin]`.",
                                       {.absent = "everybody who can connect may ask"}));
  t.push_back(key<service, &S::device, &P::trusted_signers>(
      "security", "trusted_signers", ValueKind::paths, 1, limits::list_items_max,
      "Files of the public keys that may sign packages."));
  t.push_back(key<service, &S::device, &P::revoked_signers>(
      "security", "revoked_signers", ValueKind::paths, 1, limits::list_items_max,
      "Files of public keys whose packages are refused, trusted or not: 64 hex digits a line, `#` "
      "begins a comment."));
  t.push_back(boolean<service, &S::device, &P::allow_unsigned>(
      "security", "allow_unsigned", "Serve a package that none of them signed."));
  t.push_back(boolean<&Config::http, &http::ServerOptions::allow_anonymous>(
      "security", "allow_anonymous", "Serve without keys on an address that is not loopback."));
  t.push_back(block("", "log", "The log, one JSON object a line."));
  t.push_back(
      choice<&Config::log, &L::level>("log", "level", levels, "The least that is written."));
  t.push_back(
      path<&Config::log, &L::file>("log", "file", "Where to.", {.absent = "standard error"}));
  t.push_back(boolean<&Config::log, &L::prompts>("log", "prompts",
                                                 "Also the text of prompts and answers."));
  t.push_back(block("", "runtime", "The process."));
  t.push_back(number<&Config::runtime, &RuntimeOptions::threads>(
      "runtime", "threads", 1, 64, "Threads that run actors and connections."));
  t.push_back(duration<service, &S::stop_deadline>("runtime", "stop_deadline", second, hour,
                                                   "After SIGTERM running requests may finish "
                                                   "for so long."));
}

Table make_table() {
  Table t;
  t.push_back(choice<&Config::schema>("", "schema", schemas, "The format of the file.",
                                      {.required = true}));
  add_device(t);
  add_models(t);
  add_serving(t);
  add_http(t);
  add_rest(t);
  return t;
}

}   // namespace

const std::vector<Key>& key_table() {
  static const Table table = make_table();
  return table;
}

const Key* find_key(std::string_view parent, std::string_view name) {
  const auto& table = key_table();
  const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) {
    return key.parent == parent && key.name == name;
  });
  return found == table.end() ? nullptr : &*found;
}

std::string path_of(const Key& key) {
  return key.parent.empty() ? std::string(key.name)
                            : std::string(key.parent) + "." + std::string(key.name);
}

}   // namespace duet::config
