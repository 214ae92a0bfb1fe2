// allocation_test.cpp: a warm token allocates nothing, from the device's completion to the stream.
// A program of its own, because it counts every malloc of the process.
#include "service_fixture.hpp"
#include "tests/malloc_count.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace {

using namespace duet;   // NOLINT: the whole application

/// Counts the allocations between two of its deltas.
class Counting final : public actors::OutputStream {
 public:
  Counting(std::size_t first, std::size_t last) : first_(first), last_(last) {}
  void listen(std::weak_ptr<actors::OutputListener>) noexcept override {}
  void start(std::uint32_t) noexcept override {}
  void delta(const actors::OutputDelta&) noexcept override {
    ++deltas_;
    if (deltas_ == first_) before_ = allocations;
    if (deltas_ == last_) counted_ = allocations - before_;
  }
  void choice_end(std::uint32_t, actors::FinishReason) noexcept override {}
  void end(const actors::Usage&) noexcept override { finish(); }
  void fail(const actors::ServiceError&) noexcept override { finish(); }
  bool writable() const noexcept override { return true; }

  void wait_for_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_; });
  }
  [[nodiscard]] std::size_t deltas() const { return deltas_; }
  [[nodiscard]] std::uint64_t counted() const { return counted_; }

 private:
  void finish() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  const std::size_t first_;
  const std::size_t last_;
  std::size_t deltas_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t counted_ = ~std::uint64_t{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
  const std::uint64_t before = allocations;
  const auto text = std::make_unique<int[]>(1000);
  BOOST_TEST(text[0] == 0);
  BOOST_TEST(allocations > before);
}

// B5: device, completion thread, session, worker, request, sampler, decoder.
BOOST_AUTO_TEST_CASE(a_warm_token_allocates_nothing) {
  test::ServiceFixture fixture({}, nullptr, "null");
  for (int round = 0; round < 2; ++round) {   // the first one warms up
    auto request = test::chat("model-b", "Tell me a story.", "r" + std::to_string(round));
    request.tokens_max = 3000;
    auto stream = std::make_shared<Counting>(500, 2000);
    fixture.service().submit(std::move(request), stream);
    stream->wait_for_end();
    BOOST_TEST(stream->deltas() >= 2000U);
    if (round > 0) BOOST_TEST(stream->counted() == 0U);
  }
  BOOST_TEST(fixture.shut_down());
}

BOOST_AUTO_TEST_SUITE_END()
