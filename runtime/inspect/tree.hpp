// tree.hpp: a system's snapshot as JSON.
#pragma once

#include "runtime/properties.hpp"
#include "runtime/snapshot.hpp"

#include <boost/json/value.hpp>

#include <vector>

namespace duet::runtime::inspect {

/// One actor, without its children. Times are seconds of the system's monotonic clock; `for` is how
/// long the actor has been in its state.
[[nodiscard]] boost::json::value actor_json(const ActorSnapshot& actor, TimePoint now);

/// {"name", "now", "counters": {...}, "types": {...}, "actors": [...]}, each actor with its
/// "children". An actor whose parent has ended stands at the top.
[[nodiscard]] boost::json::value tree_json(const SystemSnapshot& system);

[[nodiscard]] boost::json::value counters_json(const SystemCounters& counters);

/// One member a property.
[[nodiscard]] boost::json::value properties_json(const Properties& properties);

/// {"Generate": {"handled", "refused", "receiver_gone", "expired", "superseded"}, ...}
[[nodiscard]] boost::json::value types_json(const std::vector<TypeSnapshot>& types);

}   // namespace duet::runtime::inspect
