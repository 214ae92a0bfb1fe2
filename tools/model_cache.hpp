// model_cache.hpp: packages made of model files on the way, kept for the next start.
#pragma once

#include "device/package/finding.hpp"
#include "device/package/packer.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace duet::tools {

struct CachedPackage {
  std::string directory;    ///< of a validated package.
  std::string public_key;   ///< file of the key it is signed with: the cache's own.
  bool packed = false;      ///< now; false: it was there.
};

/// $XDG_CACHE_HOME/duet, else $HOME/.cache/duet, else "" (then the user has to name one).
[[nodiscard]] std::string default_model_cache();

/// A package of one or two models, in order on chip 0 and 1, from `models` = (alias, GGUF file).
/// What it is called depends on the files' bytes, the aliases and the format, so that a changed
/// file is packed anew. Packages of another packer are left alone. Blocking: hashes the files, and
/// packs if it must (goldens are computed by the F32 reference). Two processes at once are fine.
[[nodiscard]] device::Result<CachedPackage> package_from_models(
    const std::string& cache, const std::vector<std::pair<std::string, std::string>>& models,
    const std::function<void(const device::PackProgress&)>& progress);

}   // namespace duet::tools
