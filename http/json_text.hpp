// json_text.hpp: JSON written straight into a buffer, for answers that need no tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace duet::http {

/// `utf8` is well-formed; nothing is checked.
void append_json_escaped(std::string& out, std::string_view utf8);
void append_json_string(std::string& out, std::string_view utf8);   ///< with its quotes.

/// Any bytes: what is not UTF-8 becomes U+FFFD.
void append_json_repaired(std::string& out, std::string_view bytes);

void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);   ///< shortest form; not finite: null.
void append_hex(std::string& out, std::uint64_t value);

/// At most limits::echo_bytes_max bytes of what a client sent, well-formed and cut between
/// characters.
[[nodiscard]] std::string bounded_echo(std::string_view bytes);

}   // namespace duet::http
