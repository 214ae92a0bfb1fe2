// configuration.hpp: lets no program link whose compilation fits this library's layouts badly.
#pragma once

#include <boost/asio/detail/config.hpp>
#include <boost/version.hpp>

#include <type_traits>

// -DDUET_AWAITABLE=public builds on Asio's public interface alone; the default, native, knows some
// names of Asio's detail namespace and so awaits a message without touching the executor.
#define DUET_AWAITABLE_IS_native 0
#define DUET_AWAITABLE_IS_public 1
#define DUET_AWAITABLE_JOIN_(a, b) a##b
#define DUET_AWAITABLE_JOIN(a, b) DUET_AWAITABLE_JOIN_(a, b)
#if !defined(DUET_AWAITABLE)
#define DUET_AWAITABLE native
#endif
#define DUET_AWAITABLE_PUBLIC DUET_AWAITABLE_JOIN(DUET_AWAITABLE_IS_, DUET_AWAITABLE)

namespace duet::runtime::detail {

// Each pair changes what lies in memory, or who frees it, without changing a mangled name. -DNDEBUG
// and -O are not among them: nothing in the headers depends on them.
struct awaitables_native;
struct awaitables_public;
struct memory_pooled;
struct memory_sanitized;
struct rtti_on;
struct rtti_off;
struct containers_plain;
struct containers_debug;
template <int Version>
struct boost_version;
/// Of Asio's own settings: zero, or a bit each for those that are not as Asio ships.
template <unsigned Bits>
struct asio_settings;

template <typename... Choices>
struct Settings;

#if defined(DUET_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#if defined(BOOST_ASIO_NO_TYPEID)   // keys of Asio's services and targets of executors
inline constexpr bool without_rtti = true;
#else
inline constexpr bool without_rtti = false;
#endif
#if defined(_GLIBCXX_DEBUG)
inline constexpr bool debug_containers = true;
#else
inline constexpr bool debug_containers = false;
#endif

inline constexpr unsigned asio_bits = 0
#if !defined(BOOST_ASIO_HEADER_ONLY)
                                      | 1U
#endif
#if !defined(BOOST_ASIO_HAS_THREADS)   // mutexes are empty then
                                      | 2U
#endif
#if defined(BOOST_ASIO_ENABLE_HANDLER_TRACKING)   // handlers carry numbers
                                      | 4U
#endif
#if defined(BOOST_ASIO_HAS_IO_URING)
                                      | 8U
#endif
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
                                      | 0x10U
#endif
#if !defined(BOOST_ASIO_HAS_EPOLL)
                                      | 0x20U
#endif
#if !defined(BOOST_ASIO_HAS_EVENTFD) || !defined(BOOST_ASIO_HAS_TIMERFD)
                                      | 0x40U
#endif
#if defined(BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT)   // any_io_executor is another type
                                      | 0x80U
#endif
#if defined(BOOST_ASIO_DISABLE_SMALL_BLOCK_RECYCLING)
                                      | 0x100U
#endif
#if defined(BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE)   // Asio defines it later if we do not
#if BOOST_ASIO_RECYCLING_ALLOCATOR_CACHE_SIZE != 2
                                      | 0x200U
#endif
#endif
#if defined(BOOST_ASIO_ENABLE_BUFFER_DEBUGGING)
                                      | 0x400U
#endif
    ;

using ThisBuild =
    Settings<boost_version<BOOST_VERSION>,
             std::conditional_t<DUET_AWAITABLE_PUBLIC, awaitables_public, awaitables_native>,
             std::conditional_t<sanitized, memory_sanitized, memory_pooled>,
             std::conditional_t<without_rtti, rtti_off, rtti_on>,
             std::conditional_t<debug_containers, containers_debug, containers_plain>,
             asio_settings<asio_bits>>;

/// Defined in the library, for its own settings. If the linker misses it, the program is compiled
/// with other settings than the library: docs/embedding.md, 'Flags'.
void library_is_built_with(const ThisBuild*) noexcept;

// Of each translation unit, not inline: the linker would keep one of many and so check only one.
// Retained, so that neither optimisation nor the linker's garbage collection drops the reference.
#if __has_cpp_attribute(gnu::retain)
[[gnu::used, gnu::retain]]
#else
[[gnu::used]]
#endif
static void (*const built_with)(const ThisBuild*) noexcept = &library_is_built_with;

}   // namespace duet::runtime::detail
