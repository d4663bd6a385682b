// SPDX-License-Identifier: Apache-2.0
// Segments of a real step: convolution stems on one trunk, differentiated and simplified, of which
// one is frozen or not asked for.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "backends/reference/kernels.hpp"
#include "core/plan/segment_cache.hpp"
#include "core/rewrite/simplify.hpp"
#include "tests/support/counted_backend.hpp"
#include "tests/support/decoder_graph.hpp"

namespace gradrack {
namespace {

using toy::CountedBackend;
using Names = std::vector<std::string>;

struct StemOptions {
  std::string frozen = "";                                   // a stem
  std::set<std::string> active = {"box", "class", "point"};  // objectives
  std::string widened = "";                                  // a stem with other dims
};

/// Three scales of a trunk with three stems each, and plain descent behind a clipped norm.
class StemsBuilder {
 public:
  explicit StemsBuilder(StemOptions options) : options_(std::move(options)), e_(graph_) {}

  Graph run() {
    ValueId x = source(Source::kInput, "images", {Dim::symbol("batch"), Dim(3), Dim(8), Dim(8)});
    std::map<std::string, ValueId> losses;  // by kind
    for (const char* scale : {"p3", "p4", "p5"}) {
      x = layer(std::string("trunk.") + scale, x, scale == std::string("p3") ? 3 : 4, 4);
      for (const char* kind : {"box", "class", "point"}) {
        const ValueId loss = stem(std::string("heads.") + scale + "." + kind, x);
        const auto [at, made] = losses.emplace(kind, loss);
        if (!made) at->second = e_.add(at->second, loss);
      }
    }
    const ValueId one = e_.constant(GR_FLOAT32, 1);
    for (const auto& [kind, sum] : losses) {
      if (options_.active.count(kind) == 0) continue;
      EXPECT_TRUE(graph_.add_objective(kind, sum, one).ok());
    }
    EXPECT_TRUE(e_.status().ok()) << e_.status().message();
    update();
    auto simple = simplify(graph_);
    EXPECT_TRUE(simple.ok()) << simple.status().message();
    return std::move(*simple);
  }

 private:
  ValueId source(Source kind, const std::string& name, Shape shape) {
    Value value;
    value.source = kind;
    value.name = name;
    value.type = {GR_FLOAT32, std::move(shape)};
    auto made = graph_.add_source(std::move(value));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }
  ValueId weight(const std::string& stage, const std::string& name, Shape shape) {
    const bool frozen = !options_.frozen.empty() && stage == options_.frozen;
    if (!frozen) trained_.push_back(stage + name);
    return source(Source::kParameter, stage + name, std::move(shape));
  }

  ValueId layer(const std::string& stage, ValueId x, int64_t in, int64_t out) {
    graph_.set_stage(graph_.intern_stage(stage));
    const ValueId w = weight(stage, ".w", {out, in, 3, 3});
    const ValueId y = e_.op("Conv", {x, w}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
    const ValueId scale = weight(stage, ".scale", {out}), bias = weight(stage, ".bias", {out});
    const ValueId mean = source(Source::kBuffer, stage + ".mean", {out});
    const ValueId var = source(Source::kBuffer, stage + ".var", {out});
    const auto norm = e_.multi("", "BatchNormalization", {y, scale, bias, mean, var},
                               {{"training_mode", int64_t{1}}}, 3);
    return e_.op("Swish", {norm[0]});
  }

  ValueId stem(const std::string& stage, ValueId x) {
    const ValueId y = layer(stage, x, 4, stage == options_.widened ? 6 : 4);
    const ValueId loss = e_.reduce_sum(e_.mul(y, y), {0, 1, 2, 3}, false);
    graph_.set_stage(-1);
    return loss;
  }

  void update() {
    std::vector<ValueId> wrt;
    for (const std::string& name : trained_) wrt.push_back(graph_.find_source(name));
    auto gradients = differentiate(graph_, wrt);
    ASSERT_TRUE(gradients.ok()) << gradients.status().message();
    graph_.set_kind(GR_KIND_UPDATE);
    ValueId norm = GR_NO_VALUE;
    for (const ValueId gradient : gradients->of) {
      if (gradient == GR_NO_VALUE) continue;
      const ValueId squares = e_.own("SumSquares", {gradient});
      norm = norm == GR_NO_VALUE ? squares : e_.add(norm, squares);
    }
    const ValueId factor = e_.div(1.0, e_.add(norm, 1.0));
    for (size_t k = 0; k < trained_.size(); ++k) {
      const ValueId gradient = gradients->of[k], parameter = graph_.find_source(trained_[k]);
      if (gradient == GR_NO_VALUE) continue;
      graph_.set_stage(graph_.value(parameter).stage);
      const ValueId step = e_.mul(gradient, e_.cast(factor, GR_FLOAT32));
      ASSERT_TRUE(graph_.add_write(parameter, e_.sub(parameter, step)).ok());
    }
    graph_.set_stage(-1);
    ASSERT_TRUE(e_.status().ok()) << e_.status().message();
  }

  StemOptions options_;
  Graph graph_;
  Emitter e_;
  std::vector<std::string> trained_;
};

class StemsTest : public ::testing::Test {
 protected:
  static host::KernelTable kernels() {
    host::KernelTable table;
    reference::add_all_kernels(table);
    return table;
  }

  std::shared_ptr<const Plan> plan_of(StemOptions options) {
    const Graph graph = StemsBuilder(std::move(options)).run();
    PlanRequest request;
    request.graph = &graph;
    request.bindings = {{"batch", 2}};
    request.devices = {counted.device()};
    request.segments = segments;
    auto made = make_plan(request);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? *made : std::make_shared<const Plan>();
  }

  toy::HostBackend inner{kernels()};
  CountedBackend counted{inner.table()};
  std::shared_ptr<SegmentCache> segments = std::make_shared<SegmentCache>();
};

TEST_F(StemsTest, FreezingOneRebuildsItsBackwardAlone) {
  const auto first = plan_of({});
  const auto frozen = plan_of({.frozen = "heads.p4.class"});
  EXPECT_EQ(frozen->segment_report.built, (Names{"heads.p4.class backward"}));
  EXPECT_EQ(frozen->segment_report.count, first->segment_report.count - 1);  // no update
}

TEST_F(StemsTest, AnObjectiveThatIsNotAskedForLeavesTheOtherStemsShared) {
  const auto first = plan_of({});
  const auto fewer = plan_of({.active = {"box", "class"}});
  EXPECT_EQ(fewer->segment_report.built,
            (Names{"trunk.p5 backward", "trunk.p4 backward", "trunk.p3 backward"}));
  const auto back = plan_of({});
  EXPECT_TRUE(back->segment_report.built.empty());
}

TEST_F(StemsTest, AStemOfOtherDimsIsBuiltAlone) {
  const auto first = plan_of({});
  const auto wider = plan_of({.widened = "heads.p3.box"});
  EXPECT_EQ(wider->segment_report.built,
            (Names{"heads.p3.box forward", "heads.p3.box backward", "heads.p3.box update"}));
}

}  // namespace
}  // namespace gradrack
