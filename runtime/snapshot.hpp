// snapshot.hpp: a system and its actors as plain values.
#pragma once

#include "runtime/time.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace duet::runtime {

enum class ActorState : std::uint8_t {
  starting,   ///< Spawned, not run yet.
  ready,      ///< Something came; it waits for a pump.
  running,    ///< A handler runs, or the behaviour between two awaits.
  waiting,    ///< For what `waits_for` says.
};

[[nodiscard]] const char* to_string(ActorState state) noexcept;

struct LaneSnapshot {
  /// Messages that came and were not begun; in the urgent lane completions too.
  std::uint32_t depth = 0;
  std::uint32_t peak = 0;   ///< the most when one was taken
};

/// Read without stopping the actor: each field is whole, but they may be of different moments.
struct ActorSnapshot {
  std::uint64_t number = 0;
  std::uint64_t parent = 0;   ///< 0: spawned from outside, or the parent has ended
  std::uint64_t generation = 0;
  std::string name;
  ActorState state = ActorState::waiting;
  TimePoint since{};     ///< up to 31 activations of other actors early
  std::string message;   ///< type of the message being handled; empty if none
  /// "message", "timer", "reply", "computation", "operation", or what the actor says; empty while
  /// it runs.
  std::string waits_for;
  std::uint64_t waits_on = 0;   ///< of a reply: who is to give it; 0 if that has ended
  std::string file;             ///< where in the source it waits; while it runs, where it did last
  std::uint32_t line = 0;
  LaneSnapshot normal;
  LaneSnapshot urgent;
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
};

struct SystemCounters {
  std::uint64_t spawned = 0;
  std::uint64_t failed = 0;
  std::uint64_t sent = 0;   ///< also those that were refused
  std::uint64_t delivered = 0;
  std::uint64_t refused = 0;         ///< bounded messages over their receiver's bound
  std::uint64_t receiver_gone = 0;   ///< sent to the dead, or queued when the receiver ended
  std::uint64_t expired = 0;         ///< deadline passed in the mailbox
  std::uint64_t superseded = 0;      ///< replaced by a later one of class latest
  std::uint64_t late_replies = 0;    ///< nobody waited for them any more
};

/// What became of the messages of one type, by its unqualified name.
struct TypeSnapshot {
  std::string name;
  std::uint64_t handled = 0;
  std::uint64_t refused = 0;   ///< these are as in SystemCounters
  std::uint64_t receiver_gone = 0;
  std::uint64_t expired = 0;
  std::uint64_t superseded = 0;
};

struct SystemSnapshot {
  std::string name;
  TimePoint now{};
  std::vector<ActorSnapshot> actors;   ///< by number
  SystemCounters counters;
  std::vector<TypeSnapshot> types;   ///< by name; those of which there was a message
};

/// What System::stop() tells: who was left when its patience ended; none if all have ended.
struct StopReport {
  std::vector<ActorSnapshot> stragglers;
};

/// One line for people: "session-7: waiting for a reply of model-a since 2.1 s at request.cpp:88".
[[nodiscard]] std::string describe(const ActorSnapshot& actor, TimePoint now);

}   // namespace duet::runtime
