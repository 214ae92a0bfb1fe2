// observer.hpp: who looks on while this thread runs actors: a simulation, or nobody.
#pragma once

namespace duet::runtime::detail {

class Slot;
struct Node;

/// Told of every message and completion just before it is handled, on the thread that handles it.
class Observer {
 public:
  virtual void handling(const Slot& slot, const Node& node) noexcept = 0;

 protected:
  ~Observer() = default;
};

}   // namespace duet::runtime::detail
