// duet_bench_actors_idle.cpp: many actors of ours that have handled one message and now wait.
#include "tools/duet_bench_actors_idle.hpp"

#include "tools/duet_bench_actors_host.hpp"

#include <algorithm>

namespace duet::tools {
namespace {

using namespace bench;   // NOLINT(google-build-using-namespace): the messages
using runtime::Behaviour;
using runtime::HandlerActor;
using runtime::Ref;
using runtime::Self;

class Idler final : public HandlerActor<Idler, WorkerLanguage> {
 public:
  explicit Idler(Finish& finish) : finish_(finish) {}
  void on(Task) { finish_.done(); }

 private:
  Finish& finish_;
};

Behaviour idler(Self<WorkerLanguage> self, Finish* finish) {
  for (;;) {
    co_await self.receive();
    finish->done();
  }
}

class Ours final : public IdleActors {
 public:
  Ours(std::uint64_t actors, bool coroutine) : coroutine_(coroutine), actors_(actors) {}
  void fill() override {
    for (std::size_t done = 0; done < actors_.size(); done += idle_batch) {
      const std::size_t end = std::min<std::size_t>(actors_.size(), done + idle_batch);
      host_.finish.expect(static_cast<std::uint32_t>(end - done));
      for (std::size_t i = done; i < end; ++i) {
        actors_[i] = spawn();
        must(actors_[i].send(Task{i, i}));
      }
      host_.finish.await();
    }
  }

 private:
  [[nodiscard]] Ref<WorkerLanguage> spawn() {
    if (coroutine_) return host_.system.spawn("idler", idler, &host_.finish);
    return host_.system.spawn<Idler>("idler", host_.finish);
  }
  const bool coroutine_;
  Host host_{1};
  Refs<WorkerLanguage> actors_;
};

}   // namespace

std::unique_ptr<IdleActors> idle_handlers(std::uint64_t actors) {
  return std::make_unique<Ours>(actors, false);
}
std::unique_ptr<IdleActors> idle_coroutines(std::uint64_t actors) {
  return std::make_unique<Ours>(actors, true);
}

}   // namespace duet::tools
