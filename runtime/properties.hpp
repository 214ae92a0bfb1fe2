// properties.hpp: what an actor says about itself when somebody looks.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace duet::runtime {

/// A whole value that names no object of the actor, so that it can be kept.
struct Property {
  std::string name;
  std::variant<bool, std::int64_t, double, std::string> value;
};

/// In the order in which people should read them; a dozen at most.
using Properties = std::vector<Property>;

}   // namespace duet::runtime
