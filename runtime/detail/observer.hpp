// observer.hpp: who looks on while this thread runs actors: a simulation, or nobody.
#pragma once

namespace duet::runtime::detail {

class Slot;
struct Node;

class Observer {
 public:
  /// Before each message and completion, on the thread that handles it.
  virtual void handling(const Slot& slot, const Node& node) noexcept = 0;

  /// Whether the odd thing at `place` shall happen now.
  [[nodiscard]] virtual bool buggify(const char* place) noexcept = 0;

 protected:
  ~Observer() = default;
};

}   // namespace duet::runtime::detail
