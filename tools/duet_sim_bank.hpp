// duet_sim_bank.hpp: the actors of the bank: accounts under a supervisor, tellers, an auditor,
// chaos.
#pragma once

#include "runtime/completion_source.hpp"
#include "runtime/handler_actor.hpp"
#include "runtime/self.hpp"
#include "runtime/supervisor.hpp"
#include "runtime/system.hpp"
#include "tools/duet_sim_disk.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace duet::tools {

enum class TransferAnswer : std::uint8_t {
  done,      ///< Debited and credited, both on disk.
  refused,   ///< Not enough tokens; nothing was moved.
  busy       ///< Try again.
};

/// From a teller. Class: bounded.
struct Transfer {
  Transfer(TransferId transfer, AccountId receiver, Tokens tokens) noexcept
      : id(transfer), to(receiver), amount(tokens) {}
  runtime::Reply<TransferAnswer> reply;
  TransferId id;
  AccountId to;
  Tokens amount;
};
/// From the account that was debited. Class: bounded. Answered once it is on disk.
struct Credit {
  Credit(TransferId transfer, Tokens tokens) noexcept : id(transfer), amount(tokens) {}
  runtime::Reply<bool> reply;
  TransferId id;
  Tokens amount;
};
/// From the auditor. Class: bounded.
struct ReadBalance {
  ReadBalance() noexcept {}   // NOLINT(modernize-use-equals-default): no aggregate
  runtime::Reply<Tokens> reply;
};
/// From the disk's lane. Class: guaranteed; one answers each write.
struct Written {
  std::uint64_t generation = 0;
  std::uint64_t version = 0;   // of the image
};
/// From itself, when a write should have come back. Class: guaranteed.
struct WriteLate {
  std::uint64_t generation = 0;
  std::uint64_t version = 0;
};
/// From itself: tries to credit once more. Class: guaranteed; one a debit.
struct RetryCredit {
  TransferId id = 0;
};
/// From chaos. Class: guaranteed, urgent.
struct Crash {};

using AccountMessage =
    std::variant<Transfer, Credit, ReadBalance, Written, WriteLate, RetryCredit, Crash>;

/// The language of those who only ask.
using VisitorMessage = std::variant<runtime::Stop>;

}   // namespace duet::tools

namespace duet::runtime {
template <>
inline constexpr MessageClass message_class<tools::Transfer> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::Credit> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::ReadBalance> = MessageClass::bounded;
template <>
inline constexpr MessageClass message_class<tools::Written> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::WriteLate> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::RetryCredit> = MessageClass::guaranteed;
template <>
inline constexpr MessageClass message_class<tools::Crash> = MessageClass::guaranteed;
template <>
inline constexpr Lane message_lane<tools::Crash> = Lane::urgent;
}   // namespace duet::runtime

namespace duet::tools {

/// One transfer as its teller knows it; the teller's own paper, which survives a crash.
struct Order {
  TransferId id = 0;
  AccountId from = 0;
  AccountId to = 0;
  Tokens amount = 0;
  bool answered = false;
  TransferAnswer answer = TransferAnswer::busy;
};

/// What the actors share with the one who runs them. One thread.
struct Bank {
  explicit Bank(BankDisk first) : disk(std::move(first)) {}
  BankDisk disk;
  bool applies_twice = false;   // Plant::double_delivery
  bool chaos = true;
  runtime::Duration chaos_every{};
  std::vector<std::vector<Order>> orders;   // by teller
  std::vector<runtime::ChildRef<AccountMessage>> accounts;
  std::uint64_t restarts = 0;
  std::uint64_t writes_given_up = 0;
  std::string violation;
};

/// An account in memory. A change is told to nobody before it is on disk.
///
/// Owner: a supervisor, which starts it again from the disk. Bounds: one write at a time. Waits
/// for: the disk, write_patience; the receiver of a credit, credit_patience.
class Account final : public runtime::HandlerActor<Account, AccountMessage> {
 public:
  Account(Bank& bank, AccountId id);
  ~Account() override;

  void started();
  void on(Transfer transfer);
  void on(Credit credit);
  void on(ReadBalance read);
  void on(Written written);
  void on(WriteLate late);
  void on(RetryCredit retry);
  void on(Crash);

 private:
  /// What is told once a version is on disk.
  struct Effect {
    enum class Kind : std::uint8_t { debited, credited, settled };
    Kind kind;
    std::uint64_t version;
    TransferId id;
    runtime::Reply<bool> credited;
  };
  void open_disk();
  void changed(Effect::Kind kind, TransferId id, runtime::Reply<bool> credited = {});
  void write();
  void send_credit(TransferId id);
  void settled(TransferId id);

  Bank& bank_;
  const AccountId id_;
  AccountImage image_;
  std::unique_ptr<runtime::CompletionLane> lane_;
  std::uint64_t generation_ = 0;   // of the disk
  std::uint64_t version_ = 0;      // of image_
  std::uint64_t on_disk_ = 0;      // the version that is known to be there
  std::uint64_t writing_ = 0;      // the version on its way; 0: none
  std::uint32_t write_tries_ = 0;
  std::deque<Effect> effects_;                                     // by version
  std::map<TransferId, runtime::Reply<TransferAnswer>> waiting_;   // tellers
  std::map<TransferId, std::uint32_t> credit_tries_;
};

/// Starts the accounts, each again a while after its end, alone or with its neighbours as
/// `strategy` says.
void spawn_accounts(const runtime::System& system, Bank& bank, runtime::Strategy strategy);

/// Has its orders carried out, one after the other; asks again until it is answered.
runtime::Behaviour teller(runtime::Self<VisitorMessage> self, Bank* bank, std::size_t number);
/// Reads balances at random, as long as there is chaos.
runtime::Behaviour auditor(runtime::Self<VisitorMessage> self, Bank* bank);
/// Ends accounts at random, by a stop or by an exception.
runtime::Behaviour chaos(runtime::Self<VisitorMessage> self, Bank* bank);

}   // namespace duet::tools
