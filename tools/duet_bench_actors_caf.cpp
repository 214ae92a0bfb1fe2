// duet_bench_actors_caf.cpp: the workloads of duet-bench actors with CAF's typed actors, the peer.
// Written as CAF's manual shows it: function-based statically typed actors with a state, replies by
// the value a handler returns, all options but the number of threads at their defaults.
#include "tools/duet_bench_actors_idle.hpp"
#include "tools/duet_bench_actors_load.hpp"

#if DUET_BENCH_CAF

#include <caf/all.hpp>
#include <caf/meta/type_name.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace duet::tools::caf_bench {

// The same payloads of 16 bytes.

template <int tag>
struct Payload {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};
template <typename Inspector, int tag>
typename Inspector::result_type inspect(Inspector& f, Payload<tag>& value) {
  return f(caf::meta::type_name("payload"), value.first, value.second);
}

using Start = Payload<0>;
using Ping = Payload<1>;
using Pong = Payload<2>;
using Add = Payload<3>;
using GetTotal = Payload<4>;
using Total = Payload<5>;
using Token = Payload<6>;
using Task = Payload<7>;
using TaskDone = Payload<8>;
using Question = Payload<9>;
using Answer = Payload<10>;

void must(bool held, const char* what) {
  if (held) return;
  std::cerr << "duet-bench: CAF: " << what << '\n';
  std::abort();
}

class Config final : public caf::actor_system_config {
 public:
  explicit Config(std::uint32_t threads) {
    add_message_type<Start>("start");
    add_message_type<Ping>("ping");
    add_message_type<Pong>("pong");
    add_message_type<Add>("add");
    add_message_type<GetTotal>("get_total");
    add_message_type<Total>("total");
    add_message_type<Token>("token");
    add_message_type<Task>("task");
    add_message_type<TaskDone>("task_done");
    add_message_type<Question>("question");
    add_message_type<Answer>("answer");
    set("scheduler.max-threads", std::size_t{threads});
  }
};

struct Host {
  explicit Host(std::uint32_t threads) : config(threads), system(config) {
    must(system.scheduler().num_workers() == threads, "the number of threads was not taken");
  }
  Config config;
  caf::actor_system system;
  Finish finish;
};

/// `first` gets what a run begins with, a share of its units each; `all` are asked to end.
template <typename Actor>
class Started final : public Running {
 public:
  Started(std::unique_ptr<Host> host, std::vector<Actor> first, std::vector<Actor> all)
      : host_(std::move(host)), first_(std::move(first)), all_(std::move(all)) {}
  ~Started() override {
    for (const Actor& actor : all_) {
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    }
    first_.clear();
    all_.clear();
  }
  void run(std::uint64_t units) override {
    host_->finish.expect(static_cast<std::uint32_t>(first_.size()));
    for (const Actor& actor : first_) caf::anon_send(actor, Start{units / first_.size(), 0});
    host_->finish.await();
  }

 private:
  std::unique_ptr<Host> host_;   // ends last: it waits for all actors
  std::vector<Actor> first_;
  std::vector<Actor> all_;
};

template <typename Actor>
std::unique_ptr<Running> started(std::unique_ptr<Host> host, std::vector<Actor> first,
                                 std::vector<Actor> all) {
  return std::make_unique<Started<Actor>>(std::move(host), std::move(first), std::move(all));
}

// States have a constructor: CAF would take an aggregate for one that is made from its actor.

// Ping-pong.

using Ponger = caf::typed_actor<caf::replies_to<Ping>::with<Pong>>;
using Pinger = caf::typed_actor<caf::reacts_to<Start>, caf::reacts_to<Pong>>;

Ponger::behavior_type ponger() {
  return {[](const Ping& ping) { return Pong{ping.first, ping.second}; }};
}

struct PingerState {
  PingerState() = default;
  Ponger partner;
  std::uint64_t left = 0;
};

Pinger::behavior_type pinger(Pinger::stateful_pointer<PingerState> self, Finish* finish) {
  self->state.partner = self->spawn(ponger);
  return {[self](const Start& start) {
            self->state.left = start.first / 2;
            self->send(self->state.partner, Ping{0, self->state.left});
          },
          [self, finish](const Pong& pong) {
            if (--self->state.left == 0) return finish->done();
            self->send(self->state.partner, Ping{pong.first, self->state.left});
          }};
}

std::unique_ptr<Running> ping_pong(std::unique_ptr<Host> host, std::uint32_t pairs) {
  std::vector<Pinger> pingers;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    pingers.push_back(host->system.spawn(pinger, &host->finish));
  }
  return started(std::move(host), pingers, pingers);
}

// Counting.

using Counter = caf::typed_actor<caf::reacts_to<Add>, caf::replies_to<GetTotal>::with<Total>>;
using Producer = caf::typed_actor<caf::reacts_to<Start>, caf::reacts_to<Total>>;

struct CounterState {
  CounterState() = default;
  std::uint64_t total = 0;
};

Counter::behavior_type counter(Counter::stateful_pointer<CounterState> self) {
  return {[self](const Add& add) { self->state.total += add.first; },
          [self](const GetTotal& get) {
            return Total{self->state.total, get.second};
          }};
}

struct ProducerState {
  ProducerState() = default;
  Counter partner;
  std::uint64_t windows_left = 0;
  std::uint64_t expected = 0;
};

using ProducerPointer = Producer::stateful_pointer<ProducerState>;

void send_window(ProducerPointer self) {
  for (std::uint64_t i = 0; i < counting_window; ++i) self->send(self->state.partner, Add{1, i});
  self->send(self->state.partner, GetTotal{0, self->state.windows_left});
}

Producer::behavior_type producer(ProducerPointer self, Finish* finish) {
  self->state.partner = self->spawn(counter);
  return {[self](const Start& start) {
            self->state.windows_left = start.first / counting_window;
            self->state.expected += self->state.windows_left * counting_window;
            send_window(self);
          },
          [self, finish](const Total& total) {
            if (--self->state.windows_left > 0) return send_window(self);
            must(total.first == self->state.expected, "messages were lost");
            finish->done();
          }};
}

std::unique_ptr<Running> counting(std::unique_ptr<Host> host) {
  std::vector<Producer> producers{host->system.spawn(producer, &host->finish)};
  return started(std::move(host), producers, producers);
}

// Ring.

using RingNode = caf::typed_actor<caf::reacts_to<caf::strong_actor_ptr>, caf::reacts_to<Start>,
                                  caf::reacts_to<Token>>;

struct RingState {
  RingState() = default;
  RingNode next;
};

RingNode::behavior_type ring_node(RingNode::stateful_pointer<RingState> self, Finish* finish) {
  return {[self](const caf::strong_actor_ptr& next) {
            self->state.next = caf::actor_cast<RingNode>(next);
          },
          [self](const Start& start) {
            self->send(self->state.next, Token{start.first, 0});
          },
          [self, finish](const Token& token) {
            if (token.first <= 1) return finish->done();
            self->send(self->state.next, Token{token.first - 1, token.second + 1});
          }};
}

std::unique_ptr<Running> ring(std::unique_ptr<Host> host) {
  std::vector<RingNode> nodes;
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    nodes.push_back(host->system.spawn(ring_node, &host->finish));
  }
  for (std::uint32_t i = 0; i < ring_actors; ++i) {
    caf::anon_send(nodes[i], caf::actor_cast<caf::strong_actor_ptr>(nodes[(i + 1) % ring_actors]));
  }
  std::vector<RingNode> first{nodes[0]};
  return started(std::move(host), std::move(first), std::move(nodes));
}

// Fork and join: actors that live for one message.

using ShortLived = caf::typed_actor<caf::replies_to<Task>::with<TaskDone>>;
using Parent = caf::typed_actor<caf::reacts_to<Start>, caf::reacts_to<TaskDone>>;

ShortLived::behavior_type short_lived(ShortLived::pointer self) {
  return {[self](const Task& task) {
    self->quit();
    return TaskDone{task.first, task.second};
  }};
}

struct CreatorState {
  CreatorState() = default;
  std::uint64_t left = 0;
  std::uint64_t living = 0;
};

using CreatorPointer = Parent::stateful_pointer<CreatorState>;

void create(CreatorPointer self) {
  self->state.living = create_batch;
  for (std::uint64_t i = 0; i < create_batch; ++i) {
    self->send(self->spawn(short_lived), Task{0, i});
  }
}

Parent::behavior_type creator(CreatorPointer self, Finish* finish) {
  return {[self](const Start& start) {
            self->state.left = start.first / create_batch * create_batch;
            create(self);
          },
          [self, finish](const TaskDone&) {
            --self->state.left;
            if (--self->state.living > 0) return;
            if (self->state.left > 0) return create(self);
            finish->done();
          }};
}

std::unique_ptr<Running> fork_create(std::unique_ptr<Host> host) {
  std::vector<Parent> creators{host->system.spawn(creator, &host->finish)};
  return started(std::move(host), creators, creators);
}

// Fork and join: messages to actors that stay.

using Receiver = caf::typed_actor<caf::reacts_to<Task>>;

struct ReceiverState {
  ReceiverState() = default;
  std::uint64_t taken = 0;
};

Receiver::behavior_type receiver(Receiver::stateful_pointer<ReceiverState> self, Parent parent) {
  return {[self, parent](const Task& task) {
    if (++self->state.taken % throughput_round == 0) {
      self->send(parent, TaskDone{task.first, self->state.taken});
    }
  }};
}

struct SenderState {
  SenderState() = default;
  std::vector<Receiver> receivers;
  std::uint64_t rounds_left = 0;
  std::uint32_t busy = 0;
};

using SenderPointer = Parent::stateful_pointer<SenderState>;

void send_round(SenderPointer self) {
  self->state.busy = throughput_receivers;
  for (std::uint64_t i = 0; i < throughput_round; ++i) {
    for (const Receiver& to : self->state.receivers) self->send(to, Task{0, i});
  }
}

Parent::behavior_type sender(SenderPointer self, Finish* finish) {
  const auto parent = caf::actor_cast<Parent>(self);
  for (std::uint32_t i = 0; i < throughput_receivers; ++i) {
    self->state.receivers.push_back(self->spawn(receiver, parent));
  }
  return {[self](const Start& start) {
            self->state.rounds_left = start.first / (throughput_round * throughput_receivers);
            send_round(self);
          },
          [self, finish](const TaskDone&) {
            if (--self->state.busy > 0) return;
            if (--self->state.rounds_left > 0) return send_round(self);
            finish->done();
          }};
}

std::unique_ptr<Running> fork_throughput(std::unique_ptr<Host> host) {
  std::vector<Parent> senders{host->system.spawn(sender, &host->finish)};
  return started(std::move(host), senders, senders);
}

// All to all.

using BigNode = caf::typed_actor<caf::reacts_to<Start>, caf::replies_to<Ping>::with<Pong>,
                                 caf::reacts_to<Pong>>;
using Everybody = std::shared_ptr<std::vector<BigNode>>;

struct BigState {
  BigState() = default;
  Everybody everybody;
  std::uint64_t random = 0;
  std::uint64_t left = 0;
};

using BigPointer = BigNode::stateful_pointer<BigState>;

void ping(BigPointer self, std::uint64_t index) {
  BigState& state = self->state;
  self->send((*state.everybody)[next_random(state.random) % big_actors], Ping{index, state.left});
}

BigNode::behavior_type big_node(BigPointer self, Finish* finish, Everybody everybody,
                                std::uint64_t index) {
  self->state.everybody = std::move(everybody);
  self->state.random = index + 1;
  return {[self, index](const Start& start) {
            self->state.left = start.first / 2;
            ping(self, index);
          },
          [index](const Ping& ping) {
            return Pong{index, ping.second};
          },
          [self, finish, index](const Pong&) {
            if (--self->state.left > 0) return ping(self, index);
            finish->done();
          }};
}

std::unique_ptr<Running> big(std::unique_ptr<Host> host) {
  const auto everybody = std::make_shared<std::vector<BigNode>>();
  for (std::uint64_t i = 0; i < big_actors; ++i) {
    everybody->push_back(host->system.spawn(big_node, &host->finish, everybody, i));
  }
  return started(std::move(host), *everybody, *everybody);
}

// Ask.

using Server = caf::typed_actor<caf::replies_to<Question>::with<Answer>>;
using Asker = caf::typed_actor<caf::reacts_to<Start>>;

Server::behavior_type server() {
  return {[](const Question& question) { return Answer{question.first, question.second}; }};
}

struct AskerState {
  AskerState() = default;
  Server partner;
  std::uint64_t left = 0;
};

using AskerPointer = Asker::stateful_pointer<AskerState>;

template <typename Timeout>
void ask_once(AskerPointer self, Finish* finish, Timeout timeout) {
  self->request(self->state.partner, timeout, Question{0, self->state.left})
      .then([self, finish, timeout](const Answer& answer) {
        must(answer.second == self->state.left, "a wrong answer");
        if (--self->state.left > 0) return ask_once(self, finish, timeout);
        finish->done();
      });
}

Asker::behavior_type asker(AskerPointer self, Finish* finish, bool with_timeout) {
  self->state.partner = self->spawn(server);
  return {[self, finish, with_timeout](const Start& start) {
    self->state.left = start.first;
    if (with_timeout) {
      ask_once(self, finish, std::chrono::seconds(ask_timeout_s));
    } else {
      ask_once(self, finish, caf::infinite);
    }
  }};
}

std::unique_ptr<Running> ask(std::unique_ptr<Host> host, bool with_timeout) {
  std::vector<Asker> askers{host->system.spawn(asker, &host->finish, with_timeout)};
  return started(std::move(host), askers, askers);
}

// Idle actors.

Receiver::behavior_type idler(Receiver::pointer, Finish* finish) {
  return {[finish](const Task&) { finish->done(); }};
}

class Idle final : public IdleActors {
 public:
  explicit Idle(std::uint64_t actors) : actors_(actors) {}
  void fill() override {
    for (std::size_t done = 0; done < actors_.size(); done += idle_batch) {
      const std::size_t end = std::min<std::size_t>(actors_.size(), done + idle_batch);
      host_.finish.expect(static_cast<std::uint32_t>(end - done));
      for (std::size_t i = done; i < end; ++i) {
        actors_[i] = host_.system.spawn(idler, &host_.finish);
        caf::anon_send(actors_[i], Task{i, i});
      }
      host_.finish.await();
    }
  }

 private:
  Host host_{1};
  std::vector<Receiver> actors_;
};

std::unique_ptr<Running> run(Workload workload, std::uint32_t threads, bool with_timeout) {
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
      return ask(std::move(host), with_timeout);
  }
  return nullptr;
}

}   // namespace duet::tools::caf_bench

namespace duet::tools {

std::unique_ptr<Running> run_caf(Workload workload, std::uint32_t threads, bool with_timeout) {
  return caf_bench::run(workload, threads, with_timeout);
}

std::unique_ptr<IdleActors> idle_caf(std::uint64_t actors) {
  return std::make_unique<caf_bench::Idle>(actors);
}

const char* caf_version() noexcept {
  static const std::string version = std::to_string(CAF_MAJOR_VERSION) + "." +
                                     std::to_string(CAF_MINOR_VERSION) + "." +
                                     std::to_string(CAF_PATCH_VERSION);
  return version.c_str();
}

}   // namespace duet::tools

#else

namespace duet::tools {
std::unique_ptr<Running> run_caf(Workload, std::uint32_t, bool) {
  return nullptr;
}
std::unique_ptr<IdleActors> idle_caf(std::uint64_t) {
  return nullptr;
}
const char* caf_version() noexcept {
  return nullptr;
}
}   // namespace duet::tools

#endif
