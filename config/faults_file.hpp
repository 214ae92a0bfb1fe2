// faults_file.hpp: the file of device.faults: what a board that makes its answers up is to say.
//
//   schema: duet-faults/v1
//   answers:
//     - model: model-a                # an alias of the configuration
//       prompt_tokens: [1, 17, 42]    # all tokens of the sequence before the answer
//       answer_tokens: [300, 301]
//       ends: true                    # the default: the model's end token follows; false: made-up
//                                     # tokens go on until the length limit
//
// Two answers to one prompt of one model are an error.
#pragma once

#include "config/finding.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace duet::config {

struct AnswerScript {
  std::string alias;
  std::vector<std::uint32_t> prompt_tokens;   ///< at least one.
  std::vector<std::uint32_t> answer_tokens;   ///< may be empty where it ends.
  bool ends = true;
};

/// `aliases`: those of the configuration. Findings name `file`, line and key; a file with an error
/// gives no script. Token ids are not compared with a vocabulary: nobody has read the package yet.
[[nodiscard]] std::vector<AnswerScript> parse_faults(std::string_view text, const std::string& file,
                                                     std::span<const std::string> aliases,
                                                     Findings& findings);

/// Reads the file first.
[[nodiscard]] std::vector<AnswerScript> load_faults(const std::string& file,
                                                    std::span<const std::string> aliases,
                                                    Findings& findings);

}   // namespace duet::config
