// description.hpp: asks an actor, on its strand, what it says about itself.
#pragma once

#include "runtime/address.hpp"
#include "runtime/properties.hpp"

#include <functional>
#include <optional>

namespace duet::runtime::detail {

using DescribedCallback = std::function<void(std::optional<Properties>)>;

/// Calls `done` once: on the actor's strand, before the messages that wait, with what it says; or
/// with nothing if it has ended, ends before, says nothing, or throws.
void describe(const Address& actor, DescribedCallback done);

/// How a behaviour says something about itself: an object in its frame.
class Describer {
 public:
  [[nodiscard]] virtual Properties say() const = 0;

 protected:
  ~Describer() = default;
};

}   // namespace duet::runtime::detail
