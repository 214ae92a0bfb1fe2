// small_file.hpp: reads a whole file of bounded size; inside config/ alone.
#pragma once

#include "device/program/message.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace duet::config::detail {

struct SmallFile {
  std::string text;
  std::uint32_t permissions = 0;   ///< the lowest nine bits of its mode.
};

/// The error is one sentence without the path. Only regular files: a pipe could block or never end.
[[nodiscard]] device::Result<SmallFile> read_small_file(const std::string& path,
                                                        std::size_t bytes_max);

}   // namespace duet::config::detail
