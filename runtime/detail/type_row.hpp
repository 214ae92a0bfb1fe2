// type_row.hpp: which row of a system's table of message types is a type's.
#pragma once

#include <cstdint>
#include <string_view>

namespace duet::runtime::detail {

/// A number for a name, the same for every system of the process; equal names share one. They are
/// given once, before main() or when a library is loaded, and never taken back.
class TypeRow {
 public:
  /// A program has some dozens of message types; those beyond share the first row, "other".
  static constexpr std::uint32_t rows_max = 256;

  /// `name` lives as long as the program.
  explicit TypeRow(const char* name) noexcept;
  TypeRow(const TypeRow&) = delete;
  TypeRow& operator=(const TypeRow&) = delete;

  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }

  /// Rows from 0 up to count() have names.
  [[nodiscard]] static std::uint32_t count() noexcept;
  [[nodiscard]] static const char* name(std::uint32_t index) noexcept;

 private:
  std::uint32_t index_ = 0;   // zero-initialised: used too early, a type counts as "other"
};

}   // namespace duet::runtime::detail
