// ctl_budget.hpp: a running server's memory beside the budget of the package that it serves
//
#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <string>

namespace duet::tools {

// Both take what GET /memory gave (http/admin_pages.hpp, memory_json). They throw
// boost::system::system_error or std::exception if it has another form.

/// Adds to each pair of planned and measured "difference" (measured less planned, null where
/// nothing was measured) and "marked": the difference is more than `bound_percent` of the plan, or
/// what was in use at a time is more than the plan has. Adds "bound_percent" and "marked" (how many
/// there are) to the whole, and returns the latter.
std::uint64_t mark_budget(boost::json::value& memory, unsigned bound_percent);

/// A table a chip, and a line about the host; of a value that mark_budget() has seen.
[[nodiscard]] std::string show_budget(const boost::json::value& memory);

}   // namespace duet::tools
