// message.hpp: what a message type declares about itself, and what an actor's language is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace duet::runtime {

/// What happens to a message when its receiver has too much to do.
enum class MessageClass : std::uint8_t {
  guaranteed,   ///< Always taken; bounded because each answers something that was asked for.
  bounded,      ///< Refused with errc::overloaded once the receiver's bound is reached.
  latest,       ///< Takes the place of the queued one of its type; only the newest matters.
};

/// Order from one sender is kept within a lane; an urgent message may overtake a normal one.
enum class Lane : std::uint8_t { normal, urgent };

namespace detail {
struct NotDeclared {};
}   // namespace detail

/// Every message type specialises it; there is no default:
///   template <> inline constexpr MessageClass message_class<Add> = MessageClass::bounded;
template <typename T>
inline constexpr detail::NotDeclared message_class{};

/// Specialised by the few types that may overtake: cancels, stops, faults. They are not bounded,
/// because what overtakes must arrive.
template <typename T>
inline constexpr Lane message_lane = Lane::normal;

namespace detail {
template <typename T>
inline constexpr bool may_overtake = true;
template <typename T>
requires std::is_same_v<decltype(message_class<T>), const MessageClass>
inline constexpr bool may_overtake<T> =
    message_lane<T> == Lane::normal || message_class<T> != MessageClass::bounded;
}   // namespace detail

/// Asks an actor to end. One whose language has it ends by itself, in its own time; another is
/// ended where it waits.
struct Stop {};
template <>
inline constexpr MessageClass message_class<Stop> = MessageClass::guaranteed;
template <>
inline constexpr Lane message_lane<Stop> = Lane::urgent;

/// A type that may stand in an actor's language. g++ 12 destroys aggregate temporaries in a
/// co_await expression twice, so a type with something to destroy needs a constructor.
template <typename T>
concept Message = std::is_same_v<decltype(message_class<T>), const MessageClass> &&
    detail::may_overtake<T> && std::is_nothrow_move_constructible_v<T> &&
    std::is_nothrow_move_assignable_v<T> &&
    (!std::is_aggregate_v<T> || std::is_trivially_destructible_v<T>);

namespace detail {

template <typename M>
struct LanguageTraits : std::false_type {};

template <typename... T>
struct LanguageTraits<std::variant<T...>> : std::bool_constant<(Message<T> && ...)> {
  template <typename U>
  static constexpr bool has = (std::is_same_v<T, U> || ...);
};

template <typename T>
consteval auto make_type_name() {
  constexpr std::string_view pretty = __PRETTY_FUNCTION__;
  constexpr std::size_t begin = pretty.find("T = ") + 4;
  constexpr std::size_t end = pretty.find_first_of(";]", begin);
  constexpr std::string_view full = pretty.substr(begin, end - begin);
  constexpr std::size_t arguments = full.find('<');
  constexpr std::size_t colons = full.substr(0, arguments).rfind("::");
  constexpr std::string_view name =
      colons == std::string_view::npos ? full : full.substr(colons + 2);
  std::array<char, name.size() + 1> text{};
  for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
  return text;
}

template <typename T>
inline constexpr auto type_name_text = make_type_name<T>();

}   // namespace detail

/// An actor's language: a closed variant of messages.
template <typename M>
concept Language = detail::LanguageTraits<M>::value;

template <typename M, typename T>
concept HasMessage = Language<M> && detail::LanguageTraits<M>::template has<T>;

/// The unqualified name of a type, for people to read; lives as long as the program.
template <typename T>
[[nodiscard]] constexpr const char* type_name() noexcept {
  return detail::type_name_text<T>.data();
}

}   // namespace duet::runtime
