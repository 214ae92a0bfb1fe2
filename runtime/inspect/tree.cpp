// tree.cpp: from the flat list of actors to the tree.
#include "runtime/inspect/tree.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <map>
#include <vector>

namespace duet::runtime::inspect {
namespace {

namespace json = boost::json;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

json::object lane_json(const LaneSnapshot& lane) {
  return {{"depth", lane.depth}, {"peak", lane.peak}};
}

json::value text_or_null(const std::string& text) {
  return text.empty() ? json::value(nullptr) : json::value(text);
}

/// Parents have lower numbers than their children, and numbers rise in the list: so going backwards
/// each actor is complete when it is moved into its parent.
json::array nest(const std::vector<ActorSnapshot>& actors, TimePoint now) {
  std::map<std::uint64_t, json::array> children;   // of a parent, last first
  json::array roots;
  std::map<std::uint64_t, bool> known;
  for (const ActorSnapshot& actor : actors) known[actor.number] = true;
  for (auto actor = actors.rbegin(); actor != actors.rend(); ++actor) {
    json::object object = actor_json(*actor, now).as_object();
    json::array own = std::move(children[actor->number]);
    object["children"] = json::array(own.rbegin(), own.rend());
    json::array& to = known.contains(actor->parent) ? children[actor->parent] : roots;
    to.push_back(std::move(object));
  }
  return json::array(roots.rbegin(), roots.rend());
}

}   // namespace

json::value actor_json(const ActorSnapshot& actor, TimePoint now) {
  json::object object;
  object["number"] = actor.number;
  object["name"] = actor.name;
  object["state"] = to_string(actor.state);
  object["for"] = seconds(now - actor.since);
  object["message"] = text_or_null(actor.message);
  object["waits_for"] = text_or_null(actor.waits_for);
  object["waits_on"] = actor.waits_on == 0 ? json::value(nullptr) : json::value(actor.waits_on);
  object["at"] = actor.file.empty() ? json::value(nullptr)
                                    : json::value(actor.file + ":" + std::to_string(actor.line));
  object["normal"] = lane_json(actor.normal);
  object["urgent"] = lane_json(actor.urgent);
  object["sent"] = actor.sent;
  object["handled"] = actor.handled;
  return object;
}

json::value counters_json(const SystemCounters& counters) {
  json::object object;
  object["spawned"] = counters.spawned;
  object["failed"] = counters.failed;
  object["sent"] = counters.sent;
  object["delivered"] = counters.delivered;
  object["refused"] = counters.refused;
  object["receiver_gone"] = counters.receiver_gone;
  object["expired"] = counters.expired;
  object["superseded"] = counters.superseded;
  object["late_replies"] = counters.late_replies;
  return object;
}

json::value properties_json(const Properties& properties) {
  json::object object;
  for (const Property& property : properties) {
    std::visit([&](const auto& value) { object[property.name] = value; }, property.value);
  }
  return object;
}

json::value types_json(const std::vector<TypeSnapshot>& types) {
  json::object object;
  for (const TypeSnapshot& type : types) {
    object[type.name] = json::object{{"handled", type.handled},
                                     {"refused", type.refused},
                                     {"receiver_gone", type.receiver_gone},
                                     {"expired", type.expired},
                                     {"superseded", type.superseded}};
  }
  return object;
}

json::value tree_json(const SystemSnapshot& system) {
  json::object object;
  object["name"] = system.name;
  object["now"] = seconds(system.now.time_since_epoch());
  object["counters"] = counters_json(system.counters);
  object["types"] = types_json(system.types);
  object["actors"] = nest(system.actors, system.now);
  return object;
}

}   // namespace duet::runtime::inspect
