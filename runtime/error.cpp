// error.cpp: the texts of the error codes.
#include "runtime/error.hpp"

#include <string>

namespace duet::runtime {
namespace {

// Boost's base class has a protected destructor in effect only.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class Category final : public boost::system::error_category {
 public:
  constexpr Category() noexcept : error_category(0x6475657472756e31ULL) {}
  [[nodiscard]] const char* name() const noexcept override { return "duet.runtime"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<errc>(value)) {
      case errc::overloaded:
        return "a bound was reached";
      case errc::receiver_gone:
        return "the receiver is gone";
      case errc::timed_out:
        return "the deadline passed";
      case errc::cancelled:
        return "the wait was cancelled";
    }
    return "unknown error " + std::to_string(value);
  }
};

#pragma GCC diagnostic pop

constexpr Category category;

}   // namespace

const boost::system::error_category& error_category() noexcept {
  return category;
}

}   // namespace duet::runtime
