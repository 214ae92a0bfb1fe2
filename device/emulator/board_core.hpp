// board_core.hpp: one emulated board as a discrete-event core: no threads, no clock, no bytes.
#pragma once

#include "device/calrt/vendor_runtime.hpp"
#include "device/emulator/board_plan.hpp"
#include "device/emulator/chip_memory.hpp"
#include "device/emulator/fault_hook.hpp"
#include "device/emulator/kv_pool.hpp"
#include "device/emulator/profile.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace duet::device::emulator {

enum class BoardState : std::uint8_t { closed, open, loaded, configuring, configured };

enum class Direction : std::uint8_t { host_to_device, device_to_host };

/// The driver copies the job's tokens or logits between host and engine staging, then calls
/// transfer_done. Only where the profile's transfers are `performed`; one at a time on the board.
struct StartTransfer {
  JobTicket ticket = 0;
  std::uint32_t chip = 0;
  Direction direction = Direction::host_to_device;
};

/// The driver computes the job, then calls compute_done. One at a time on each chip. On a timed or
/// null board it makes the output up at once and passes `at` on as begin and end.
struct StartCompute {
  JobTicket ticket = 0;
  std::uint32_t chip = 0;
  ChipNanoseconds at = 0;      ///< may have passed already, where the time is modelled.
  bool spoil_output = false;   ///< put a NaN into the output before it is checked.
};

/// The job's end can be fetched; its buffers are free.
struct JobEnded {
  JobTicket ticket = 0;
};

using BoardAction = std::variant<StartTransfer, StartCompute, JobEnded>;

/// What a driver needs to carry a job out.
struct JobView {
  GraphHandle graph = 0;
  Engine engine = Engine::ping;
  std::uint32_t chip = 0;
  std::uint32_t pool = 0;
  std::uint32_t slot = 0;
  std::uint32_t past = 0;
  std::uint32_t tokens = 0;
  std::uint64_t buffers = 0;
  bool doomed = false;   ///< a reset has ended it: the driver need not work on it any more.
};

struct Counters {
  std::uint64_t opens = 0;
  std::uint64_t loads = 0;             ///< packages placed.
  std::uint64_t configure_calls = 0;   ///< calls of configure that reached the board.
  std::uint64_t configures = 0;        ///< those that ended in a current package.
  std::uint64_t resets = 0;            ///< of any scope, carried out.
  std::uint64_t jobs_submitted = 0;    ///< accepted. submitted = done + failed + in flight.
  std::uint64_t jobs_done = 0;
  std::uint64_t jobs_failed = 0;   ///< ended with another status than success.
  std::uint64_t jobs_refused = 0;
};

/// One board in the combined dialect. Every state change of the emulator happens here. A driver
/// holds one lock around it, passes chip time in, and after each call carries out the actions that
/// next_action returns until there is none. `now` never goes back. What each reset destroys is the
/// table in README.md. Nothing is allocated on the way of a job that succeeds.
class BoardCore {
 public:
  /// `faults` may be null and must outlive the core. Throws as check_profile does.
  explicit BoardCore(const Profile& profile, FaultHook* faults = nullptr);

  // Life cycle. Errors are those of VendorRuntime; a refused call has changed nothing.
  result<Topology> open(ChipNanoseconds now);
  /// Places what load fills from files. Drops a package that was loaded and not configured.
  result<std::vector<LoadedGraph>> load(const Manifest& manifest, std::string hash,
                                        ChipNanoseconds now);
  /// Two halves, because a driver works in between: begin places what is reserved; finish makes the
  /// package current, abort takes the placement back.
  result<void> begin_configure(ChipNanoseconds now);
  void finish_configure();
  void abort_configure();
  [[nodiscard]] result<std::string> current_hash() const;

  /// Two halves, because a driver's threads may still compute: begin ends every job that no thread
  /// works on and refuses new ones; finish destroys what the scope says once work_in_hand is false.
  result<void> begin_reset(ResetScope scope, std::uint32_t chip, ChipNanoseconds now);
  /// The polite form: device_busy while a job is in flight.
  result<void> begin_reset_configuration(ChipNanoseconds now);
  result<void> begin_close(ChipNanoseconds now);
  [[nodiscard]] bool work_in_hand() const noexcept;
  void finish_reset();

  // Staging. The bytes are the driver's; ids carry the index of a small table.
  result<std::uint64_t> allocate_io(GraphHandle graph);
  result<void> release_io(std::uint64_t buffers);
  [[nodiscard]] static std::uint32_t io_index(std::uint64_t buffers) noexcept;

  result<void> kv_reserve(std::uint32_t chip, Generation generation, SequenceId sequence,
                          std::uint32_t tokens);
  result<void> kv_commit(std::uint32_t chip, Generation generation, SequenceId sequence,
                         std::uint32_t tokens);
  result<void> kv_rollback(std::uint32_t chip, Generation generation, SequenceId sequence);
  result<void> kv_release(std::uint32_t chip, Generation generation, SequenceId sequence);

  // Jobs. `tokens` is the host's input buffer, at least job.tokens long where the ids are to be
  // checked.
  result<JobTicket> submit(const VendorJob& job, std::span<const std::uint32_t> tokens,
                           ChipNanoseconds now);
  result<CancelEffect> cancel(JobTicket ticket, ChipNanoseconds now);
  /// Whether a wait may block. Errors: not_open, driver_lost, unknown_name, and what the hook says.
  result<void> begin_wait(JobTicket ticket, ChipNanoseconds now);
  /// The end of a job, once; the ticket is unknown from then on. Empty while it is in flight.
  /// Errors: not_open, driver_lost, unknown_name.
  result<std::optional<VendorJobEnd>> take_end(JobTicket ticket);
  [[nodiscard]] JobView view(JobTicket ticket) const;
  [[nodiscard]] static std::uint32_t job_index(JobTicket ticket) noexcept;

  // Events.
  [[nodiscard]] std::optional<BoardAction> next_action();
  /// When the next modelled transfer or timed computation ends.
  [[nodiscard]] std::optional<ChipNanoseconds> next_event() const noexcept;
  /// Lets happen what is due at `now`, each event at its own time, which may have passed long
  /// since. Where tokens are made up it returns after an event that leaves actions: what follows
  /// from them comes before later events, so a driver takes turns until neither is left.
  void advance(ChipNanoseconds now);
  void transfer_done(JobTicket ticket, ChipNanoseconds begin, ChipNanoseconds end);
  /// `status`: success, or why there is no output. On a timed board the output stays in the board
  /// until the job's time is over.
  void compute_done(JobTicket ticket, boost::system::error_code status, ChipNanoseconds begin,
                    ChipNanoseconds end);

  [[nodiscard]] result<MemoryUsage> memory_usage(std::uint32_t chip) const;
  [[nodiscard]] result<Health> health(std::uint32_t chip) const;
  result<Trace> take_trace(std::uint32_t chip);

  [[nodiscard]] BoardState state() const noexcept { return state_; }
  [[nodiscard]] bool lost() const noexcept { return lost_; }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] const ChipMemory& memory(std::uint32_t chip) const;
  [[nodiscard]] const BoardPlan& plan() const noexcept { return plan_; }

 private:
  enum class Phase : std::uint8_t {
    free,       ///< the record is not in use.
    queued,     ///< no engine yet.
    h2d_wait,   ///< has an engine; waits for the link.
    h2d,
    ready,   ///< waits for the chip's cores.
    compute,
    elapsing,   ///< timed: the output is there, its time is not over.
    hung,       ///< computes for ever; no driver thread is in it.
    d2h_wait,
    d2h,
    ended,   ///< waits to be fetched.
  };

  struct Job {
    Phase phase = Phase::free;
    JobTicket ticket = 0;
    VendorJob request;
    Engine engine = Engine::automatic;
    GraphKind kind = GraphKind::decode;
    std::uint32_t chip = 0;
    std::uint32_t slot = 0;
    std::uint32_t kv_before = 0;
    bool doomed = false;   ///< a reset has ended it; a driver thread still works on it.
    boost::system::error_code status;
    JobTimes times;
  };

  struct Chip {
    explicit Chip(std::uint64_t dram_bytes) : memory(dram_bytes) {}
    ChipMemory memory;
    std::vector<std::uint8_t> queue;   ///< job indices in the order of submission.
    std::array<std::uint8_t, engines_per_chip> engines{};   ///< job index + 1; 0: idle.
    Engine engine_last = Engine::pong;
    std::optional<std::uint8_t> elapsing;   ///< index of the job of that phase.
    bool resetting = false;
    bool halted = false;   ///< a CalCore stopped with an exception.
    std::uint64_t jobs_done = 0, jobs_failed = 0, resets = 0;
    std::vector<TraceEvent> trace;   ///< a ring.
    std::size_t trace_first = 0, trace_count = 0;
    std::uint64_t trace_dropped = 0;
  };

  struct Io {
    std::uint64_t id = 0;   ///< 0: not in use.
    GraphHandle graph = 0;
    std::uint32_t chip = 0;
    bool busy = false;
    bool retired = false;   ///< of a former configuration: may be released, not used.
  };

  // board_core.cpp
  [[nodiscard]] result<void> usable(ChipNanoseconds now, FaultPoint point, FaultSite site);
  [[nodiscard]] result<void> ready_for_jobs() const;
  [[nodiscard]] Fault consult(FaultSite site);
  void drop_package();
  void finish_chip_reset(Chip& chip, std::uint32_t number);
  [[nodiscard]] result<KvPool*> pool_of(std::uint32_t chip, SequenceId sequence);

  // board_core_jobs.cpp
  [[nodiscard]] result<void> check_job(const VendorJob& job,
                                       std::span<const std::uint32_t> tokens) const;
  [[nodiscard]] Job* find_job(JobTicket ticket) noexcept;
  [[nodiscard]] const Job* find_job(JobTicket ticket) const noexcept;
  [[nodiscard]] Job* free_job(std::uint32_t chip) noexcept;
  [[nodiscard]] Io* find_io(std::uint64_t id) noexcept;
  [[nodiscard]] const Io* find_io(std::uint64_t id) const noexcept;
  [[nodiscard]] bool in_hand(const Job& job) const noexcept;
  void doom_jobs(std::uint32_t chip, ChipNanoseconds now);
  void dispatch(std::uint32_t chip, ChipNanoseconds now);
  void pump_link(ChipNanoseconds now);
  void pump_compute(std::uint32_t chip, ChipNanoseconds now);
  void start_compute(Job& job, ChipNanoseconds now);
  void after_compute(Job& job, boost::system::error_code status, ChipNanoseconds end);
  [[nodiscard]] ChipNanoseconds compute_time(const Job& job) const noexcept;
  void after_transfer(Job& job, ChipNanoseconds begin, ChipNanoseconds end);
  void end_job(Job& job, boost::system::error_code status, ChipNanoseconds now);
  void end_halted_jobs(std::uint32_t chip, ChipNanoseconds now);
  void unlink(std::uint8_t index);
  void trace(TraceKind kind, const Job& job, ChipNanoseconds begin, ChipNanoseconds end) noexcept;
  void emit(BoardAction action);
  [[nodiscard]] ChipNanoseconds transfer_time(const Job& job) const noexcept;

  Profile profile_;
  FaultHook* faults_;
  std::array<std::uint64_t, fault_points> visits_{};
  BoardState state_ = BoardState::closed;
  bool lost_ = false;
  BoardPlan plan_;
  std::vector<KvPool> pools_;
  std::vector<Chip> chips_;
  std::vector<Job> jobs_;
  std::vector<Io> io_;
  std::uint64_t serial_ = 0;   ///< of tickets and buffer ids; never reused.

  std::optional<ResetScope> reset_scope_;   ///< of the reset or close under way.
  bool closing_ = false;

  std::vector<std::uint8_t> link_queue_;            ///< job indices that wait for the link.
  std::optional<std::uint8_t> link_job_;            ///< the job whose transfer is on the link.
  ChipNanoseconds link_begin_ = 0, link_end_ = 0;   ///< of a modelled transfer.

  std::array<BoardAction, limits::actions_max> actions_;
  std::size_t actions_first_ = 0, actions_count_ = 0;

  Counters counters_;
};

}   // namespace duet::device::emulator
