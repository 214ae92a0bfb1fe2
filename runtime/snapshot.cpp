// snapshot.cpp: snapshots for people.
#include "runtime/snapshot.hpp"

#include <array>
#include <cstdio>

namespace duet::runtime {

const char* to_string(ActorState state) noexcept {
  switch (state) {
    case ActorState::starting:
      return "starting";
    case ActorState::ready:
      return "ready";
    case ActorState::running:
      return "running";
    case ActorState::waiting:
      return "waiting";
  }
  return "unknown";
}

std::string describe(const ActorSnapshot& actor, TimePoint now) {
  std::string text = actor.name + ": " + to_string(actor.state);
  if (!actor.message.empty()) text += " " + actor.message;
  if (!actor.waits_for.empty()) text += " for " + actor.waits_for;
  if (actor.waits_on != 0) text += " of actor " + std::to_string(actor.waits_on);
  const double seconds = std::chrono::duration<double>(now - actor.since).count();
  std::array<char, 48> since{};
  std::snprintf(since.data(), since.size(), " since %.3f s", seconds);
  text += since.data();
  if (!actor.file.empty()) text += " at " + actor.file + ":" + std::to_string(actor.line);
  return text;
}

}   // namespace duet::runtime
