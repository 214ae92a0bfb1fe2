// verify_test.cpp: no program that create() accepts can leave its memory or race its partner.
#include "device/kernels/verify.hpp"
#include "device/kernels/flow.hpp"
#include "device/program/lower.hpp"
#include "tests/device/kernels/models.hpp"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace duet::device::test {
namespace {

constexpr std::uint32_t context = 96;

/// A valid graph to be spoilt.
struct Graph {
  explicit Graph(GraphKind kind = GraphKind::prefill)
      : model(random_model(odd_config(), DType::q8_0, 7)),
        programs(*lower(model->config, model->tensors, "odd", kind, 0, 2)),
        tensors(model->views),
        kv(kv_layout(*model, context)) {}

  [[nodiscard]] boost::system::result<std::shared_ptr<const Executable>, std::string> create()
      const {
    return Executable::create(programs, tensors, kv, arithmetic);
  }
  [[nodiscard]] std::string error() const {
    const auto made = create();
    return made.has_error() ? made.error() : "accepted";
  }
  /// Number of the `nth` operation with this opcode.
  [[nodiscard]] std::size_t find(Opcode opcode, std::size_t nth = 0) const {
    for (std::size_t i = 0; i < programs[0].ops.size(); ++i)
      if (programs[0].ops[i].opcode == opcode && nth-- == 0) return i;
    BOOST_FAIL("no such operation");
    return 0;
  }
  /// Applies `change` to operation `number` of both cores.
  void both(std::size_t number, const std::function<void(Op&)>& change) {
    for (Program& p : programs) change(p.ops[number]);
  }

  std::unique_ptr<TestModel> model;
  std::vector<Program> programs;
  std::vector<TensorView> tensors;
  KvLayout kv;
  Arithmetic arithmetic = Arithmetic::w8a8;
};

void refused(const std::function<void(Graph&)>& spoil, const std::string& reason) {
  Graph graph;
  spoil(graph);
  const std::string error = graph.error();
  BOOST_TEST(error.find(reason) != std::string::npos,
             "expected '" << reason << "', got: " << error);
  BOOST_TEST((error.find("graph 'odd'") != std::string::npos ||
              error.find("programs") != std::string::npos),
             error);
}

void refused_op(Opcode opcode, const std::function<void(Op&)>& change, const std::string& reason) {
  refused([&](Graph& g) { g.both(g.find(opcode), change); }, reason);
}

}   // namespace

// a damaged program is refused before anything runs.
BOOST_AUTO_TEST_SUITE(kernels_verify)

BOOST_AUTO_TEST_CASE(what_lowering_writes_is_accepted) {
  for (const GraphKind kind : {GraphKind::prefill, GraphKind::decode}) {
    Graph graph(kind);
    BOOST_TEST(graph.error() == "accepted");
    const auto made = graph.create();
    BOOST_REQUIRE(made.has_value());
    BOOST_TEST((*made)->vocabulary() == 517U);
  }
}

BOOST_AUTO_TEST_CASE(an_error_names_graph_core_operation_and_fault) {
  Graph graph;
  const std::size_t number = graph.find(Opcode::matmul);
  graph.programs[1].ops[number].first = 4000;
  BOOST_TEST(graph.error() == "graph 'odd' core 1 op " + std::to_string(number) +
                                  " (matmul): the share [4000, 4064) passes 160");
}

BOOST_AUTO_TEST_CASE(heads_that_do_not_belong_together_are_refused) {
  refused([](Graph& g) { g.programs.clear(); }, "1 or 2 programs");
  refused([](Graph& g) { g.programs.push_back(g.programs[0]); }, "1 or 2 programs");
  refused([](Graph& g) { g.programs.pop_back(); }, "compiled for 2 cores");
  refused([](Graph& g) { g.programs[1].graph = "odd'"; }, "is paired with");
  refused([](Graph& g) { std::swap(g.programs[0], g.programs[1]); }, "in the place of core 0");
  refused([](Graph& g) { g.programs[1].kind = GraphKind::decode; }, "kind");
  refused([](Graph& g) { g.programs[1].chip = 1; }, "chip differs");
  refused([](Graph& g) { g.programs[1].numerics = 2; }, "numerics 2");
  refused([](Graph& g) { g.programs[1].logits = 0; }, "logits buffer differs");
  refused([](Graph& g) { g.programs[1].buffers[3].width = 64; }, "buffers differ");
  refused([](Graph& g) { g.programs[1].ops.pop_back(); }, "not end");
  refused([](Graph& g) { g.programs[0].ops.clear(); }, "not end");
  refused([](Graph& g) { g.programs[1].ops.erase(g.programs[1].ops.begin()); }, "operations");
}

BOOST_AUTO_TEST_CASE(buffers_layouts_and_limits_are_checked) {
  const auto buffer = [](std::size_t index, std::function<void(BufferDecl&)> change) {
    return [=](Graph& g) {
      for (Program& p : g.programs) change(p.buffers[index]);
    };
  };
  refused(buffer(0, [](BufferDecl& b) { b.width = 0; }), "width");
  refused(buffer(0, [](BufferDecl& b) { b.width = 0xffffffffU; }), "width");
  refused(buffer(1, [](BufferDecl& b) { b.width = 161; }), "multiple of 32");
  refused(buffer(1, [](BufferDecl& b) { b.scope = BufferScope::shared; }), "not local");
  refused(buffer(1, [](BufferDecl& b) { b.kind = BufferKind::f32; }), "not an activation");
  refused(buffer(0, [](BufferDecl& b) { b.kind = static_cast<BufferKind>(7); }), "unknown kind");
  refused(buffer(0, [](BufferDecl& b) { b.scope = static_cast<BufferScope>(0); }), "unknown scope");
  refused(buffer(10, [](BufferDecl& b) { b.scope = BufferScope::local; }), "not shared");
  refused(
      [](Graph& g) {
        for (Program& p : g.programs)
          p.buffers.resize(65, {BufferKind::f32, BufferScope::local, 8});
      },
      "more than 64 buffers");
  refused(
      [](Graph& g) {
        for (Program& p : g.programs) p.logits = 99;
      },
      "no buffer 99");
  refused(
      [](Graph& g) {
        for (Program& p : g.programs) p.logits = 0;
      },
      "logits buffer has 160");
  refused([](Graph& g) { g.kv.tokens = 0; }, "KV layout");
  refused([](Graph& g) { g.kv.tokens = 0xffffffffU; }, "KV layout");
  refused([](Graph& g) { g.kv.layers = 2; }, "no layer 2");
  refused([](Graph& g) { g.kv.kv_heads = 2; }, "the KV layout 2");
  refused([](Graph& g) { g.kv.head_dim = 64; }, "head dimension 32 instead of 64");
  refused(
      [](Graph& g) {
        for (Program& p : g.programs) p.ops.insert(p.ops.begin(), 20000, p.ops.front());
      },
      "more than 16384");
  refused(
      [](Graph& g) {
        for (Program& p : g.programs) p.ops.insert(p.ops.begin(), 300, p.ops.front());
      },
      "without a meeting");
}

BOOST_AUTO_TEST_CASE(operations_with_a_wrong_field_are_refused) {
  refused_op(
      Opcode::embed, [](Op& o) { o.opcode = static_cast<Opcode>(77); }, "opcode 77");
  refused_op(
      Opcode::embed, [](Op& o) { o.reserved = 1; }, "reserved");
  refused_op(
      Opcode::embed, [](Op& o) { o.flags = 1; }, "flags");
  refused_op(
      Opcode::rope, [](Op& o) { o.flags = 4; }, "flags");
  refused_op(
      Opcode::embed, [](Op& o) { o.tensor = 1000; }, "no tensor 1000");
  refused_op(
      Opcode::embed, [](Op& o) { o.out = 1000; }, "no buffer 1000");
  refused_op(
      Opcode::embed, [](Op& o) { o.first += 8; }, "multiples of 32");
  refused_op(
      Opcode::embed, [](Op& o) { o.count = 0xfffffff0U; }, "passes 160");
  refused_op(
      Opcode::embed, [](Op& o) { o.width = 128; }, "instead of 128");
  refused_op(
      Opcode::rms_norm, [](Op& o) { o.epsilon = 0; }, "epsilon");
  refused_op(
      Opcode::rms_norm, [](Op& o) { o.epsilon = std::numeric_limits<float>::infinity(); },
      "epsilon");
  refused_op(
      Opcode::rms_norm, [](Op& o) { o.tensor = 0; }, "not F32");
  refused_op(
      Opcode::rms_norm, [](Op& o) { o.in = 1; }, "not F32");
  refused_op(
      Opcode::rms_norm, [](Op& o) { o.out = 0; }, "not an activation");
  refused_op(
      Opcode::quantize, [](Op& o) { o.in = 7; }, "instead of 160");
  refused_op(
      Opcode::matmul, [](Op& o) { o.tensor = 1; }, "not Q8_0");
  refused_op(
      Opcode::matmul, [](Op& o) { o.tensor = no_tensor; }, "no tensor");
  refused_op(
      Opcode::matmul, [](Op& o) { o.bias = 0; }, "bias");
  refused_op(
      Opcode::matmul, [](Op& o) { o.out = 3; }, "instead of 160");
  refused_op(
      Opcode::matmul, [](Op& o) { o.width = 352; }, "instead of 352");
  refused_op(
      Opcode::rope, [](Op& o) { o.rope_dims = 3; }, "rope_dims");
  refused_op(
      Opcode::rope, [](Op& o) { o.rope_dims = 64; }, "rope_dims");
  refused_op(
      Opcode::rope, [](Op& o) { o.rope_base = std::nanf(""); }, "rope base");
  refused_op(
      Opcode::rope, [](Op& o) { o.head_dim = 0; }, "head dimension 0");
  refused_op(
      Opcode::rope, [](Op& o) { o.count = 6; }, "passes 5");
  refused_op(
      Opcode::store_kv, [](Op& o) { o.layer = 3; }, "no layer 3");
  refused_op(
      Opcode::store_kv, [](Op& o) { o.in2 = no_buffer; }, "no buffer");
  refused_op(
      Opcode::store_kv, [](Op& o) { o.in = 2; }, "instead of 32");
  refused_op(
      Opcode::attention, [](Op& o) { o.group = 0; }, "group");
  refused_op(
      Opcode::attention, [](Op& o) { o.group = 4; }, "group");
  refused_op(
      Opcode::attention, [](Op& o) { o.out = o.in; }, "its own input");
  refused_op(
      Opcode::attention, [](Op& o) { o.layer = 0xffffffffU; }, "no layer");
  refused_op(
      Opcode::swiglu, [](Op& o) { o.first += 4; }, "multiples of 8");
  refused_op(
      Opcode::swiglu, [](Op& o) { o.in2 = 0; }, "instead of 352");
  refused_op(
      Opcode::sync, [](Op& o) { o.first = 5; }, "number 5 instead of 0");
}

BOOST_AUTO_TEST_CASE(tensors_that_do_not_match_are_refused) {
  const auto tensor = [](std::size_t index, std::function<void(TensorView&)> change) {
    return [=](Graph& g) { change(g.tensors[index]); };
  };
  refused(tensor(0, [](TensorView& t) { t.data = nullptr; }), "no data");
  refused(tensor(0, [](TensorView& t) { t.columns = 128; }), "128 columns");
  refused(tensor(0, [](TensorView& t) { t.rows = 0; }), "rows or columns");
  refused(tensor(0, [](TensorView& t) { t.rows = std::uint64_t{1} << 60; }), "rows or columns");
  refused(tensor(0, [](TensorView& t) { t.dtype = DType::i32; }), "type that kernels do not read");
  refused(tensor(0, [](TensorView& t) { t.rows = 600; }), "instead of 600");
  refused(tensor(1, [](TensorView& t) { t.columns = 96; }), "not a vector of 160");
  refused(tensor(1, [](TensorView& t) { t.data += 1; }), "misaligned");
  refused([](Graph& g) { g.tensors.clear(); }, "no tensor 0");
}

BOOST_AUTO_TEST_CASE(races_between_the_cores_are_refused) {
  const auto core1 = [](Opcode opcode, std::size_t nth, std::function<void(Op&)> change) {
    return [=](Graph& g) { change(g.programs[1].ops[g.find(opcode, nth)]); };
  };
  // Both write the same rows; both read what the other writes.
  refused(core1(Opcode::matmul, 0, [](Op& o) { o.first = 0; }), "without a meeting");
  refused(core1(Opcode::embed, 0, [](Op& o) { o.first = 64, o.count = 96; }), "without a meeting");
  refused(core1(Opcode::attention, 0,
                [](Op& o) {
                  o.first = 2;
                  o.count = 3;
                }),
          "without a meeting");
  refused(core1(Opcode::rope, 0,
                [](Op& o) {
                  o.first = 2;
                  o.count = 3;
                }),
          "without a meeting");
  // A meeting is missing in both.
  for (std::size_t nth = 0; nth < 5; ++nth) {
    refused(
        [nth](Graph& g) {
          const auto at = static_cast<std::ptrdiff_t>(g.find(Opcode::sync, nth));
          std::uint32_t number = 0;
          for (Program& p : g.programs) {
            p.ops.erase(p.ops.begin() + at);
            number = 0;
            for (Op& op : p.ops)
              if (op.opcode == Opcode::sync) op.first = number++;
          }
        },
        "without a meeting");
  }
  refused(core1(Opcode::swiglu, 0, [](Op& o) { o.in = 8; }), "more than its share");
}

BOOST_AUTO_TEST_CASE(reading_what_nothing_has_written_is_refused) {
  const auto none = [](Opcode opcode, std::size_t nth) {
    return [=](Graph& g) { g.both(g.find(opcode, nth), [](Op& o) { o.count = 0; }); };
  };
  refused(none(Opcode::embed, 0), "before all of it is written");
  refused(none(Opcode::matmul, 1), "before all of it is written");
  refused(none(Opcode::store_kv, 1), "the keys of layer 1");
  refused(none(Opcode::attention, 0), "before all of it is written");
  refused(
      [](Graph& g) {
        Op& last = g.programs[1].ops[g.programs[1].ops.size() - 2];
        last.count -= 1;
      },
      "the logits are not all written");
  refused(
      [](Graph& g) {
        // Keys after the turn to the last token would be missing for the others.
        const std::size_t at = g.find(Opcode::last_token);
        for (Program& p : g.programs) std::swap(p.ops[at], p.ops[2]);
      },
      "after last_token");
}

BOOST_AUTO_TEST_CASE(ranges_join_what_touches) {
  Ranges ranges;
  ranges.add(10, 20);
  ranges.add(30, 40);
  BOOST_TEST(!ranges.covers(10, 40));
  ranges.add(20, 30);
  BOOST_TEST(ranges.covers(10, 40));
  BOOST_TEST(!ranges.covers(9, 11));
  BOOST_TEST(!ranges.covers(39, 41));
  ranges.add(0, 5);
  ranges.add(7, 7);
  BOOST_TEST(!ranges.covers(7, 8));
  ranges.add(4, 12);
  BOOST_TEST(ranges.covers(0, 40));
  BOOST_TEST(ranges.covers(50, 50));
}

// Under AddressSanitizer this is the proof that what is accepted stays within its memory.
BOOST_AUTO_TEST_CASE(programs_with_random_faults_are_refused_or_run_within_their_memory) {
  std::mt19937 random(11);
  const Graph good;
  std::size_t accepted = 0;
  std::vector<std::uint32_t> tokens(70);
  for (std::uint32_t& token : tokens) token = static_cast<std::uint32_t>(random() % 517);
  constexpr int rounds = 4000;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Program> programs = good.programs;
    for (int fault = 1 + static_cast<int>(random() % 2); fault > 0; --fault) {
      const std::size_t number = random() % programs[0].ops.size();
      const std::size_t word = random() % (sizeof(Op) / 4);
      const std::uint32_t values[] = {
          0,  1,  2,   3,           5,           8,
          32, 64, 160, 0xffffffffU, 0x3f800000U, static_cast<std::uint32_t>(random())};
      const std::uint32_t value = values[random() % std::size(values)];
      const std::uint32_t mode = random() % 3;
      const std::size_t only = random() % 2;
      for (std::size_t core = 0; core < 2; ++core) {
        if (mode == 0 && core != only) continue;
        auto words =
            std::bit_cast<std::array<std::uint32_t, sizeof(Op) / 4>>(programs[core].ops[number]);
        words[word] = mode == 2 ? words[word] + value : value;
        programs[core].ops[number] = std::bit_cast<Op>(words);
      }
    }
    const auto made = Executable::create(programs, good.tensors, good.kv, Arithmetic::w8a8);
    if (made.has_error()) continue;
    ++accepted;
    // Exactly as much memory as is promised, so that one byte too far is seen.
    std::vector<std::uint64_t> kv(good.kv.bytes(Arithmetic::w8a8) / 8);
    std::vector<float> logits((*made)->vocabulary());
    const auto space = (*made)->make_workspace(32);
    SerialRunner runner;
    (*made)->run(tokens, 0, std::as_writable_bytes(std::span(kv)), logits, *space, runner);
  }
  BOOST_TEST(accepted > 50U);
  BOOST_TEST(accepted < static_cast<std::size_t>(rounds) / 2);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace duet::device::test
