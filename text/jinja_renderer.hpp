// jinja_renderer.hpp: runs a parsed chat template.
#pragma once

#include "text/jinja_ast.hpp"

#include <string>
#include <utility>
#include <vector>

namespace duet::text {

using JinjaVariables = std::vector<std::pair<std::string, JinjaValue>>;

/// Renders `ast` with the given variables; of equal names the last one counts. Pure: any thread.
/// Errors, with line and column: template_failed, template_limit, template_raised.
[[nodiscard]] Result<TemplatedText> jinja_render(const JinjaAst& ast, JinjaVariables variables);

}   // namespace duet::text
