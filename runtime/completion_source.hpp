// completion_source.hpp: the seam through which blocking calls are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace duet::runtime {

/// One blocking call. Intrusive; its owner keeps it until finish() has returned, for ever if it
/// never does.
class BlockingCall {
 public:
  BlockingCall() = default;
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  /// Makes the call. On the lane's thread; may block for any time.
  virtual void run() noexcept = 0;

  /// Delivers the result: once after run(), or once without run() if the lane was closed first
  /// (`ran` is false). It must not block and is the last time that the lane touches the call.
  virtual void finish(bool ran) noexcept = 0;

  /// Delivers a copy of the result, between run() and finish(), if the call can: what a driver does
  /// that reports a completion twice. Only a simulated lane calls it.
  virtual void repeat() noexcept {}

 protected:
  virtual ~BlockingCall() = default;

 private:
  friend class BlockingCallQueue;
  BlockingCall* next_ = nullptr;
};

/// A FIFO of calls; no lock of its own.
class BlockingCallQueue {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  void push(BlockingCall& call) noexcept;
  [[nodiscard]] BlockingCall* pop() noexcept;   ///< Null if empty.

 private:
  BlockingCall* head_ = nullptr;
  BlockingCall* tail_ = nullptr;
  std::size_t size_ = 0;
};

/// Makes calls one at a time, in order.
class CompletionLane {
 public:
  /// Closes the lane.
  virtual ~CompletionLane() = default;

  /// Any thread. False, and nothing happens to `call`, if `queued_max` calls wait already or the
  /// lane is closed.
  [[nodiscard]] virtual bool push(BlockingCall& call) noexcept = 0;

  /// Finishes the waiting calls unmade and waits for the running one. Not from the lane's own
  /// calls.
  virtual void close() noexcept = 0;

  /// As close(), but leaves a running call and its thread behind: its finish() may still come, at
  /// any time, or never. True if a call was running. The source counts it (`abandoned`).
  virtual bool abandon() noexcept = 0;
};

/// Opens lanes. Implementations: RealCompletionSource with a thread a lane; the simulator, which
/// may delay, reorder or lose what comes back.
class CompletionSource {
 public:
  virtual ~CompletionSource() = default;

  /// `name` shows in thread lists (15 characters). `queued_max` counts the calls that wait behind a
  /// running one.
  [[nodiscard]] virtual std::unique_ptr<CompletionLane> open_lane(std::string_view name,
                                                                  std::size_t queued_max) = 0;

  /// Threads left behind in calls that have not come back.
  [[nodiscard]] virtual std::uint64_t abandoned() const noexcept = 0;
};

}   // namespace duet::runtime
