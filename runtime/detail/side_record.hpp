// side_record.hpp: what anyone may read about an actor at any time, even when it is stuck.
#pragma once

#include "runtime/limits.hpp"
#include "runtime/time.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <string>
#include <string_view>

namespace duet::runtime::detail {

class Slot;

enum class Activity : std::uint8_t { none, starting, running, waiting };

/// One writer at a time, the activation; readers see each field whole, not all of one moment.
class SideRecord {
 public:
  static constexpr std::size_t name_words = (limits::name_characters_max + 1) / 8;

  void set_name(std::string_view name) noexcept {
    std::array<char, name_words * 8> text{};
    std::copy_n(name.data(), std::min(name.size(), limits::name_characters_max), text.data());
    for (std::size_t i = 0; i < name_words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + i * 8, 8);
      name_[i].store(word, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] std::string name() const {
    std::array<char, name_words * 8> text{};
    for (std::size_t i = 0; i < name_words; ++i) {
      const std::uint64_t word = name_[i].load(std::memory_order_relaxed);
      std::memcpy(text.data() + i * 8, &word, 8);
    }
    return std::string(text.data());
  }

  void enter(Activity activity, TimePoint now) noexcept {
    since_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    activity_.store(activity, std::memory_order_relaxed);
  }

  void set_message(const char* type) noexcept { message_.store(type, std::memory_order_relaxed); }

  void set_wait(const char* what, const std::source_location& where) noexcept {
    waits_for_.store(what, std::memory_order_relaxed);
    where_.store(where, std::memory_order_relaxed);
  }

  void set_waits_on(Slot* slot, std::uint64_t generation) noexcept {
    waits_on_.store(slot, std::memory_order_relaxed);
    waits_on_generation_.store(generation, std::memory_order_relaxed);
  }

  /// Of one that waits on nobody.
  void end_wait() noexcept { waits_for_.store(nullptr, std::memory_order_relaxed); }
  void clear_wait() noexcept {
    end_wait();
    waits_on_.store(nullptr, std::memory_order_relaxed);
  }

  /// `count` more lie in the urgent list.
  void urgent_came(std::uint32_t count) noexcept {
    const std::uint32_t depth = urgent_depth.load(std::memory_order_relaxed) + count;
    urgent_depth.store(depth, std::memory_order_relaxed);
    note_peak(urgent_peak, depth);
  }
  static void note_peak(std::atomic<std::uint32_t>& peak, std::uint32_t depth) noexcept {
    if (depth > peak.load(std::memory_order_relaxed)) peak.store(depth, std::memory_order_relaxed);
  }

  void reset() noexcept {
    set_name({});
    enter(Activity::none, TimePoint{});
    set_message(nullptr);
    clear_wait();
    where_.store(std::source_location(), std::memory_order_relaxed);
    for (auto* count : {&others_taken, &normal_peak, &urgent_depth, &urgent_peak}) {
      count->store(0, std::memory_order_relaxed);
    }
    last_seen = 0;
  }

  [[nodiscard]] Activity activity() const noexcept {
    return activity_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] TimePoint since() const noexcept {
    return TimePoint(Duration(since_.load(std::memory_order_relaxed)));
  }
  [[nodiscard]] const char* message() const noexcept {
    return message_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const char* waits_for() const noexcept {
    return waits_for_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::source_location where() const noexcept {
    return where_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Slot* waits_on() const noexcept {
    return waits_on_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t waits_on_generation() const noexcept {
    return waits_on_generation_.load(std::memory_order_relaxed);
  }

  // What every activation writes comes first, together.

  // Messages without a bound that were taken from the normal lane, modulo 2^32.
  std::atomic<std::uint32_t> others_taken = 0;
  std::atomic<std::uint32_t> normal_peak = 0;
  std::atomic<std::uint32_t> urgent_depth = 0;   // taken from the inbox and not begun yet
  std::atomic<std::uint32_t> urgent_peak = 0;
  std::uint16_t last_seen = 0;   // what Inbox::moved() keeps; Slot::is_peak() resets it

 private:
  std::atomic<Activity> activity_ = Activity::none;
  std::atomic<std::int64_t> since_ = 0;
  std::atomic<const char*> message_ = nullptr;
  std::atomic<const char*> waits_for_ = nullptr;
  std::atomic<std::source_location> where_;   // one pointer
  std::atomic<Slot*> waits_on_ = nullptr;
  std::atomic<std::uint64_t> waits_on_generation_ = 0;
  std::array<std::atomic<std::uint64_t>, name_words> name_{};
};

}   // namespace duet::runtime::detail
