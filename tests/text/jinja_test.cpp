// jinja_test.cpp: our templates render as Python's jinja2 does, and fail where it fails.
// It is one file because most of it is one table of templates.
#include "tests/text/test_data.hpp"
#include "text/jinja_ast.hpp"
#include "text/jinja_renderer.hpp"
#include "text/limits.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <cstdio>
#include <random>

namespace utf = boost::unit_test;

namespace duet::text::test {
namespace {

struct OracleIsThere {
  boost::test_tools::assertion_result operator()(boost::unit_test::test_unit_id) const {
    boost::test_tools::assertion_result answer{
        std::system("python3 -c 'import jinja2' >/dev/null 2>&1") == 0};
    answer.message() << "python3 with jinja2 is not installed";
    return answer;
  }
};

Result<std::string> render(const std::string& source, const boost::json::object& context) {
  auto ast = jinja_parse(source, JinjaOptions{});
  if (!ast) return ast.error();
  JinjaVariables variables;
  for (const auto& member : context) {
    auto value = jinja_from_json(member.value());
    if (!value) throw std::runtime_error("context is too deep");
    variables.emplace_back(std::string{member.key().data(), member.key().size()}, *value);
  }
  auto text = jinja_render(*ast, std::move(variables));
  if (!text) return text.error();
  return text->text();
}

std::string render_or_throw(const std::string& source, const char* context = "{}") {
  auto text = render(source, boost::json::parse(context).as_object());
  if (!text) throw std::runtime_error(text.error().message);
  return *text;
}

Error error_of(const std::string& source, const char* context = "{}") {
  auto text = render(source, boost::json::parse(context).as_object());
  if (text) throw std::runtime_error("rendered: " + *text);
  return text.error();
}

boost::json::array ask_oracle(const boost::json::array& cases) {
  std::string in = std::string{DUET_BINARY_DIR} + "/jinja-XXXXXX";
  const int file = ::mkstemp(in.data());
  if (file < 0) throw std::runtime_error("cannot make " + in);
  ::close(file);
  std::ofstream{in} << boost::json::serialize(cases);
  const std::string command =
      "python3 " + std::string{DUET_SOURCE_DIR} + "/tests/text/jinja_oracle.py <" + in;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string out;
  std::array<char, 65536> buffer;
  for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    out.append(buffer.data(), size);
  }
  const int status = ::pclose(pipe);
  std::filesystem::remove(in);
  if (status != 0) throw std::runtime_error("the oracle failed: " + command);
  return boost::json::parse(out).as_array();
}

void compare_with_oracle(const std::vector<std::string>& sources,
                         const boost::json::object& context) {
  boost::json::array cases;
  for (const auto& source : sources) {
    cases.push_back(boost::json::object{{"source", source}, {"context", context}});
  }
  const auto answers = ask_oracle(cases);
  BOOST_REQUIRE(answers.size() == sources.size());
  for (std::size_t at = 0; at < sources.size(); ++at) {
    const auto& answer = answers[at].as_object();
    const auto ours = render(sources[at], context);
    if (const auto* text = answer.if_contains("text")) {
      const std::string wanted{text->as_string().data(), text->as_string().size()};
      BOOST_TEST(ours.has_value(), "template: " << sources[at]
                                                << "\nours: " << (ours ? "" : ours.error().message)
                                                << "\njinja2: " << wanted);
      if (ours) {
        BOOST_TEST(*ours == wanted,
                   "template: " << sources[at] << "\nours: " << *ours << "\njinja2: " << wanted);
      }
    } else {
      BOOST_TEST(!ours.has_value(), "template: " << sources[at] << "\nours: " << (ours ? *ours : "")
                                                 << "\njinja2: " << answer.at("error"));
    }
  }
}

const char* const context_text = R"json({
  "messages": [
    {"role": "system", "content": " Be brief.\n"},
    {"role": "user", "content": "Hi <|im_end|> é猫 ", "name": "Ann"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"type": "function",
       "function": {"name": "add", "arguments": {"a": 1, "b": [true, null, 2.5]}}}]},
    {"role": "tool", "content": "3"}
  ],
  "tools": [{"name": "add", "parameters": {"z": 1, "a": {"type": "int"}}}],
  "empty": "", "zero": 0, "one": 1, "minus": -7, "half": 0.5, "big": 1e20, "tiny": 1e-5,
  "yes": true, "no": false, "nothing": null, "words": "The quick  brown\tfox",
  "lines": "a\nb\r\n\nc", "list": [3, 1, 2], "names": ["b", "A", "c"],
  "nested": {"x": {"y": "deep"}},
  "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"
})json";

boost::json::object context() {
  return boost::json::parse(context_text).as_object();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(jinja)

BOOST_AUTO_TEST_CASE(statements_render_as_jinja2_does, *utf::precondition(OracleIsThere{})) {
  compare_with_oracle(
      {
          "",
          "plain",
          "line\n",
          "line\n\n",
          "a\r\nb\rc\r\n",
          "{{ 'a' }}",
          "{{- 'a' -}}",
          "x {{- 'a' -}} y",
          "x {{ 'a' }}\n y",
          "{# comment #}\nx",
          "  {# comment #}  \nx {#- no -#} y",
          "a\n  {%- if yes %} b {% endif -%}\n c",
          "a\n  {% if yes %}\n  b\n  {% endif %}\n c",
          "a\n  {%+ if yes %}\n  b\n  {%+ endif +%}\n c",
          "{% if yes %}\n\nb{% endif %}",
          "{% if yes %}x{% else %}y{% endif %}{% if no %}x{% else %}y{% endif %}",
          "{% if zero %}a{% elif empty %}b{% elif one %}c{% else %}d{% endif %}",
          "{% if zero %}a{% elif empty %}b{% elif nothing %}c{% else %}d{% endif %}",
          "{% if missing %}a{% endif %}{% if list %}b{% endif %}{% if [] %}c{% endif %}",
          "{% for m in messages %}{{ m.role }},{% endfor %}",
          "{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}"
          "{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
          "{% for x in [] %}a{% else %}none{% endfor %}",
          "{% for x in list %}{{ x }}{% else %}none{% endfor %}",
          "{% for x in missing %}a{% else %}none{% endfor %}",
          "{% for x in nothing %}a{% endfor %}",
          "{% for x in 5 %}a{% endfor %}",
          "{% for m in messages if m.role != 'user' %}{{ loop.index }}{{ m.role }} {% endfor %}",
          "{% for m in messages if m.role == 'x' %}a{% else %}none{% endfor %}",
          "{% for k, v in nested.items() %}{{ k }}{{ v }}{% endfor %}",
          "{% for k in nested %}{{ k }}{% endfor %}",
          "{% for c in 'aé猫' %}[{{ c }}]{% endfor %}",
          "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }} {% endfor %}",
          "{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}",
          "{% for x in list %}{% for y in names %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}"
          "{{ loop.index }}\n{% endfor %}",
          "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
          "{% for x in list %}{{ loop.cycle('a', 'b') }}{% endfor %}",
          "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
          "{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!",
          "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}",
          "{% set x = 1 %}{% for y in list %}{% set x = y %}{{ x }}{% endfor %}{{ x }}",
          "{% for y in list %}{% if loop.first %}{% set z = y %}{% endif %}[{{ z }}]{% endfor %}",
          "{% if yes %}{% set x = 5 %}{% endif %}{{ x }}",
          "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
          "{% set a, b = [1] %}{{ a }}",
          "{% set ns = namespace(n=0, s='') %}{% for x in list %}{% set ns.n = ns.n + x %}"
          "{% set ns.s = ns.s ~ x %}{% endfor %}{{ ns.n }} {{ ns.s }}",
          "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}",
          "{% set list.x = 1 %}",
          "{% set x %}a{{ one }}b{% endset %}[{{ x }}]",
          "{% set x | upper %}ab{% endset %}[{{ x }}]",
          "{% filter upper %}ab{{ one }}{% endfilter %}",
          "{% filter trim | upper %}  ab {% endfilter %}",
          "{% raw %}{{ x }}{% if %}{% endraw %}!",
          "a {%- raw -%} {{ x }} {%- endraw -%} b",
          "{% macro m(a, b='2') %}[{{ a }}{{ b }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(a=5) "
          "}}",
          "{% macro m(a) %}{{ a }}{{ one }}{{ y }}{% endmacro %}{% for y in list %}{{ m(y) }}{% "
          "endfor %}",
          "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
          "{% macro m(a) %}{% set one = 9 %}{{ one }}{% endmacro %}{{ m() }}{{ one }}",
          "{% macro m() %}x{% endmacro %}{{ m(1) }}",
          "{% macro m(a) %}x{% endmacro %}{{ m(b=1) }}",
          "{{ raise_exception('no') }}",
          "{% if no %}{{ raise_exception('no') }}{% endif %}ok",
          "{{ '{{' }}{{ '%}' }}{{ \"}}\" }}",
          "{{ {'a': {'b': 1}}['a']['b'] }}",
          "{ a } {x {{ 1 }}",
      },
      context());
}

BOOST_AUTO_TEST_CASE(broken_templates_fail_as_in_jinja2, *utf::precondition(OracleIsThere{})) {
  compare_with_oracle(
      {
          "{{",
          "{{ }}",
          "{{ 'a }}",
          "{% if %}{% endif %}",
          "{% if x %}",
          "{% endif %}",
          "{% for %}",
          "{% for x in %}{% endfor %}",
          "{% x %}",
          "{{ a b }}",
          "{{ (1 }}",
          "{{ 1) }}",
          "{{ [1, 2 }}",
          "{{ {'a' 1} }}",
          "{{ x | nope }}",
          "{{ x is nope }}",
          "{{ x. }}",
          "{{ x[] }}",
          "{# open",
          "{% raw %}x",
          "{% set %}",
          "{% set x = %}",
          "{{ 1 + }}",
          "{{ not }}",
          "{{ @ }}",
          "{% break %}",
          "{% for x in y %}{% endif %}",
          "{% else %}",
          "{{ f(a=1, 2) }}",
          "{{ 'a' if }}",
          "{% macro %}{% endmacro %}",
      },
      context());
}

BOOST_AUTO_TEST_CASE(expressions_give_what_jinja2_gives, *utf::precondition(OracleIsThere{})) {
  const std::vector<std::string> expressions = {
      "1",
      "-1",
      "--1",
      "1.5",
      "1e3",
      "1_000",
      "0.1 + 0.2",
      "1.0",
      "1e16",
      "1e15",
      "big",
      "tiny",
      "half",
      "1 / 2",
      "4 / 2",
      "7 // 2",
      "minus // 2",
      "minus % 3",
      "7 % -3",
      "minus",
      "2 ** 10",
      "2 ** -1",
      "-2 ** 2",
      "1 + 2 * 3",
      "(1 + 2) * 3",
      "10 - 3 - 2",
      "1.5 // 0.4",
      "5.5 % 2",
      "-5.5 % 2",
      "1 // 0",
      "1 % 0",
      "1 / 0",
      "true + 1",
      "yes",
      "no",
      "nothing",
      "none",
      "True",
      "'a' + 'b'",
      "'a' ~ 1 ~ none",
      "'a' 'b'",
      "'a' * 3",
      "3 * 'a'",
      "'a' * -1",
      "'a' + 1",
      "missing",
      "missing + 'a'",
      "missing ~ 'a'",
      "missing.x",
      "missing['x']",
      "nested.x.y",
      "nested['x']['y']",
      "nested.q",
      "nested.q.r",
      "list[0]",
      "list[-1]",
      "list[9]",
      "list['a']",
      "'aé猫'[1]",
      "'aé猫'[-1]",
      "'aé猫'[5]",
      "'aé猫'[1:]",
      "'abc'[::-1]",
      "'abcdef'[1:5:2]",
      "'abcdef'[-2:]",
      "'abcdef'[:-2]",
      "'abcdef'[5:1:-2]",
      "list[1:]",
      "list[::-1]",
      "list[:2]",
      "messages[1:]|length",
      "list[::0]",
      "nothing[1:]",
      "'abc'[10:]",
      "'abc'[-10:2]",
      "1 == 1",
      "1 == 1.0",
      "1 == true",
      "'1' == 1",
      "none == missing",
      "missing == missing2",
      "1 < 2 < 3",
      "1 < 2 > 3",
      "'a' < 'b'",
      "'a' < 1",
      "[1, 2] < [1, 3]",
      "none < 1",
      "1 != 2",
      "1 in list",
      "5 in list",
      "'a' in 'cat'",
      "1 in 'cat'",
      "'x' in nested",
      "'x' not in nested",
      "'a' in missing",
      "1 in 5",
      "not 1",
      "not not 1",
      "not 1 == 2",
      "1 and 2",
      "0 and 2",
      "0 or 2",
      "'' or 'x'",
      "none or missing or 'z'",
      "1 if yes else 2",
      "1 if no else 2",
      "1 if no",
      "'a' if no else 'b' if no else 'c'",
      "[1, 'a', none, true, 1.5]",
      "{'a': 1}",
      "['it\\'s']",
      "['\"']",
      "['\\'\"']",
      "['\\n\\\\é']",
      "[]",
      "{}",
      "(1)",
      "[1, [2, [3]]]",
      "{'a': {'b': [1]}}",
      "[1] + [2]",
      "[missing]|length",
      "'\\x41\\u00e9\\n\\t\\q\\101'",
      "\"a'b\"",
      "1 is defined",
      "missing is defined",
      "missing is undefined",
      "none is none",
      "'a' is string",
      "1 is string",
      "1 is number",
      "1.5 is number",
      "true is number",
      "1 is integer",
      "true is integer",
      "1.5 is float",
      "true is boolean",
      "1 is boolean",
      "nested is mapping",
      "list is mapping",
      "list is sequence",
      "'a' is sequence",
      "nested is sequence",
      "1 is sequence",
      "list is iterable",
      "1 is iterable",
      "missing is iterable",
      "4 is even",
      "4 is odd",
      "6 is divisibleby 3",
      "6 is divisibleby(4)",
      "1 is eq 1",
      "1 is equalto 2",
      "1 is ne 2",
      "2 is gt 1",
      "2 is lt(1)",
      "2 is ge 2",
      "2 is le 1",
      "1 is in [1, 2]",
      "'abc' is lower",
      "'ABC' is upper",
      "'aBc' is lower",
      "true is true",
      "1 is true",
      "false is false",
      "1 is not none",
      "not 1 is none",
      "1 is not defined",
      "yes is true and no is false",
      "1 is sameas 1",
      "'  a b '|trim",
      "words|upper",
      "words|lower",
      "'heLLo wORLD'|capitalize",
      "'heLLo wORLD'|title",
      "words|length",
      "'é猫'|length",
      "list|length",
      "nested|length",
      "missing|length",
      "1|length",
      "list|count",
      "messages|tojson",
      "tools|tojson(indent=2)",
      "tools|tojson",
      "'a\"b\\\\\\n\\té<>&'|tojson",
      "[1.5, 1e20, true, none]|tojson",
      "{}|tojson(indent=4)",
      "[[], {}]|tojson(indent=1)",
      "missing|tojson",
      "missing|default('d')",
      "missing|d",
      "empty|default('d')",
      "empty|default('d', true)",
      "zero|default(5, boolean=true)",
      "none|default('d')",
      "names|join(', ')",
      "list|join",
      "list|join('-')",
      "[]|join(',')",
      "messages|join(',', attribute='role')",
      "list|first",
      "list|last",
      "[]|first",
      "'abc'|first",
      "'abc'|last",
      "'abc'|list",
      "nested|list",
      "list|string",
      "none|string",
      "missing|string",
      "1.0|string",
      "nested|items|list",
      "missing|items|list",
      "(1, 2)",
      "(1,)",
      "()",
      "(1, 2) == [1, 2]",
      "'abc'.startswith(('x', 'a'))",
      "(1, 2) + (3,)",
      "(1,) + [2]",
      "'a-b'|replace('-', '+')",
      "'aaa'|replace('a', 'b', 2)",
      "'abc'|replace('', '.')",
      "'12'|int",
      "' 12 '|int",
      "'x'|int",
      "'x'|int(5)",
      "'1.9'|int",
      "1.9|int",
      "-1.9|int",
      "none|int",
      "'1.5'|float",
      "'x'|float",
      "1|float",
      "minus|abs",
      "'a'|abs",
      "list|sort",
      "list|sort(reverse=true)",
      "names|sort",
      "names|sort(case_sensitive=true)",
      "messages|sort(attribute='role')|map(attribute='role')|list",
      "list|sort|reverse|list",
      "list|reverse|list",
      "'abc'|reverse",
      "[1, 'a']|sort",
      "list|max",
      "list|min",
      "names|max",
      "[]|max",
      "['a', 'A', 'b', 'a']|unique|list",
      "[1, 1, 2]|unique|list",
      "nested|dictsort",
      "{'b': 1, 'A': 2}|dictsort",
      "messages|map(attribute='role')|list",
      "messages|map(attribute='name', default='?')|list",
      "names|map('upper')|list",
      "names|map('replace', 'b', 'x')|list",
      "messages|selectattr('role', 'equalto', 'user')|list|length",
      "messages|selectattr('name')|list|length",
      "messages|selectattr('name', 'defined')|list|length",
      "messages|rejectattr('role', 'in', ['user', 'tool'])|map(attribute='role')|join(',')",
      "list|select('gt', 1)|list",
      "list|reject('odd')|list",
      "[0, 1, 2]|select|list",
      "words|safe",
      "'x' | upper | lower ~ 'Y'",
      "1|upper",
      "none|upper",
      "missing|upper",
      "-1|abs",
      "(-1)|abs",
      "words.split()",
      "words.split(' ')",
      "'a,b,,c'.split(',')",
      "'a,b,c'.split(',', 1)",
      "'a,b,c'.rsplit(',', 1)",
      "' a  b c '.split(none, 1)",
      "' a  b c '.rsplit(none, 1)",
      "''.split()",
      "''.split(',')",
      "'a'.split('')",
      "'</think>x</think>y'.split('</think>')[-1]",
      "'  a '.strip()",
      "'  a '.lstrip()",
      "'  a '.rstrip()",
      "'xxaxx'.strip('x')",
      "'xyaxy'.lstrip('yx')",
      "'a\\n'.rstrip('\\n')",
      "'\\u2003a\\u00a0'.strip()",
      "'abc'.startswith('ab')",
      "'abc'.startswith(['a'])",
      "'abc'.endswith('bc')",
      "'abc'.startswith('')",
      "'abc'.upper()",
      "'ABC'.lower()",
      "'they\\'re here'.title()",
      "'aBC dE'.capitalize()",
      "'a-b-c'.replace('-', '+')",
      "'a-b-c'.replace('-', '+', 1)",
      "'abcabc'.find('c')",
      "'abc'.find('x')",
      "'é猫c'.find('c')",
      "'abcabc'.rfind('c')",
      "'aXbXc'.count('X')",
      "'abc'.count('')",
      "lines.splitlines()",
      "lines.splitlines(true)",
      "', '.join(names)",
      "', '.join(list)",
      "'abc'.nope()",
      "1.x",
      "1.upper()",
      "nested.keys()|list",
      "nested.values()|list",
      "nested.items()|list",
      "nested.get('x')",
      "nested.get('q')",
      "nested.get('q', 5)",
      "nested.nope()",
      "range(3)|list",
      "range(1, 7, 2)|list",
      "range(3, 0, -1)|list",
      "range(0)|list",
      "range(1, 2, 0)|list",
      "range('a')",
      "dict(a=1)",
      "namespace(a=1).a",
      "messages[1].content",
      "messages[1]['content']|trim",
      "messages[2].content",
      "messages[2].tool_calls[0].function.arguments|tojson",
      "messages[0].content.strip()",
      "messages|length > 2 and messages[0].role == 'system'",
      "bos_token + 'x' + eos_token",
      "messages[-1].role",
      "(messages|last).role",
      "'system' in messages|map(attribute='role')",
      "'a' 'b' ~ 'c'",
      "nope()",
      "'a'()",
      "{'a': 1}.a",
      "{'a': 1}['b']",
      "[[1, 2], [3]][0][1]",
      "1 if missing is defined else 'u'",
      "'%d' ",
      "list.length",
      "messages.0.role",
      "(1, 2)[0]",
  };
  std::vector<std::string> sources;
  for (const auto& expression : expressions) sources.push_back("[{{ " + expression + " }}]");
  BOOST_TEST(sources.size() >= 250U);
  compare_with_oracle(sources, context());
}

BOOST_AUTO_TEST_CASE(random_whitespace_control_equals_jinja2, *utf::precondition(OracleIsThere{})) {
  const std::array<std::string, 22> parts = {"a",
                                             " ",
                                             "  ",
                                             "\n",
                                             "\n\n",
                                             "\t",
                                             "{% if yes %}",
                                             "{%- if yes %}",
                                             "{% if yes -%}",
                                             "{%+ if yes %}",
                                             "{% if yes +%}",
                                             "{% endif %}",
                                             "{%- endif %}",
                                             "{% endif -%}",
                                             "{%+ endif +%}",
                                             "{{ 'v' }}",
                                             "{{- 'v' }}",
                                             "{{ 'v' -}}",
                                             "{# c #}",
                                             "{#- c #}",
                                             "{# c -#}",
                                             "{%- raw %} r {% endraw -%}"};
  std::mt19937 random{20240607};
  std::vector<std::string> sources;
  for (int round = 0; round < 1500; ++round) {
    std::string source;
    int open = 0;
    for (unsigned i = 0, count = 3 + random() % 12; i < count; ++i) {
      const std::size_t part = random() % parts.size();
      const bool begins = part >= 6 && part <= 10;
      const bool ends = part >= 11 && part <= 14;
      if (ends && open == 0) continue;
      open += begins ? 1 : ends ? -1 : 0;
      source += parts[part];
    }
    for (; open > 0; --open) source += "{% endif %}";
    sources.push_back(std::move(source));
  }
  compare_with_oracle(sources, context());
}

BOOST_AUTO_TEST_CASE(an_error_names_its_line_and_column) {
  const Error broken = error_of("ab\n{{ 1 }}\n  {{ x | nope }}");
  BOOST_TEST((broken.code == errc::template_invalid));
  BOOST_TEST(broken.line == 3U);
  BOOST_TEST(broken.column == 10U);
  BOOST_TEST(broken.message ==
             "chat template, line 3, column 10: the filter 'nope' is not supported here");
  const Error failed = error_of("x\n{{ missing.y }}");
  BOOST_TEST((failed.code == errc::template_failed));
  BOOST_TEST(failed.line == 2U);
  const Error raised = error_of("{{ raise_exception('roles must alternate') }}");
  BOOST_TEST((raised.code == errc::template_raised));
  BOOST_TEST(raised.message.ends_with("roles must alternate"));
}

BOOST_AUTO_TEST_CASE(every_way_to_grow_without_end_is_stopped) {
  const std::vector<std::string> hostile = {
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{{ range(100000000) }}",
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% "
      "endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "endfor %}"
      "{{ ns.x }}",
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}{{ ns.x | tojson }}",
      "{% for i in range(999999) %}{{ 'x' * 1000000 }}{% endfor %}",
      "{{ 'ab' * 1000000000000 }}",
      "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
      "{% set ns = namespace() %}{% set ns.me = ns %}",
      "{% set ns = namespace() %}{% set ns.me = [ns] %}",
      "{{ 2 ** 100 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ 99999999999999999999 }}",
      std::string(100, '(') + "1" + std::string(100, ')'),
      "{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}",
      "{{ " + std::string(5000, '[') + "1" + std::string(5000, ']') + " }}",
      "{{ " + std::string(50000, '-') + "1 }}",
      "{{ " +
          [] {
            std::string s;
            for (int i = 0; i < 9999; ++i) s += "not ";
            return s;
          }() +
          "1 }}",
      "{{ 1 " +
          [] {
            std::string s;
            for (int i = 0; i < 9999; ++i) s += "+ 1 ";
            return s;
          }() +
          "}}",
      "{{ x" +
          [] {
            std::string s;
            for (int i = 0; i < 9999; ++i) s += ".a";
            return s;
          }() +
          "}}",
      [] {
        std::string s;
        for (int i = 0; i < 9999; ++i) s += "{% if 1 %}";
        return s;
      }(),
      [] {
        std::string s = "{% if 1 %}";
        for (int i = 0; i < 9999; ++i) s += "{% elif 1 %}";
        return s;
      }(),
      std::string(limits::template_bytes_max + 1, 'a'),
  };
  for (const auto& source : hostile) {
    const auto text = render(source, {});
    const bool plain = source.starts_with("((");   // no tag at all: text
    BOOST_TEST(text.has_value() == plain, source.substr(0, 90));
  }
  const auto many = render("{% for i in range(100000) %}x{% endfor %}", {});
  BOOST_REQUIRE(many.has_value());
  BOOST_TEST(many->size() == 100000U);
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_said_when_the_template_is_parsed) {
  for (const char* source :
       {"{% include 'x' %}", "{% extends 'x' %}", "{% block a %}{% endblock %}",
        "{% import 'x' as y %}", "{% call m() %}{% endcall %}",
        "{% for x in y recursive %}{% endfor %}", "{{ x | xmlattr }}"}) {
    const Error error = error_of(source);
    BOOST_TEST((error.code == errc::template_invalid));
    BOOST_TEST(error.message.find("not supported") != std::string::npos, error.message);
  }
}

BOOST_AUTO_TEST_CASE(generation_tags_are_their_body) {
  BOOST_TEST(render_or_throw("a{% generation %}b{% endgeneration %}c") == "abc");
}

BOOST_AUTO_TEST_CASE(no_prefix_of_a_template_is_more_than_an_error) {
  const std::string source =
      "{%- for m in messages if m.role in ['a', \"b\\n\"] -%}{{ m['x'][1:]|trim(chars='x') ~ 1.5 }}"
      "{% set n.a = {'k': [1, not x is defined]} %}{% raw %}{{{% endraw %}{# c #}{% else %}"
      "{% macro f(a, b=2) %}{{ a }}{% endmacro %}{{ f(1, b=-3) }}{%- endfor +%}\n";
  for (std::size_t size = 0; size <= source.size(); ++size) {
    const auto text = render(source.substr(0, size), {});
    if (!text) BOOST_TEST(text.error().line >= 1U);
  }
  BOOST_TEST(render_or_throw("ok") == "ok");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::text::test
