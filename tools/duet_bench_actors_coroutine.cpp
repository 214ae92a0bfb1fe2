// duet_bench_actors_coroutine.cpp: the workloads of duet-bench actors with coroutine behaviours.
#include "tools/duet_bench_actors_host.hpp"

#include <chrono>
#include <string>

namespace duet::tools {
namespace {

using namespace bench;   // NOLINT(google-build-using-namespace): the messages, everywhere below
using runtime::Behaviour;
using runtime::Ref;
using runtime::Self;

// Ping-pong.

Behaviour ponger(Self<PongerLanguage> self, Ref<PingerLanguage> pinger) {
  for (;;) {
    const PongerLanguage message = co_await self.receive();
    const Ping& ping = std::get<Ping>(message);
    must(pinger.send(Pong{ping.from, ping.number}));
  }
}

Behaviour pinger(Self<PingerLanguage> self, Finish* finish) {
  const Ref<PongerLanguage> partner = self.spawn("ponger", ponger, self.ref());
  std::uint64_t left = 0;
  for (;;) {
    const PingerLanguage message = co_await self.receive();
    if (const auto* const start = std::get_if<Start>(&message)) {
      left = start->units / 2;
      must(partner.send(Ping{0, left}));
    } else if (const auto* const pong = std::get_if<Pong>(&message)) {
      if (--left == 0) {
        finish->done();
      } else {
        must(partner.send(Ping{pong->from, left}));
      }
    }
  }
}

std::unique_ptr<Running> ping_pong(std::unique_ptr<Host> host, std::uint32_t pairs) {
  Refs<PingerLanguage> pingers;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    pingers.push_back(host->system.spawn("pinger", pinger, &host->finish));
  }
  return started(std::move(host), std::move(pingers));
}

// Counting.

Behaviour counter(Self<CounterLanguage> self, Ref<ProducerLanguage> producer) {
  std::uint64_t total = 0;
  for (;;) {
    const CounterLanguage message = co_await self.receive();
    if (const auto* const add = std::get_if<Add>(&message)) {
      total += add->amount;
    } else if (const auto* const get = std::get_if<GetTotal>(&message)) {
      must(producer.send(Total{total, get->number}));
    }
  }
}

void send_window(const Ref<CounterLanguage>& to, std::uint64_t number) {
  for (std::uint64_t i = 0; i < counting_window; ++i) must(to.send(Add{1, i}));
  must(to.send(GetTotal{0, number}));
}

Behaviour producer(Self<ProducerLanguage> self, Finish* finish) {
  const Ref<CounterLanguage> partner = self.spawn("counter", counter, self.ref());
  std::uint64_t windows_left = 0;
  std::uint64_t expected = 0;
  for (;;) {
    const ProducerLanguage message = co_await self.receive();
    if (const auto* const start = std::get_if<Start>(&message)) {
      windows_left = start->units / counting_window;
      expected += windows_left * counting_window;
      send_window(partner, windows_left);
    } else if (const auto* const total = std::get_if<Total>(&message)) {
      if (--windows_left > 0) {
        send_window(partner, windows_left);
      } else {
        DUET_ASSERT(total->total == expected, total->total, expected);
        finish->done();
      }
    }
  }
}

std::unique_ptr<Running> counting(std::unique_ptr<Host> host) {
  Refs<ProducerLanguage> producers{host->system.spawn("producer", producer, &host->finish)};
  return started(std::move(host), std::move(producers));
}

// Ring.

Behaviour ring_node(Self<RingLanguage> self, Finish* finish) {
  Ref<RingLanguage> next;
  for (;;) {
    const RingLanguage message = co_await self.receive();
    if (const auto* const token = std::get_if<Token>(&message)) {
      if (token->left <= 1) {
        finish->done();
      } else {
        must(next.send(Token{token->left - 1, token->number + 1}));
      }
    } else if (const auto* const meet = std::get_if<Meet>(&message)) {
      next = Ref<RingLanguage>(meet->next);
    } else if (const auto* const start = std::get_if<Start>(&message)) {
      must(next.send(Token{start->units, 0}));
    }
  }
}

std::unique_ptr<Running> ring(std::unique_ptr<Host> host) {
  Refs<RingLanguage> nodes;
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    nodes.push_back(host->system.spawn("node", ring_node, &host->finish));
  }
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    must(nodes[i].send(Meet{nodes[(i + 1) % ring_actors].address()}));
  }
  nodes.resize(1);
  return started(std::move(host), std::move(nodes));
}

// Fork and join: actors that live for one message.

Behaviour short_lived(Self<WorkerLanguage> self, Ref<ParentLanguage> parent) {
  const WorkerLanguage message = co_await self.receive();
  const Task& task = std::get<Task>(message);
  must(parent.send(TaskDone{task.from, task.number}));
}

void create(const Self<ParentLanguage>& self) {
  for (std::uint64_t i = 0; i < create_batch; ++i) {
    must(self.spawn("child", short_lived, self.ref()).send(Task{0, i}));
  }
}

Behaviour creator(Self<ParentLanguage> self, Finish* finish) {
  std::uint64_t left = 0;
  std::uint64_t living = 0;
  for (;;) {
    const ParentLanguage message = co_await self.receive();
    if (const auto* const start = std::get_if<Start>(&message)) {
      left = start->units / create_batch * create_batch;
    } else {
      --left;
      if (--living > 0) continue;
    }
    if (left > 0) {
      living = create_batch;
      create(self);
    } else {
      finish->done();
    }
  }
}

std::unique_ptr<Running> fork_create(std::unique_ptr<Host> host) {
  Refs<ParentLanguage> creators{host->system.spawn("creator", creator, &host->finish)};
  return started(std::move(host), std::move(creators));
}

// Fork and join: messages to actors that stay.

Behaviour receiver(Self<WorkerLanguage> self, Ref<ParentLanguage> parent) {
  std::uint64_t taken = 0;
  for (;;) {
    const WorkerLanguage message = co_await self.receive();
    const Task& task = std::get<Task>(message);
    if (++taken % throughput_round == 0) must(parent.send(TaskDone{task.from, taken}));
  }
}

void send_round(const Refs<WorkerLanguage>& receivers) {
  for (std::uint64_t i = 0; i < throughput_round; ++i) {
    for (const auto& to : receivers) must(to.send(Task{0, i}));
  }
}

Behaviour sender(Self<ParentLanguage> self, Finish* finish) {
  Refs<WorkerLanguage> receivers;
  for (std::uint32_t i = 0; i < throughput_receivers; ++i) {
    receivers.push_back(self.spawn("receiver", receiver, self.ref()));
  }
  std::uint64_t rounds_left = 0;
  std::uint32_t busy = 0;
  for (;;) {
    const ParentLanguage message = co_await self.receive();
    if (const auto* const start = std::get_if<Start>(&message)) {
      rounds_left = start->units / (throughput_round * throughput_receivers);
    } else {
      if (--busy > 0) continue;
      --rounds_left;
    }
    if (rounds_left > 0) {
      busy = throughput_receivers;
      send_round(receivers);
    } else {
      finish->done();
    }
  }
}

std::unique_ptr<Running> fork_throughput(std::unique_ptr<Host> host) {
  Refs<ParentLanguage> senders{host->system.spawn("sender", sender, &host->finish)};
  return started(std::move(host), std::move(senders));
}

// All to all.

Behaviour big_node(Self<BigLanguage> self, Finish* finish, Everybody everybody,
                   std::uint64_t index) {
  std::uint64_t random = index + 1;
  std::uint64_t left = 0;
  for (;;) {
    const BigLanguage message = co_await self.receive();
    if (const auto* const ping = std::get_if<Ping>(&message)) {
      must((*everybody)[ping->from].send(Pong{index, ping->number}));
      continue;
    }
    if (const auto* const start = std::get_if<Start>(&message)) {
      left = start->units / 2;
    } else {
      --left;
    }
    if (left > 0) {
      must((*everybody)[next_random(random) % big_actors].send(Ping{index, left}));
    } else {
      finish->done();
    }
  }
}

std::unique_ptr<Running> big(std::unique_ptr<Host> host) {
  const auto everybody = std::make_shared<Refs<BigLanguage>>();
  for (std::uint64_t i = 0; i < big_actors; ++i) {
    everybody->push_back(host->system.spawn("node", big_node, &host->finish, everybody, i));
  }
  Refs<BigLanguage> nodes = *everybody;
  return started(std::move(host), std::move(nodes));
}

// Ask.

Behaviour server(Self<ServerLanguage> self) {
  for (;;) {
    ServerLanguage message = co_await self.receive();
    auto& question = std::get<Question>(message);
    question.reply(Answer{question.from, question.number});
  }
}

Behaviour asker(Self<AskerLanguage> self, Finish* finish) {
  const Ref<ServerLanguage> partner = self.spawn("server", server);
  for (;;) {
    const AskerLanguage message = co_await self.receive();
    for (std::uint64_t left = std::get<Start>(message).units; left > 0; --left) {
      Question question(0, left);
      const auto answer =
          co_await self.ask(partner, std::move(question), std::chrono::seconds(ask_timeout_s));
      DUET_ASSERT(answer.has_value() && answer->number == left);
    }
    finish->done();
  }
}

std::unique_ptr<Running> ask(std::unique_ptr<Host> host) {
  Refs<AskerLanguage> askers{host->system.spawn("asker", asker, &host->finish)};
  return started(std::move(host), std::move(askers));
}

}   // namespace

std::unique_ptr<Running> run_coroutines(Workload workload, std::uint32_t threads) {
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
