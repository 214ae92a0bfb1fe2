// ctl_show.hpp: answers of the administration socket as text for a terminal.
#pragma once

#include <boost/json/value.hpp>

#include <string>

namespace duet::tools {

// Each takes what the socket gave (see runtime/inspect/tree.hpp and http/admin_pages.hpp) and
// returns whole lines. Throws boost::system::system_error or std::exception if it has another form.

/// A line an actor, children indented: number, name, state, since when, what it waits for, where.
[[nodiscard]] std::string show_actors(const boost::json::value& tree);

/// A line a model.
[[nodiscard]] std::string show_models(const boost::json::value& models);

/// Jobs and compute time of each chip, and the overlap.
[[nodiscard]] std::string show_trace(const boost::json::value& trace);

/// The trace in the format that Chrome's and Perfetto's viewers read: a process a chip, a thread a
/// kind of interval. Times in microseconds of chip time.
[[nodiscard]] boost::json::value chrome_trace(const boost::json::value& trace);

}   // namespace duet::tools
