// combined_board.hpp: the books of the whole board behind combined_adapter, and its life-cycle
// steps.
#pragma once

#include "device/calrt/combined_adapter.hpp"
#include "device/calrt/combined_session.hpp"
#include "runtime/short_lock.hpp"

#include <memory>
#include <string>
#include <vector>

namespace duet::device {

/// The steps below block: they run on the life-cycle lane, one at a time, so that only what other
/// threads read is locked.
class CombinedAdapter::Board {
 public:
  Board(VendorRuntime& vendor_runtime, runtime::CompletionSource& completion_source,
        runtime::Clock& wall_clock);

  using Value = CallDone::Value;
  result<Value> open();
  result<Value> load_package(const PackageRef& package);
  result<Value> configure(PackageId package);
  result<Value> read_hash();
  result<Value> create_session(const ChipSessionOptions& options, const Sink& jobs);
  result<Value> load_model(SessionId session, PackageId package, const std::string& model);
  result<Value> allocate_io(SessionId session, GraphKind graph);
  result<Value> release_io(SessionId session, std::uint64_t buffers);
  result<Value> unload(SessionId session);
  result<Value> destroy_session(SessionId session);
  result<Value> reset(const ResetTarget& target);
  result<Value> reset_configuration();
  result<Value> close();

  /// Any thread. Null if there never was one.
  [[nodiscard]] std::shared_ptr<CombinedSession> session(SessionId id) const;
  [[nodiscard]] result<std::shared_ptr<CombinedSession>> require_session(SessionId id) const;
  [[nodiscard]] std::vector<std::shared_ptr<CombinedSession>> sessions() const;

  VendorRuntime& runtime;
  runtime::CompletionSource& source;
  runtime::Clock& clock;
  std::unique_ptr<runtime::CompletionLane> life_cycle;
  std::unique_ptr<runtime::CompletionLane> telemetry;
  std::atomic<bool> lost = false;   // a life-cycle call never came back

 private:
  result<void> require_open() const;
  result<void> require_idle() const;
  result<BoundModel> bind_model(const CombinedSession& session, const std::string& name) const;
  void forget_sessions();

  // Of the life-cycle lane alone:
  bool open_ = false;
  Topology topology_;
  PackageRef package_;
  std::vector<LoadedGraph> graphs_;
  PackageId package_id_ = 0;
  PackageId packages_loaded_ = 0;
  bool configured_ = false;
  SessionId sessions_made_ = 0;
  Generation generations_made_ = 0;

  mutable runtime::ShortLock lock_;
  std::vector<std::shared_ptr<CombinedSession>> sessions_;
};

}   // namespace duet::device
