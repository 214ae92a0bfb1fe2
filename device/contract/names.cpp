// names.cpp: the words for the contract's enumerations in logs, traces and tools.
#include "device/contract/device.hpp"

namespace duet::device {

const char* to_string(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::open:
      return "open";
    case CallKind::load_package:
      return "load_package";
    case CallKind::configure:
      return "configure";
    case CallKind::read_hash:
      return "read_hash";
    case CallKind::create_session:
      return "create_session";
    case CallKind::load_model:
      return "load_model";
    case CallKind::allocate_io:
      return "allocate_io";
    case CallKind::release_io:
      return "release_io";
    case CallKind::drain:
      return "drain";
    case CallKind::unload:
      return "unload";
    case CallKind::destroy_session:
      return "destroy_session";
    case CallKind::reset:
      return "reset";
    case CallKind::reset_configuration:
      return "reset_configuration";
    case CallKind::memory_usage:
      return "memory_usage";
    case CallKind::health:
      return "health";
    case CallKind::take_trace:
      return "take_trace";
    case CallKind::close:
      return "close";
  }
  return "unknown";
}

const char* to_string(GraphKind kind) noexcept {
  switch (kind) {
    case GraphKind::prefill:
      return "prefill";
    case GraphKind::decode:
      return "decode";
  }
  return "unknown";
}

const char* to_string(Engine engine) noexcept {
  switch (engine) {
    case Engine::automatic:
      return "auto";
    case Engine::ping:
      return "ping";
    case Engine::pong:
      return "pong";
  }
  return "unknown";
}

}   // namespace duet::device
