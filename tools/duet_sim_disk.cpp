// duet_sim_disk.cpp: fenced writes of whole images, and the audit after each.
#include "tools/duet_sim_disk.hpp"

namespace duet::tools {

BankDisk::BankDisk(std::size_t accounts, Tokens each, bool fenced)
    : accounts_(accounts), total_(static_cast<Tokens>(accounts) * each), fenced_(fenced) {
  for (Account& account : accounts_) account.image.balance = each;
}

bool BankDisk::write(AccountId id, std::uint64_t generation, const AccountImage& image) {
  Account& account = accounts_[id];
  if (generation != account.generation) {
    ++fenced_off_;
    if (fenced_) return false;
  }
  account.image = image;
  ++writes_;
  if (violation_.empty()) {
    violation_ = audit();
    if (!violation_.empty()) {
      violation_ += ", after account " + std::to_string(id) + " wrote under generation " +
                    std::to_string(generation) + " of " + std::to_string(account.generation);
    }
  }
  return true;
}

std::string BankDisk::audit() const {
  Tokens balances = 0;
  Tokens on_their_way = 0;
  for (const Account& account : accounts_) {
    balances += account.image.balance;
    for (const auto& [id, debit] : account.image.debits) {
      if (!accounts_[debit.to].image.credits.contains(id)) on_their_way += debit.amount;
    }
  }
  if (balances + on_their_way == total_) return {};
  return std::to_string(balances) + " tokens in accounts and " + std::to_string(on_their_way) +
         " on their way, of " + std::to_string(total_);
}

std::size_t BankDisk::unsettled() const {
  std::size_t count = 0;
  for (const Account& account : accounts_) {
    for (const auto& [id, debit] : account.image.debits) count += debit.settled ? 0U : 1U;
  }
  return count;
}

}   // namespace duet::tools
