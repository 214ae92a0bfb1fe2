// limits.hpp: the bounds of the runtime, each with its reason.
#pragma once

#include "runtime/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace duet::runtime::limits {

/// Messages and completions that one activation handles: long enough to pay for the queue, short
/// enough for a neighbour.
inline constexpr std::uint32_t activation_messages_max = 64;

/// Activations a pump runs before the host gets its turn. A turn costs the host's context half a
/// microsecond, as much as a dozen light activations; so many of those take a third of the time
/// below.
inline constexpr std::uint32_t slice_activations_max = 1024;

/// The same in time, for actors whose messages are heavy. Where light ones turn heavy, that is
/// noticed after 32 activations at most.
inline constexpr std::uint64_t slice_ns_max = 100'000;

/// Activations that take so long are given to an idle pump one by one: moving an actor to another
/// processor costs a part of it (about ten cache lines, and the wake-up of a thread now and then).
inline constexpr std::uint64_t worth_moving_ns = 4'000;

/// Lighter ones are given away if all that wait take so long together. Less is done sooner by the
/// pump that has them, whose processor holds them, than by a thread that must be woken.
inline constexpr std::uint64_t backlog_ns_max = 200'000;

/// And if that lets more messages a second be handled, which is tried where light work has waited
/// for one window; the trial settles for another and is measured for a third. A window is ten
/// slices.
inline constexpr Duration spread_window = std::chrono::milliseconds(1);
inline constexpr double spread_gain = 1.25;   // less is not worth a second processor
inline constexpr double spread_loss = 0.85;

/// A trial between the two goes on for so many windows: the kernel may leave both threads on one
/// processor for a tick or two, 4 ms each.
inline constexpr std::uint32_t spread_windows_max = 12;

/// A trial that loses costs up to three windows of the slower rate, so the next one rests; and what
/// was won is looked at again, as workloads change. Each time twice as long, so that some
/// hundredths of the time are lost at first, and soon a thousandth.
inline constexpr Duration spread_rest_min = std::chrono::milliseconds(50);
inline constexpr Duration spread_rest_max = std::chrono::milliseconds(1600);

/// A trial that ended because the work did has shown nothing; so it rests less at first.
inline constexpr Duration spread_pause = std::chrono::milliseconds(10);

/// A busy pump takes from the shared list this often, so that no ready actor starves there; but for
/// a slice or two after it has given something away, until the woken pump comes.
inline constexpr std::uint32_t shared_look_activations = 32;

/// Activations that share one reading of the clock in the side records.
inline constexpr std::uint32_t stamp_activations_max = 64;

/// What a coarse clock is behind at most, but for a kernel whose timekeeper stands still: a tick is
/// 10 ms, and may be late.
inline constexpr Duration coarse_clock_lag = std::chrono::milliseconds(100);

/// Characters of an actor's name that its side record keeps; the rest is cut.
inline constexpr std::size_t name_characters_max = 23;

/// Queued bounded messages an actor takes unless its options say otherwise.
inline constexpr std::uint32_t bounded_messages_default = 1024;

/// The largest such bound: a mailbox counts them in 16 bits, beside an address.
inline constexpr std::uint32_t bounded_messages_max = 65'535;

/// Bytes from which a node, frame or actor comes from the heap instead of a freelist.
inline constexpr std::size_t pooled_bytes_max = 2048;

/// Nodes of a fresh freelist chain. Threads trade chains of up to twice as many with the depot.
inline constexpr std::uint32_t chain_nodes_max = 64;

/// Restarts of a supervisor within its window unless its options say otherwise: what fails more
/// often is not helped by one more.
inline constexpr std::uint32_t restarts_max_default = 3;

/// Children of a supervisor unless its options say otherwise; each costs about half a KiB.
inline constexpr std::size_t children_max_default = 65536;

/// Late children whose snapshots a supervisor keeps for its last report; more say nothing new.
inline constexpr std::size_t late_children_max = 32;

/// Tombstones unless their owner says otherwise: as many as requests may be on their way to one
/// actor with the default bound of its mailbox.
inline constexpr std::size_t tombstones_default = bounded_messages_default;

}   // namespace duet::runtime::limits
