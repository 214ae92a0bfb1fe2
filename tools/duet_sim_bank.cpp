// duet_sim_bank.cpp: accounts that move tokens and crash.
#include "tools/duet_sim_bank.hpp"

#include "runtime/blocking.hpp"
#include "runtime/buggify.hpp"
#include "runtime/system.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <stdexcept>

namespace duet::tools {

using namespace std::chrono_literals;   // NOLINT(google-build-using-namespace): 5s reads well
using runtime::Behaviour;
using runtime::Duration;
using runtime::Reply;
using runtime::Self;

namespace {

constexpr Duration write_patience = 200ms;
constexpr std::uint32_t write_tries_max = 10;   // then it rather starts again
constexpr Duration credit_patience = 300ms;
constexpr Duration credit_pause = 100ms;
constexpr std::uint32_t credit_tries_max = 300;   // ten times what the chaos of a run can cost
constexpr Duration transfer_patience = 500ms;
constexpr Duration transfer_pause_max = 400ms;
constexpr std::uint32_t transfer_tries_max = 300;   // likewise
constexpr Duration respawn_pause_max = 200ms;
constexpr std::uint32_t restarts_max = 100'000;   // chaos is no reason to give up

}   // namespace

Account::Account(Bank& bank, AccountId id) : bank_(bank), id_(id), image_(bank.disk.read(id)) {}

Account::~Account() {
  if (lane_ != nullptr) lane_->abandon();   // a lost write would never come back
}

void Account::started() {
  open_disk();
  for (const auto& [id, debit] : image_.debits) {
    if (!debit.settled) send_credit(id);
  }
}

void Account::open_disk() {
  if (lane_ != nullptr) lane_->abandon();
  generation_ = bank_.disk.open(id_);
  lane_ = core().completions().open_lane("disk" + std::to_string(id_), 1);
}

void Account::on(Transfer transfer) {
  if (runtime::buggify("bank.busy")) return transfer.reply(TransferAnswer::busy);
  const auto known = image_.debits.find(transfer.id);
  if (known == image_.debits.end()) {
    if (transfer.amount > image_.balance) return transfer.reply(TransferAnswer::refused);
    image_.balance -= transfer.amount;
    image_.debits[transfer.id] = AccountImage::Debit{transfer.to, transfer.amount, false};
    waiting_[transfer.id] = std::move(transfer.reply);
    changed(Effect::Kind::debited, transfer.id);
  } else if (known->second.settled) {
    // Perhaps not on disk yet; but the debit is, and the receiver has its tokens.
    transfer.reply(TransferAnswer::done);
  } else {
    waiting_[transfer.id] = std::move(transfer.reply);
  }
}

void Account::on(Credit credit) {
  if (!image_.credits.contains(credit.id) || bank_.applies_twice) {
    image_.balance += credit.amount;
    image_.credits.insert(credit.id);
    changed(Effect::Kind::credited, credit.id, std::move(credit.reply));
  } else if (on_disk_ == version_) {
    credit.reply(true);
  } else {   // with the version that is being written, at the latest
    effects_.push_back(
        Effect{Effect::Kind::credited, version_, credit.id, std::move(credit.reply)});
  }
}

void Account::on(ReadBalance read) {
  read.reply(image_.balance);
}

void Account::on(Crash) {
  throw std::runtime_error("chaos");
}

void Account::changed(Effect::Kind kind, TransferId id, Reply<bool> credited) {
  ++version_;
  effects_.push_back(Effect{kind, version_, id, std::move(credited)});
  if (writing_ == 0) write();
}

void Account::write() {
  writing_ = version_;
  const auto image = std::make_shared<const AccountImage>(image_);
  const Written written{generation_, writing_};
  const auto function = [&disk = bank_.disk, id = id_, image, written] {
    disk.write(id, written.generation, *image);
    return written;
  };
  const auto unmade = [] { return Written{}; };   // of no generation
  if (!runtime::call_blocking(*lane_, self(), function, unmade)) {
    throw std::logic_error("the lane was not free");
  }
  send_after(write_patience, WriteLate{generation_, writing_});
}

void Account::on(Written written) {
  if (written.generation != generation_ || written.version != writing_) return;

  write_tries_ = 0;
  on_disk_ = std::exchange(writing_, 0);
  std::deque<Effect> effects;
  while (!effects_.empty() && effects_.front().version <= on_disk_) {
    effects.push_back(std::move(effects_.front()));
    effects_.pop_front();
  }

  for (Effect& effect : effects) {
    switch (effect.kind) {
      case Effect::Kind::debited:
        send_credit(effect.id);
        break;
      case Effect::Kind::credited:
        // Not told at all: the sender asks again.
        if (!runtime::buggify("bank.silent_credit")) effect.credited(true);
        break;
      case Effect::Kind::settled:
        settled(effect.id);
        break;
    }
  }
  if (version_ > on_disk_ && writing_ == 0) write();
}

void Account::on(WriteLate late) {
  if (late.generation != generation_ || late.version != writing_) return;
  if (++write_tries_ > write_tries_max) throw std::runtime_error("the disk does not answer");
  ++bank_.writes_given_up;
  open_disk();
  write();
}

void Account::send_credit(TransferId id) {
  const AccountImage::Debit& debit = image_.debits.at(id);
  Duration patience = credit_patience;
  if (runtime::buggify("bank.hasty_credit")) patience = 1ms;
  ask(bank_.accounts[debit.to].ref(), Credit(id, debit.amount), patience,
      [this, id](const runtime::AskResult<bool>& result) {
        AccountImage::Debit& asked = image_.debits.at(id);
        if (asked.settled) return;
        if (result.has_value()) {
          asked.settled = true;
          changed(Effect::Kind::settled, id);
        } else if (++credit_tries_[id] < credit_tries_max) {
          send_after(credit_pause, RetryCredit{id});
        }
      });
}

void Account::on(RetryCredit retry) {
  if (!image_.debits.at(retry.id).settled) send_credit(retry.id);
}

void Account::settled(TransferId id) {
  const auto teller = waiting_.find(id);
  if (teller == waiting_.end()) return;   // it asked before our last crash, and will ask again
  teller->second(TransferAnswer::done);
  waiting_.erase(teller);
}

void spawn_accounts(const runtime::System& system, Bank& bank, runtime::Strategy strategy) {
  runtime::SupervisorOptions options;
  options.strategy = strategy;
  options.limit.restarts_max = restarts_max;
  options.backoff.first = respawn_pause_max / 8;
  options.backoff.longest = respawn_pause_max;
  options.on_event = [&bank](const runtime::SupervisorEvent& event) {
    if (event.kind == runtime::SupervisorEvent::Kind::restarting) ++bank.restarts;
  };
  runtime::Children children;
  bank.accounts.clear();
  for (AccountId id = 0; id < bank.disk.size(); ++id) {
    bank.accounts.push_back(
        children.add<Account>("account-" + std::to_string(id), std::ref(bank), id));
  }
  system.spawn<runtime::Supervisor>("accounts", options, children);
}

namespace {

Duration up_to(runtime::Random& random, Duration max) {
  return Duration(random.below(static_cast<std::uint64_t>(max.count())));
}

/// Tries until there is an answer. False: it gave up.
runtime::Async<bool> carry_out(Self<VisitorMessage> self, Bank* bank, Order* order) {
  for (std::uint32_t i = 0; i < transfer_tries_max; ++i) {
    Transfer transfer(order->id, order->to, order->amount);
    const auto answer = co_await self.ask(bank->accounts[order->from].ref(), std::move(transfer),
                                          transfer_patience);
    if (answer.has_value() && *answer != TransferAnswer::busy) {
      order->answered = true;
      order->answer = *answer;
      co_return true;
    }
    co_await self.sleep(up_to(self.random(), transfer_pause_max));
  }
  co_return false;
}

}   // namespace

Behaviour teller(Self<VisitorMessage> self, Bank* bank, std::size_t number) {
  for (Order& order : bank->orders[number]) {
    if (order.answered) continue;
    co_await self.sleep(up_to(self.random(), 300ms));
    const auto check = [id = order.id] { return id * 31 % 97; };   // work for a compute thread
    const auto checked = co_await self.offload(check);
    if (!checked.has_value() || *checked != order.id * 31 % 97) {
      bank->violation = "a computation of teller " + std::to_string(number) + " went wrong";
    }
    const bool answered = co_await carry_out(self, bank, &order);
    if (!answered && bank->violation.empty()) {
      bank->violation = "settlement: transfer " + std::to_string(order.id) + " was never answered";
    }
  }
}

Behaviour auditor(Self<VisitorMessage> self, Bank* bank) {
  while (bank->chaos) {
    co_await self.sleep(up_to(self.random(), 2s));
    ReadBalance read;
    const auto who = static_cast<std::size_t>(self.random().below(bank->accounts.size()));
    const auto balance = co_await self.ask(bank->accounts[who].ref(), std::move(read), 20ms);
    if (balance.has_value() && *balance < 0) {
      bank->violation = "conservation: account " + std::to_string(who) + " is overdrawn";
    }
  }
}

Behaviour chaos(Self<VisitorMessage> self, Bank* bank) {
  while (bank->chaos) {
    co_await self.sleep(up_to(self.random(), 2 * bank->chaos_every));
    if (!bank->chaos) co_return;
    const auto who = static_cast<std::size_t>(self.random().below(bank->accounts.size()));
    if (self.random().below(2) == 0) {
      self.stop(bank->accounts[who].ref());
    } else {
      static_cast<void>(bank->accounts[who].send(Crash{}));
    }
  }
}

}   // namespace duet::tools
