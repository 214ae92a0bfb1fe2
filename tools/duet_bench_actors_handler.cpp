// duet_bench_actors_handler.cpp: the workloads of duet-bench actors with handler actors.
#include "tools/duet_bench_actors_host.hpp"

#include <chrono>
#include <string>

namespace duet::tools {
namespace {

using namespace bench;   // NOLINT(google-build-using-namespace): the messages, everywhere below
using runtime::HandlerActor;
using runtime::Ref;

// Ping-pong.

class Ponger final : public HandlerActor<Ponger, PongerLanguage> {
 public:
  explicit Ponger(const Ref<PingerLanguage>& pinger) : pinger_(pinger) {}
  void on(Ping ping) { must(pinger_.send(Pong{ping.from, ping.number})); }

 private:
  const Ref<PingerLanguage> pinger_;
};

class Pinger final : public HandlerActor<Pinger, PingerLanguage> {
 public:
  explicit Pinger(Finish& finish) : finish_(finish) {}
  void started() { ponger_ = spawn_child<Ponger>("ponger", self()); }
  void on(Start start) {
    left_ = start.units / 2;
    must(ponger_.send(Ping{0, left_}));
  }
  void on(Pong pong) {
    if (--left_ == 0) return finish_.done();
    must(ponger_.send(Ping{pong.from, left_}));
  }

 private:
  Finish& finish_;
  Ref<PongerLanguage> ponger_;
  std::uint64_t left_ = 0;
};

std::unique_ptr<Running> ping_pong(std::unique_ptr<Host> host, std::uint32_t pairs) {
  Refs<PingerLanguage> pingers;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    pingers.push_back(host->system.spawn<Pinger>("pinger", host->finish));
  }
  return started(std::move(host), std::move(pingers));
}

// Counting.

class Counter final : public HandlerActor<Counter, CounterLanguage> {
 public:
  explicit Counter(const Ref<ProducerLanguage>& producer) : producer_(producer) {}
  void on(Add add) { total_ += add.amount; }
  void on(GetTotal get) { must(producer_.send(Total{total_, get.number})); }

 private:
  const Ref<ProducerLanguage> producer_;
  std::uint64_t total_ = 0;
};

class Producer final : public HandlerActor<Producer, ProducerLanguage> {
 public:
  explicit Producer(Finish& finish) : finish_(finish) {}
  void started() { counter_ = spawn_child<Counter>("counter", self()); }
  void on(Start start) {
    windows_left_ = start.units / counting_window;
    expected_ += windows_left_ * counting_window;
    send_window();
  }
  void on(Total total) {
    if (--windows_left_ > 0) return send_window();
    DUET_ASSERT(total.total == expected_, total.total, expected_);
    finish_.done();
  }

 private:
  void send_window() {
    for (std::uint64_t i = 0; i < counting_window; ++i) must(counter_.send(Add{1, i}));
    must(counter_.send(GetTotal{0, windows_left_}));
  }
  Finish& finish_;
  Ref<CounterLanguage> counter_;
  std::uint64_t windows_left_ = 0;
  std::uint64_t expected_ = 0;
};

std::unique_ptr<Running> counting(std::unique_ptr<Host> host) {
  Refs<ProducerLanguage> producers{host->system.spawn<Producer>("producer", host->finish)};
  return started(std::move(host), std::move(producers));
}

// Ring.

class RingNode final : public HandlerActor<RingNode, RingLanguage> {
 public:
  explicit RingNode(Finish& finish) : finish_(finish) {}
  void on(Meet meet) { next_ = Ref<RingLanguage>(meet.next); }
  void on(Start start) { must(next_.send(Token{start.units, 0})); }
  void on(Token token) {
    if (token.left <= 1) return finish_.done();
    must(next_.send(Token{token.left - 1, token.number + 1}));
  }

 private:
  Finish& finish_;
  Ref<RingLanguage> next_;
};

std::unique_ptr<Running> ring(std::unique_ptr<Host> host) {
  Refs<RingLanguage> nodes;
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    nodes.push_back(host->system.spawn<RingNode>("node", host->finish));
  }
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    must(nodes[i].send(Meet{nodes[(i + 1) % ring_actors].address()}));
  }
  nodes.resize(1);
  return started(std::move(host), std::move(nodes));
}

// Fork and join: actors that live for one message.

class ShortLived final : public HandlerActor<ShortLived, WorkerLanguage> {
 public:
  explicit ShortLived(const Ref<ParentLanguage>& parent) : parent_(parent) {}
  void on(Task task) {
    must(parent_.send(TaskDone{task.from, task.number}));
    finish();
  }

 private:
  const Ref<ParentLanguage> parent_;
};

class Creator final : public HandlerActor<Creator, ParentLanguage> {
 public:
  explicit Creator(Finish& finish) : finish_(finish) {}
  void on(Start start) {
    left_ = start.units / create_batch * create_batch;
    create();
  }
  void on(TaskDone) {
    --left_;
    if (--living_ > 0) return;
    if (left_ > 0) return create();
    finish_.done();
  }

 private:
  void create() {
    living_ = create_batch;
    for (std::uint64_t i = 0; i < create_batch; ++i) {
      must(spawn_child<ShortLived>("child", self()).send(Task{0, i}));
    }
  }
  Finish& finish_;
  std::uint64_t left_ = 0;
  std::uint64_t living_ = 0;
};

std::unique_ptr<Running> fork_create(std::unique_ptr<Host> host) {
  Refs<ParentLanguage> creators{host->system.spawn<Creator>("creator", host->finish)};
  return started(std::move(host), std::move(creators));
}

// Fork and join: messages to actors that stay.

class Receiver final : public HandlerActor<Receiver, WorkerLanguage> {
 public:
  explicit Receiver(const Ref<ParentLanguage>& parent) : parent_(parent) {}
  void on(Task task) {
    if (++taken_ % throughput_round == 0) must(parent_.send(TaskDone{task.from, taken_}));
  }

 private:
  const Ref<ParentLanguage> parent_;
  std::uint64_t taken_ = 0;
};

class Sender final : public HandlerActor<Sender, ParentLanguage> {
 public:
  explicit Sender(Finish& finish) : finish_(finish) {}
  void started() {
    for (std::uint32_t i = 0; i < throughput_receivers; ++i) {
      receivers_.push_back(spawn_child<Receiver>("receiver", self()));
    }
  }
  void on(Start start) {
    rounds_left_ = start.units / (throughput_round * throughput_receivers);
    send_round();
  }
  void on(TaskDone) {
    if (--busy_ > 0) return;
    if (--rounds_left_ > 0) return send_round();
    finish_.done();
  }

 private:
  void send_round() {
    busy_ = throughput_receivers;
    for (std::uint64_t i = 0; i < throughput_round; ++i) {
      for (const auto& receiver : receivers_) must(receiver.send(Task{0, i}));
    }
  }
  Finish& finish_;
  Refs<WorkerLanguage> receivers_;
  std::uint64_t rounds_left_ = 0;
  std::uint32_t busy_ = 0;
};

std::unique_ptr<Running> fork_throughput(std::unique_ptr<Host> host) {
  Refs<ParentLanguage> senders{host->system.spawn<Sender>("sender", host->finish)};
  return started(std::move(host), std::move(senders));
}

// All to all.

class BigNode final : public HandlerActor<BigNode, BigLanguage> {
 public:
  BigNode(Finish& finish, Everybody everybody, std::uint64_t index)
      : finish_(finish), everybody_(std::move(everybody)), index_(index), random_(index + 1) {}
  void on(Start start) {
    left_ = start.units / 2;
    ping();
  }
  void on(Ping ping) { must((*everybody_)[ping.from].send(Pong{index_, ping.number})); }
  void on(Pong) {
    if (--left_ > 0) return ping();
    finish_.done();
  }

 private:
  void ping() { must((*everybody_)[next_random(random_) % big_actors].send(Ping{index_, left_})); }
  Finish& finish_;
  const Everybody everybody_;
  const std::uint64_t index_;
  std::uint64_t random_;
  std::uint64_t left_ = 0;
};

std::unique_ptr<Running> big(std::unique_ptr<Host> host) {
  const auto everybody = std::make_shared<Refs<BigLanguage>>();
  for (std::uint64_t i = 0; i < big_actors; ++i) {
    everybody->push_back(host->system.spawn<BigNode>("node", host->finish, everybody, i));
  }
  Refs<BigLanguage> nodes = *everybody;
  return started(std::move(host), std::move(nodes));
}

// Ask.

class Server final : public HandlerActor<Server, ServerLanguage> {
 public:
  void on(Question question) { question.reply(Answer{question.from, question.number}); }
};

class Asker final : public HandlerActor<Asker, AskerLanguage> {
 public:
  explicit Asker(Finish& finish) : finish_(finish) {}
  void started() { server_ = spawn_child<Server>("server"); }
  void on(Start start) {
    left_ = start.units;
    ask_once();
  }

 private:
  void ask_once() {
    ask(server_, Question(0, left_), std::chrono::seconds(ask_timeout_s),
        [this](const runtime::AskResult<Answer>& answer) {
          DUET_ASSERT(answer.has_value() && answer->number == left_);
          if (--left_ > 0) return ask_once();
          finish_.done();
        });
  }
  Finish& finish_;
  Ref<ServerLanguage> server_;
  std::uint64_t left_ = 0;
};

std::unique_ptr<Running> ask(std::unique_ptr<Host> host) {
  Refs<AskerLanguage> askers{host->system.spawn<Asker>("asker", host->finish)};
  return started(std::move(host), std::move(askers));
}

}   // namespace

std::unique_ptr<Running> run_handlers(Workload workload, std::uint32_t threads) {
  auto host = std::make_unique<Host>(threads);
  switch (workload) {
    case Workload::ping_pong_one:
      return ping_pong(std::move(host), 1);
    case Workload::ping_pong_two:
      return ping_pong(std::move(host), 2);
    case Workload::counting:
      return counting(std::move(host));
    case Workload::ring:
      return ring(std::move(host));
    case Workload::fork_create:
      return fork_create(std::move(host));
    case Workload::fork_throughput:
      return fork_throughput(std::move(host));
    case Workload::big:
      return big(std::move(host));
    case Workload::ask:
      return ask(std::move(host));
  }
  return nullptr;
}

}   // namespace duet::tools
