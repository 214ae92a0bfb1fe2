// manifest.cpp: lookups by exact name.
#include "device/package/manifest.hpp"

#include <algorithm>

namespace duet::device {
namespace {

template <typename T>
const T* find_named(const std::vector<T>& list, const std::string& name) {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const T& item) { return item.name == name; });
  return found == list.end() ? nullptr : &*found;
}

}   // namespace

const Model* find_model(const Manifest& manifest, const std::string& name) {
  return find_named(manifest.models, name);
}

const Graph* find_graph(const Manifest& manifest, const std::string& name) {
  return find_named(manifest.graphs, name);
}

const Section* find_section(const Manifest& manifest, const std::string& name) {
  return find_named(manifest.sections, name);
}

}   // namespace duet::device
