// emulated_board.hpp: the emulated board as a program uses it: real packages, real kernels.
#pragma once

#include "device/emulator/threaded_board.hpp"

#include <memory>

namespace duet::device::emulator {

/// Fills in what is empty of open_package and make_executable: packages are read from directories
/// and validated once more from the first to the last rule (whose signature they bear is the
/// caller's concern), programs run on the kernels. Throws as ThreadedBoard's constructor.
[[nodiscard]] std::unique_ptr<ThreadedBoard> make_emulated_board(ThreadedBoardOptions options);

/// The OpenPackage of make_emulated_board. Errors: package_invalid, with the first finding.
[[nodiscard]] result<std::unique_ptr<PackageImage>> open_package_directory(
    const std::filesystem::path& directory);

}   // namespace duet::device::emulator
