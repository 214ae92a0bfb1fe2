// spelling.hpp: finds the known key that somebody probably meant.
#pragma once

#include <string_view>
#include <vector>

namespace duet::config {

/// The nearest of `known` by inserted, dropped, changed and swapped letters, where letter case and
/// '-' for '_' count nothing; "" if none is near. The first of equals.
[[nodiscard]] std::string_view nearest_key(std::string_view word,
                                           const std::vector<std::string_view>& known);

}   // namespace duet::config
