// duet_pack_run.hpp: runs duet-pack as a user does.
#pragma once

#include "tests/device/package/scratch.hpp"

#include <cstdlib>
#include <string>

#include <sys/wait.h>

namespace duet::device::test {

struct Ended {
  int code = -1;   ///< the exit code; -1: ended by a signal.
  std::string out;
  std::string err;
};

/// Runs duet-pack with `arguments`; paths below `scratch` hold no blanks.
inline Ended run_duet_pack(const ScratchDirectory& scratch, const std::string& arguments) {
  const std::string command = std::string(DUET_BINARY_DIR "/bin/duet-pack ") + arguments + " >" +
                              scratch.at("out") + " 2>" + scratch.at("err") + " </dev/null";
  const int status = std::system(command.c_str());
  Ended ended;
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ended.out = ScratchDirectory::read_file(scratch.at("out"));
  ended.err = ScratchDirectory::read_file(scratch.at("err"));
  return ended;
}

}   // namespace duet::device::test
