// combined_board.cpp: the life cycle of a board in the combined dialect.
#include "device/calrt/combined_board.hpp"

#include "runtime/assert.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

namespace duet::device {

CombinedAdapter::Board::Board(VendorRuntime& vendor_runtime,
                              runtime::CompletionSource& completion_source,
                              runtime::Clock& wall_clock)
    : runtime(vendor_runtime),
      source(completion_source),
      clock(wall_clock),
      life_cycle(source.open_lane("board-life", limits::calls_queued_max)),
      telemetry(source.open_lane("board-telemetry", limits::calls_queued_max)) {}

std::shared_ptr<CombinedSession> CombinedAdapter::Board::session(SessionId id) const {
  const std::lock_guard lock(lock_);
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [id](const auto& s) { return s->state().session == id; });
  return found == sessions_.end() ? nullptr : *found;
}

result<std::shared_ptr<CombinedSession>> CombinedAdapter::Board::require_session(
    SessionId id) const {
  auto found = session(id);
  if (found == nullptr) return Failure(errc::unknown_name, "no session " + std::to_string(id));
  return found;
}

std::vector<std::shared_ptr<CombinedSession>> CombinedAdapter::Board::sessions() const {
  const std::lock_guard lock(lock_);
  return sessions_;
}

result<void> CombinedAdapter::Board::require_open() const {
  if (!open_) return Failure(errc::not_open, "the board is not open");
  return {};
}

result<void> CombinedAdapter::Board::require_idle() const {
  for (const auto& session : sessions()) {
    if (!session->idle()) {
      return Failure(errc::device_busy, "session " + std::to_string(session->state().session) +
                                            " has a job in flight; drain it first");
    }
  }
  return {};
}

result<CallDone::Value> CombinedAdapter::Board::open() {
  if (open_) return Failure(errc::wrong_state, "the board is open already");
  auto topology = runtime.open();
  if (!topology) return topology.error();
  open_ = true;
  topology_ = *topology;
  return Value(std::move(*topology));
}

result<CallDone::Value> CombinedAdapter::Board::load_package(const PackageRef& package) {
  if (auto checked = require_open(); !checked) return checked.error();
  if (configured_) {
    return Failure(errc::wrong_state, "a package is configured; reset the configuration first");
  }
  DUET_ASSERT(package.manifest != nullptr);
  auto graphs = runtime.load_package(package.directory);
  if (!graphs) return graphs.error();
  package_ = package;
  graphs_ = std::move(*graphs);
  package_id_ = ++packages_loaded_;
  return Value(LoadedPackage{package_id_, graphs_});
}

result<CallDone::Value> CombinedAdapter::Board::configure(PackageId package) {
  if (auto checked = require_open(); !checked) return checked.error();
  if (configured_) {
    return Failure(errc::already_configured,
                   "package " + package_.directory.string() + " is configured already");
  }
  if (package == 0 || package != package_id_) {
    return Failure(errc::unknown_name,
                   "package " + std::to_string(package) + " is not the one loaded last");
  }
  if (auto configured = runtime.configure(); !configured) return configured.error();
  // The files may have changed between validation and load: what runs must be what was judged.
  const auto hash = runtime.current_hash();
  if (!hash || *hash != package_.hash) {
    static_cast<void>(runtime.reset_configuration());
    if (!hash) return hash.error();
    return Failure(errc::package_invalid,
                   "the device holds package " + *hash + ", not the validated " + package_.hash);
  }
  configured_ = true;
  return Value();
}

result<CallDone::Value> CombinedAdapter::Board::read_hash() {
  if (auto checked = require_open(); !checked) return checked.error();
  auto hash = runtime.current_hash();
  if (!hash) return hash.error();
  return Value(std::move(*hash));
}

result<CallDone::Value> CombinedAdapter::Board::create_session(const ChipSessionOptions& options,
                                                               const Sink& jobs) {
  if (auto checked = require_open(); !checked) return checked.error();
  if (!configured_) return Failure(errc::wrong_state, "no package is configured");
  if (options.chip >= topology_.chips) {
    return Failure(errc::bad_argument, "chip " + std::to_string(options.chip) + " of " +
                                           std::to_string(topology_.chips));
  }
  if (options.inflight_max == 0 || options.inflight_max > topology_.inflight_per_chip_max ||
      options.inflight_max > limits::inflight_per_chip_max) {
    return Failure(errc::bad_argument, "inflight_max " + std::to_string(options.inflight_max) +
                                           "; the runtime takes 1 to " +
                                           std::to_string(std::min(topology_.inflight_per_chip_max,
                                                                   limits::inflight_per_chip_max)));
  }
  if (options.dram_quota_bytes != 0 || options.sram_quota_bytes != 0) {
    return Failure(errc::unsupported,
                   "this runtime has no quotas; the manifest's address plan holds");
  }
  const auto existing = sessions();
  const auto on_chip = std::count_if(existing.begin(), existing.end(), [&](const auto& session) {
    return session->state().chip == options.chip && session->state().phase != SessionPhase::ended;
  });
  if (static_cast<std::uint32_t>(on_chip) >= topology_.sessions_per_chip_max) {
    return Failure(errc::unsupported,
                   "chip " + std::to_string(options.chip) + " has a session already");
  }
  const SessionState state{++sessions_made_, options.chip, ++generations_made_,
                           SessionPhase::empty};
  auto session = std::make_shared<CombinedSession>(runtime, source, state, options, jobs);
  const std::lock_guard lock(lock_);
  sessions_.push_back(std::move(session));
  return Value(state);
}

result<BoundModel> CombinedAdapter::Board::bind_model(const CombinedSession& session,
                                                      const std::string& name) const {
  const Model* const model = find_model(*package_.manifest, name);
  if (model == nullptr) return Failure(errc::unknown_name, "the package has no model " + name);
  BoundModel bound;
  for (const std::string& graph_name : {model->prefill, model->decode}) {
    const auto loaded = std::find_if(graphs_.begin(), graphs_.end(),
                                     [&](const LoadedGraph& g) { return g.name == graph_name; });
    if (loaded == graphs_.end()) {
      return Failure(errc::unknown_name, "the runtime has no graph " + graph_name);
    }
    if (loaded->mode != ChipMode::schip ||
        loaded->target_chips != std::vector<std::uint32_t>{session.state().chip}) {
      return Failure(errc::bad_argument, "graph " + graph_name + " does not run on chip " +
                                             std::to_string(session.state().chip) + " alone");
    }
    const auto handle = static_cast<GraphHandle>(loaded - graphs_.begin());
    (graph_name == model->prefill ? bound.prefill : bound.decode) = handle;
  }
  bound.kv = {model->kv.slots, model->kv.tokens_per_slot, model->kv.sequence_id_first,
              model->kv.sequence_id_last};
  return bound;
}

result<CallDone::Value> CombinedAdapter::Board::load_model(SessionId id, PackageId package,
                                                           const std::string& model) {
  const auto session = require_session(id);
  if (!session) return session.error();
  if (!configured_ || package != package_id_) {
    return Failure(errc::wrong_state,
                   "package " + std::to_string(package) + " is not the current one");
  }
  if ((*session)->state().phase != SessionPhase::empty) {
    return Failure(errc::wrong_state, "session " + std::to_string(id) + " is not empty");
  }
  const auto bound = bind_model(**session, model);
  if (!bound) return bound.error();
  (*session)->bind(*bound, ++generations_made_);
  return Value((*session)->state());
}

result<CallDone::Value> CombinedAdapter::Board::allocate_io(SessionId id, GraphKind kind) {
  const auto session = require_session(id);
  if (!session) return session.error();
  const auto graph = (*session)->graph(kind);
  if (!graph) return Failure(errc::wrong_state, "session " + std::to_string(id) + " has no model");
  if ((*session)->buffers_count() >= limits::io_buffers_max) {
    return Failure(errc::out_of_memory, "session " + std::to_string(id) + " has " +
                                            std::to_string(limits::io_buffers_max) +
                                            " buffers already");
  }
  auto buffers = runtime.allocate_io(*graph);
  if (!buffers) return buffers.error();
  buffers->session = id;
  buffers->graph = kind;
  (*session)->add_buffers(*buffers);
  return Value(*buffers);
}

result<CallDone::Value> CombinedAdapter::Board::release_io(SessionId id, std::uint64_t buffers) {
  const auto session = require_session(id);
  if (!session) return session.error();
  if (auto removed = (*session)->remove_buffers(buffers); !removed) return removed.error();
  if (auto released = runtime.release_io(buffers); !released) return released.error();
  return Value();
}

result<CallDone::Value> CombinedAdapter::Board::unload(SessionId id) {
  const auto session = require_session(id);
  if (!session) return session.error();
  const SessionPhase phase = (*session)->state().phase;
  if (phase != SessionPhase::loaded && phase != SessionPhase::draining) {
    return Failure(errc::wrong_state, "session " + std::to_string(id) + " has no model");
  }
  if (!(*session)->idle()) {
    return Failure(errc::device_busy,
                   "session " + std::to_string(id) + " has a job in flight; drain it first");
  }
  (*session)->invalidate(++generations_made_, SessionPhase::empty);
  return Value((*session)->state());
}

result<CallDone::Value> CombinedAdapter::Board::destroy_session(SessionId id) {
  const auto session = require_session(id);
  if (!session) return session.error();
  if ((*session)->state().phase != SessionPhase::empty) {
    return Failure(errc::wrong_state, "session " + std::to_string(id) + " is not empty");
  }
  (*session)->close();
  const std::lock_guard lock(lock_);
  std::erase(sessions_, *session);
  return Value();
}

void CombinedAdapter::Board::forget_sessions() {
  for (const auto& session : sessions()) session->close();
  const std::lock_guard lock(lock_);
  sessions_.clear();
}

result<CallDone::Value> CombinedAdapter::Board::reset(const ResetTarget& target) {
  if (auto checked = require_open(); !checked) return checked.error();
  const bool offered = target.scope == ResetScope::device ||
                       target.scope == ResetScope::configuration ||
                       (target.scope == ResetScope::ccu && topology_.ccu_reset) ||
                       (target.scope == ResetScope::chip && topology_.chip_reset);
  if (!offered) {
    return Failure(errc::unsupported,
                   "this runtime has no such reset; the device reset is always there");
  }
  const bool whole_board =
      target.scope == ResetScope::device || target.scope == ResetScope::configuration;
  if (!whole_board && target.chip >= topology_.chips) {
    return Failure(errc::bad_argument, "chip " + std::to_string(target.chip) + " of " +
                                           std::to_string(topology_.chips));
  }
  std::vector<SessionState> touched;
  const SessionPhase phase = whole_board                       ? SessionPhase::ended
                             : target.scope == ResetScope::ccu ? SessionPhase::loaded
                                                               : SessionPhase::empty;
  for (const auto& session : sessions()) {
    if (!whole_board && session->state().chip != target.chip) continue;
    if (session->state().phase == SessionPhase::empty && phase == SessionPhase::loaded) continue;
    // Raised before the vendor call: a completion that races the reset must already look stale.
    session->invalidate(++generations_made_, phase);
    touched.push_back(session->state());
  }
  if (auto done = runtime.reset(target.scope, target.chip); !done) {
    for (const auto& session : sessions()) {
      if (whole_board || session->state().chip == target.chip) {
        session->set_phase(SessionPhase::lost);
      }
    }
    return done.error();
  }
  if (whole_board) {
    forget_sessions();
    configured_ = false;
    package_id_ = 0;
  }
  return Value(std::move(touched));
}

result<CallDone::Value> CombinedAdapter::Board::reset_configuration() {
  if (auto checked = require_open(); !checked) return checked.error();
  if (!configured_) return Failure(errc::wrong_state, "no package is configured");
  if (auto idle = require_idle(); !idle) return idle.error();
  if (auto done = runtime.reset_configuration(); !done) return done.error();
  configured_ = false;
  package_id_ = 0;
  for (const auto& session : sessions()) {
    session->invalidate(++generations_made_, SessionPhase::ended);
  }
  forget_sessions();
  return Value();
}

result<CallDone::Value> CombinedAdapter::Board::close() {
  if (auto checked = require_open(); !checked) return checked.error();
  if (auto idle = require_idle(); !idle) return idle.error();
  for (const auto& session : sessions()) {
    session->invalidate(++generations_made_, SessionPhase::ended);
  }
  forget_sessions();
  if (auto done = runtime.close(); !done) return done.error();
  open_ = false;
  configured_ = false;
  package_id_ = 0;
  return Value();
}

}   // namespace duet::device
