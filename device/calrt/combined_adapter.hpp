// combined_adapter.hpp: the session contract over a runtime of the combined dialect (R-5.A, R-2.3).
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/contract/device.hpp"
#include "runtime/clock.hpp"
#include "runtime/completion_source.hpp"

#include <memory>

namespace duet::device {

/// Sessions are views of one configured package: configure and reset_configuration are global, a
/// session takes one model whose graphs target its chip, and load_model only binds. Every blocking
/// call of `runtime` is made on a completion thread: one for the life cycle, one for telemetry, one
/// a job in flight. The runtime, the source and the clock outlive the adapter. Destroying it waits
/// for running calls; a call that never returns must have been given up before (a lost life-cycle
/// call ends the process, see DESIGN: _exit(75)).
class CombinedAdapter final : public Device {
 public:
  CombinedAdapter(VendorRuntime& runtime, runtime::CompletionSource& source, runtime::Clock& clock);
  ~CombinedAdapter() override;

  void open(std::uint64_t tag, TimePoint deadline, Sink sink) override;
  void load_package(std::uint64_t tag, PackageRef package, TimePoint deadline, Sink sink) override;
  void configure(std::uint64_t tag, PackageId package, TimePoint deadline, Sink sink) override;
  void read_hash(std::uint64_t tag, TimePoint deadline, Sink sink) override;
  void create_session(std::uint64_t tag, ChipSessionOptions options, Sink jobs, Sink sink) override;
  void load_model(std::uint64_t tag, SessionId session, PackageId package, std::string model,
                  TimePoint deadline, Sink sink) override;
  void allocate_io(std::uint64_t tag, SessionId session, GraphKind graph, Sink sink) override;
  void release_io(std::uint64_t tag, SessionId session, std::uint64_t buffers, Sink sink) override;
  void drain(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) override;
  result<void> resume(SessionId session) override;
  void unload(std::uint64_t tag, SessionId session, TimePoint deadline, Sink sink) override;
  void destroy_session(std::uint64_t tag, SessionId session, Sink sink) override;
  void reset(std::uint64_t tag, ResetTarget target, TimePoint deadline, Sink sink) override;
  void reset_configuration(std::uint64_t tag, TimePoint deadline, Sink sink) override;
  void memory_usage(std::uint64_t tag, std::uint32_t chip, Sink sink) override;
  void health(std::uint64_t tag, std::uint32_t chip, Sink sink) override;
  void take_trace(std::uint64_t tag, std::uint32_t chip, Sink sink) override;
  void close(std::uint64_t tag, TimePoint deadline, Sink sink) override;

  result<void> kv_reserve(SessionId session, Generation generation, SequenceId sequence,
                          std::uint32_t tokens) override;
  result<void> kv_commit(SessionId session, Generation generation, SequenceId sequence,
                         std::uint32_t tokens) override;
  result<void> kv_rollback(SessionId session, Generation generation, SequenceId sequence) override;
  result<void> kv_release(SessionId session, Generation generation, SequenceId sequence) override;
  result<void> submit(const JobRequest& job) override;
  result<CancelEffect> cancel(SessionId session, JobId job) override;
  result<void> abandon(SessionId session, JobId job) override;
  [[nodiscard]] JobState query(SessionId session, JobId job) const override;

 private:
  class Board;
  class Call;
  class DrainCall;
  std::shared_ptr<Board> board_;
};

}   // namespace duet::device
