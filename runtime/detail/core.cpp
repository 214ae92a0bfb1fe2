// core.cpp: a system's beginning, stop and end.
#include "runtime/detail/core.hpp"

#include "runtime/actor_base.hpp"
#include "runtime/assert.hpp"
#include "runtime/detail/host_service.hpp"
#include "runtime/detail/pool.hpp"
#include "runtime/real_clock.hpp"
#include "runtime/real_completion_source.hpp"
#include "runtime/real_random.hpp"
#include "runtime/real_scheduler.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace duet::runtime::detail {

namespace asio = boost::asio;

/// A stop in progress: who is told, and the timer that ends its patience. Held by the core and by
/// the clock; it reaches the core through the gate only.
struct Core::Stopping final : Timer {
  Stopping(Arena& arena_value, std::function<void(StopReport)> done_value)
      : arena(arena_value), done(std::move(done_value)) {}
  ~Stopping() override = default;

  void expired() noexcept override {
    if (const Inside inside(arena); inside) arena.core().complete_stop();
    release(1);
  }
  void release(std::uint32_t count) noexcept {
    if (holds.fetch_sub(count, std::memory_order_acq_rel) == count) delete this;
  }

  Arena& arena;
  std::function<void(StopReport)> done;
  std::atomic<std::uint32_t> holds = 2;
};

namespace {

/// A stop request in a mailbox.
struct StopNode : Node {
  static void drop(Node& node, errc) noexcept { destroy(static_cast<StopNode*>(&node)); }
  static void run(Node& node, ActorBase& actor) {
    destroy(static_cast<StopNode*>(&node));
    actor.stop_requested();
  }
};
/// The order to end by force in a mailbox.
struct KillNode : Node {
  explicit KillNode(std::exception_ptr reason) noexcept : why(std::move(reason)) {}
  static void drop(Node& node, errc) noexcept { destroy(static_cast<KillNode*>(&node)); }
  static void run(Node& node, ActorBase& actor) {
    std::exception_ptr why = std::move(static_cast<KillNode&>(node).why);
    destroy(static_cast<KillNode*>(&node));
    actor.kill(std::move(why));
  }
  std::exception_ptr why;
};
constexpr NodeOps kill_ops = {&KillNode::drop,     &KillNode::run,           nullptr,     "kill",
                              NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};

constexpr NodeOps stop_ops = {&StopNode::drop,     &StopNode::run,           nullptr,     "stop",
                              NodeOps::Kind::task, MessageClass::guaranteed, Lane::urgent};

template <typename N, typename... Args>
bool push_order(const Address& address, const NodeOps& ops, Args&&... args) noexcept {
  if (address.empty()) return false;
  const Inside inside(address.slot()->arena());
  if (!inside || !address.alive()) return false;
  auto* const node = create<N>(std::forward<Args>(args)...);
  node->ops = &ops;
  node->generation = address.generation();
  if (address.slot()->push(*node)) return true;
  destroy(node);
  return false;
}

}   // namespace

Core::Core(asio::any_io_executor executor, SystemOptions options)
    : options_(std::move(options)),
      executor_(std::move(executor)),
      scheduler_(options_.scheduler),
      clock_(options_.clock),
      random_(options_.random),
      completions_(options_.completions) {
  DUET_ASSERT(options_.pumps > 0 && options_.stamp_activations > 0);
  DUET_ASSERT(options_.bounded_max > 0 && options_.bounded_max <= limits::bounded_messages_max,
              options_.bounded_max);
  if (scheduler_ == nullptr) {
    RealSchedulerOptions scheduling;
    scheduling.pumps_max = options_.pumps;
    own_scheduler_ = std::make_unique<RealScheduler>(executor_, scheduling);
    scheduler_ = own_scheduler_.get();
  }
  if (clock_ == nullptr) {
    own_clock_ = std::make_unique<RealClock>(executor_);
    clock_ = own_clock_.get();
  }
  if (random_ == nullptr) {
    own_random_ = std::make_unique<RealRandom>();
    random_ = own_random_.get();
  }
  if (completions_ == nullptr) {
    own_completions_ = std::make_unique<RealCompletionSource>();
    completions_ = own_completions_.get();
  }
  arena_ = &Arena::acquire(*this, asio::query(executor_, asio::execution::context));
}

Core::~Core() {
  finish();
}

void Core::attach() {
  host_ = &asio::use_service<HostService>(arena_->context());
  host_->add(shared_from_this());
}

Address Core::spawn(const ActorOptions& options, ActorBase& actor) {
  if (stop_begun_.load(std::memory_order_relaxed) || finished()) {
    actor.destroy();
    return {};
  }
  const Inside inside(*arena_);
  if (!inside) {
    actor.destroy();
    return {};
  }
  live_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = arena_->take_slot();
  slot.side().set_name(options.name);
  ThreadState& state = thread_state();
  Slot::Birth birth;
  birth.actor = &actor;
  birth.bounded_max = options.bounded_max == 0 ? options_.bounded_max : options.bounded_max;
  birth.number = spawned_.fetch_add(1, std::memory_order_relaxed) + 1;
  birth.runs_inline = options.run_on_completion_thread;
  birth.supervised = options.supervised;
  const bool child = state.inside(*arena_);
  if (child) birth.parent = Address(state.slot, state.generation);
  const std::uint64_t generation = slot.open(birth, child ? state.stamp : clock_->now());
  if (options.first_watcher != nullptr) slot.monitors().add(*options.first_watcher);
  // A stop that began meanwhile may have looked at this slot before it was open.
  const Address address(&slot, generation);
  if (stop_begun_.load(std::memory_order_seq_cst)) request_stop(address);
  make_ready(slot);
  return address;
}

bool Core::request_stop(const Address& address) noexcept {
  return push_order<StopNode>(address, stop_ops);
}

bool Core::kill(const Address& address, std::exception_ptr why) noexcept {
  return push_order<KillNode>(address, kill_ops, std::move(why));
}

void Core::stop(Duration patience, std::function<void(StopReport)> done) {
  {
    // The stop itself counts as one alive, so that it ends here at the earliest.
    live_.fetch_add(1, std::memory_order_relaxed);
    auto* const stopping = new Stopping(*arena_, std::move(done));
    const std::lock_guard guard(stop_lock_);
    DUET_ASSERT(!stop_begun_.load(), "stop() is called once");
    stopping_ = stopping;
    stop_begun_.store(true, std::memory_order_seq_cst);
    clock_->arm(*stopping, clock_->now() + patience);
  }
  for (Slot* const slot : living()) {
    if (!slot->supervised()) request_stop(Address(slot, slot->generation()));
  }
  if (live_.fetch_sub(1, std::memory_order_acq_rel) == 1) complete_stop();
}

/// Of the two who come here, the last actor and the timer, the first one reports.
void Core::complete_stop() noexcept {
  Stopping* stopping = nullptr;
  {
    const std::lock_guard guard(stop_lock_);
    stopping = std::exchange(stopping_, nullptr);
  }
  if (stopping == nullptr) return;
  StopReport report;
  if (live_.load(std::memory_order_acquire) != 0) report.stragglers = snapshot().actors;
  std::function<void(StopReport)> done = std::move(stopping->done);
  stopping->release(clock_->cancel(*stopping) ? 2 : 1);
  if (done == nullptr) return;
  asio::post(executor_, [done = std::move(done), report = std::move(report)]() mutable {
    done(std::move(report));
  });
}

void Core::ended(Slot& slot, std::uint64_t sent, std::uint64_t handled) noexcept {
  sent_by_dead_.fetch_add(sent, std::memory_order_relaxed);
  handled_by_dead_.fetch_add(handled, std::memory_order_relaxed);
  arena_->give_slot(slot);
  const bool last = live_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (last && stop_begun_.load(std::memory_order_acquire) && !finished()) complete_stop();
}

void Core::report_failure(Slot& slot, std::uint64_t generation, const ExitReason& reason) noexcept {
  failed_.fetch_add(1, std::memory_order_relaxed);
  if (options_.on_failure == nullptr) return;
  options_.on_failure(ActorFailure{slot.side().name(), Address(&slot, generation), reason});
}

bool Core::compute(BlockingCall& call) {
  {
    const std::lock_guard guard(lanes_lock_);
    while (lanes_.size() < options_.compute_threads) {
      const std::string name = options_.name + "-compute" + std::to_string(lanes_.size());
      lanes_.push_back(completions_->open_lane(name, options_.compute_queued_max));
    }
  }
  const std::uint32_t first = next_lane_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[(first + i) % lanes_.size()]->push(call)) return true;
  }
  return false;
}

void Core::finish() noexcept {
  if (finished_.exchange(true, std::memory_order_acq_rel)) return;
  DUET_ASSERT(!thread_state().inside(*arena_), "a system cannot be destroyed by one of its actors");
  arena_->gate.close();
  scheduler_->close();
  lanes_.clear();
  std::vector<Slot*> left = living();
  // Children end before their parents.
  for (auto slot = left.rbegin(); slot != left.rend(); ++slot) (*slot)->end();
  {
    const std::lock_guard guard(stop_lock_);
    if (stopping_ != nullptr) stopping_->release(clock_->cancel(*stopping_) ? 2 : 1);
    stopping_ = nullptr;
  }
  if (host_ != nullptr) host_->remove(*this);
  Arena::release(*arena_);
  own_completions_.reset();
  own_clock_.reset();
  own_scheduler_.reset();
  executor_ = nullptr;
}

std::vector<Slot*> Core::living() const {
  std::vector<Slot*> slots = arena_->slots();
  std::erase_if(slots, [](const Slot* slot) { return slot->generation() % 2 == 0; });
  std::vector<std::pair<std::uint64_t, Slot*>> numbered;
  numbered.reserve(slots.size());
  for (Slot* const slot : slots) numbered.emplace_back(slot->number(), slot);
  std::sort(numbered.begin(), numbered.end());
  for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = numbered[i].second;
  return slots;
}

}   // namespace duet::runtime::detail
