// threaded_lock_test.cpp: one owner of a board, over objects and processes.
#include "device/emulator/threaded_lock.hpp"

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

namespace duet::device::emulator {
namespace {

struct Directory {
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "duet-lock-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

BOOST_AUTO_TEST_SUITE(threaded_lock)

BOOST_AUTO_TEST_CASE(a_second_object_is_refused_and_told_file_and_process) {
  const Directory directory;
  auto first = BoardLock::take(directory.path, "board0");
  BOOST_REQUIRE(first.has_value());
  for (int i = 0; i < 2; ++i) {
    const auto second = BoardLock::take(directory.path, "board0");
    BOOST_REQUIRE(second.has_error());
    BOOST_TEST((second.error().code == errc::board_in_use));
    const std::string& sentence = second.error().detail;
    BOOST_TEST(sentence.find((directory.path / "duet-board0.lock").string()) != std::string::npos);
    BOOST_TEST(sentence.find("process " + std::to_string(::getpid())) != std::string::npos);
  }
  BOOST_TEST(BoardLock::take(directory.path, "board1").has_value());
  {
    const BoardLock moved = std::move(first).value();
    BOOST_TEST(BoardLock::take(directory.path, "board0").has_error());
  }
  BOOST_TEST(BoardLock::take(directory.path, "board0").has_value());
}

// exactly one process; the kernel ends the lock of one that was killed.
BOOST_AUTO_TEST_CASE(another_process_holds_the_board_until_it_is_killed) {
  const Directory directory;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto taken = BoardLock::take(directory.path, "board0");
    const char answer = taken.has_value() ? 'y' : 'n';
    if (::write(ready[1], &answer, 1) != 1) ::_exit(1);
    ::close(ready[1]);
    for (;;) ::pause();
  }
  BOOST_REQUIRE(child > 0);
  ::close(ready[1]);
  char answer = 0;
  BOOST_REQUIRE(::read(ready[0], &answer, 1) == 1);
  ::close(ready[0]);
  BOOST_TEST(answer == 'y');
  {
    const auto refused = BoardLock::take(directory.path, "board0");
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::board_in_use));
    BOOST_TEST(refused.error().detail.find("process " + std::to_string(child)) !=
               std::string::npos);
  }
  BOOST_REQUIRE(::kill(child, SIGKILL) == 0);
  BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
  BOOST_TEST(BoardLock::take(directory.path, "board0").has_value());
}

BOOST_AUTO_TEST_CASE(a_child_process_does_not_get_a_board_its_parent_owns) {
  const Directory directory;
  const auto mine = BoardLock::take(directory.path, "board0");
  BOOST_REQUIRE(mine.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto taken = BoardLock::take(directory.path, "board0");
    const std::string owner = "process " + std::to_string(::getppid());
    const bool refused = taken.has_error() && taken.error().code == errc::board_in_use &&
                         taken.error().detail.find(owner) != std::string::npos;
    ::_exit(refused ? 7 : 8);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFEXITED(status));
  BOOST_TEST(WEXITSTATUS(status) == 7);
}

BOOST_AUTO_TEST_CASE(bad_names_and_directories_are_refused_in_words) {
  const Directory directory;
  for (const std::string& name : {std::string{}, std::string{"../x"}, std::string{"a b"},
                                  std::string(65, 'a'), std::string{"a\0b", 3}}) {
    const auto refused = BoardLock::take(directory.path, name);
    BOOST_REQUIRE(refused.has_error());
    BOOST_TEST((refused.error().code == errc::bad_argument));
  }
  const auto missing = BoardLock::take(directory.path / "nothing", "board0");
  BOOST_REQUIRE(missing.has_error());
  BOOST_TEST((missing.error().code == errc::driver_lost));
  BOOST_TEST(missing.error().detail.find("No such file") != std::string::npos);
  // A link would let somebody else choose which file is emptied.
  std::ofstream{directory.path / "victim"} << "precious";
  std::filesystem::create_symlink(directory.path / "victim", directory.path / "duet-board0.lock");
  BOOST_TEST(BoardLock::take(directory.path, "board0").has_error());
  BOOST_TEST(std::filesystem::file_size(directory.path / "victim") == 8U);
}

BOOST_AUTO_TEST_CASE(the_default_directory_exists) {
  BOOST_TEST(std::filesystem::is_directory(default_lock_directory()));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace duet::device::emulator
