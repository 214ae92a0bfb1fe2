// duet_sim_disk.hpp: the bank's disk: what survives a crash, and the count of all tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace duet::tools {

using AccountId = std::uint32_t;
using TransferId = std::uint64_t;   // chosen by the teller, the same in each of its tries
using Tokens = std::int64_t;

/// Everything that one account knows.
struct AccountImage {
  struct Debit {
    AccountId to = 0;
    Tokens amount = 0;
    bool settled = false;   // the receiver has it on disk
  };
  Tokens balance = 0;
  std::map<TransferId, Debit> debits;
  std::set<TransferId> credits;
};

/// An image is written whole, so an old one that comes late would undo what came after it: each
/// life of an account opens the disk under a new generation, and older ones may not write any more.
class BankDisk {
 public:
  BankDisk(std::size_t accounts, Tokens each, bool fenced);

  [[nodiscard]] std::size_t size() const noexcept { return accounts_.size(); }
  [[nodiscard]] const AccountImage& read(AccountId account) const {
    return accounts_[account].image;
  }
  /// A new generation.
  std::uint64_t open(AccountId account) { return ++accounts_[account].generation; }
  /// False, and nothing is written, under an old generation.
  bool write(AccountId account, std::uint64_t generation, const AccountImage& image);

  /// Empty, or what is wrong: balances and what is on its way must make up the first sum.
  [[nodiscard]] std::string audit() const;
  /// The first that went wrong in a write.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }

  [[nodiscard]] std::uint64_t writes() const noexcept { return writes_; }
  [[nodiscard]] std::uint64_t fenced_off() const noexcept { return fenced_off_; }
  /// Debited, but not settled.
  [[nodiscard]] std::size_t unsettled() const;

 private:
  struct Account {
    AccountImage image;
    std::uint64_t generation = 0;
  };
  std::vector<Account> accounts_;
  const Tokens total_;
  const bool fenced_;
  std::string violation_;
  std::uint64_t writes_ = 0;
  std::uint64_t fenced_off_ = 0;
};

}   // namespace duet::tools
