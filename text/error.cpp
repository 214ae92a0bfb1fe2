// error.cpp: names of the error codes.
#include "text/error.hpp"

namespace duet::text {

std::string_view name_of(errc code) noexcept {
  switch (code) {
    case errc::tokenizer_invalid:
      return "tokenizer_invalid";
    case errc::text_not_utf8:
      return "text_not_utf8";
    case errc::text_too_long:
      return "text_too_long";
    case errc::pattern_limit:
      return "pattern_limit";
    case errc::token_out_of_range:
      return "token_out_of_range";
    case errc::template_invalid:
      return "template_invalid";
    case errc::template_failed:
      return "template_failed";
    case errc::template_limit:
      return "template_limit";
    case errc::template_raised:
      return "template_raised";
    case errc::parameter_invalid:
      return "parameter_invalid";
    case errc::logits_not_finite:
      return "logits_not_finite";
  }
  return "unknown";
}

}   // namespace duet::text
