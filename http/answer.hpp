// answer.hpp: an answer that is still being made, as its connection sees it.
#pragma once

#include "http/request_record.hpp"

#include <cstddef>
#include <string>

namespace duet::http {

/// Told that an answer has something new. Any thread, also from inside a call of the answer.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual void answer_changed() noexcept = 0;
};

/// Called by one connection, on its strand.
class Answer {
 public:
  virtual ~Answer() = default;

  /// Moves what is to be written to the end of `out`. True: it was the last of it. After a call
  /// that gave nothing, answer_changed() tells when to call again.
  [[nodiscard]] virtual bool take(std::string& out) noexcept = 0;

  /// So many bytes of what was taken have left for the kernel.
  virtual void sent(std::size_t bytes) noexcept = 0;

  /// Nobody reads any more. At most once, and not after take() has returned true.
  virtual void reader_gone() noexcept = 0;

  /// Nothing was written for a while.
  virtual void ping() noexcept {}

  /// True once taken: the answer's length is told by the end of the connection.
  [[nodiscard]] virtual bool ends_connection() const noexcept { return false; }

  /// Fills in what the answer knows, after its end.
  virtual void describe(RequestRecord& record) const = 0;
};

}   // namespace duet::http
