// supervisor_event.cpp: a supervisor's events for people.
#include "runtime/supervisor_event.hpp"

#include <array>
#include <chrono>
#include <cstdio>

namespace duet::runtime {
namespace {

std::string seconds(Duration duration) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f s",
                std::chrono::duration<double>(duration).count());
  return text.data();
}

}   // namespace

std::string describe(const SupervisorEvent& event) {
  std::string text = std::string(event.supervisor) + ": ";
  if (!event.child.empty()) text += std::string(event.child) + " ";
  switch (event.kind) {
    case SupervisorEvent::Kind::started:
      text += "started";
      break;
    case SupervisorEvent::Kind::ended:
      text += event.address.empty() ? "could not be started" : "ended";
      text += " (" + event.reason.text() + ")";
      break;
    case SupervisorEvent::Kind::restarting:
      text += "starts again in " + seconds(event.delay) + ", restart " +
              std::to_string(event.restarts) + " of late";
      break;
    case SupervisorEvent::Kind::late:
      text += "did not stop in time and is ended by force";
      break;
    case SupervisorEvent::Kind::abandoned:
      text += "cannot be ended and is left behind";
      break;
    case SupervisorEvent::Kind::giving_up:
      text += "gives up (" + event.reason.text() + ")";
      break;
    case SupervisorEvent::Kind::refused:
      text += "is not taken";
      break;
    case SupervisorEvent::Kind::stopped:
      text += "stopped";
      break;
  }
  for (const ActorSnapshot& actor : event.stragglers) text += "; " + describe(actor, event.now);
  return text;
}

}   // namespace duet::runtime
