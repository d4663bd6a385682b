// SPDX-License-Identifier: Apache-2.0
// Feed over a data source made here: what fits, what does not, and whose words the errors carry.
#include "core/data/feed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace gradrack {
namespace {

testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << text << "\" lacks \"" << part << "\"";
}

// A source whose declaration each test sets; it remembers what it was asked.
struct FakeData {
  std::vector<gr_data_output_t> outputs;
  gr_data_t api = {};
  gr_batch_request_t asked = {};
  uint32_t asked_outputs = 0;
  std::vector<int64_t> last_shape;
  std::vector<int64_t> last_strides;
  int64_t answer_rows = -1;  // -1: as asked
  int32_t code = GR_OK;

  FakeData() {
    api.struct_size = sizeof api;
    api.self = this;
    api.info = [](void* self, gr_data_info_t* out, gr_error_t*) -> int32_t {
      auto* fake = static_cast<FakeData*>(self);
      out->output_count = static_cast<uint32_t>(fake->outputs.size());
      out->outputs = fake->outputs.data();
      out->output_stride = sizeof(gr_data_output_t);
      out->vocab = 65;
      out->block = 64;
      out->train_items = 1000;
      out->validation_items = 10;
      out->summary = "a fake";
      return GR_OK;
    };
    api.rows = [](void* self, const gr_batch_request_t* request, int64_t* rows,
                  gr_error_t*) -> int32_t {
      auto* fake = static_cast<FakeData*>(self);
      fake->asked = *request;
      *rows = fake->answer_rows < 0 ? request->batch_size : fake->answer_rows;
      return GR_OK;
    };
    api.batch = [](void* self, const gr_batch_request_t* request, DLTensor* const* tensors,
                   uint32_t count, gr_error_t* err) -> int32_t {
      auto* fake = static_cast<FakeData*>(self);
      fake->asked = *request;
      fake->asked_outputs = count;
      if (fake->code != GR_OK) return gr_fail(err, fake->code, "tokens", "id 70 at row 3");
      *static_cast<int64_t*>(tensors[0]->data) = 42;
      const DLTensor& last = *tensors[count - 1];
      fake->last_shape.assign(last.shape, last.shape + last.ndim);
      fake->last_strides.assign(last.strides, last.strides + last.ndim);
      const auto bytes = last.shape[0] * last.strides[0] * int64_t{last.dtype.bits / 8};
      std::memset(last.data, 0, static_cast<size_t>(bytes));
      return GR_OK;
    };
  }

  FakeData& add(const char* name, gr_dtype_t dtype, std::vector<int64_t> dims, int64_t limit = 0) {
    gr_data_output_t output = {};
    output.name = name;
    output.dtype = dtype;
    output.rank = static_cast<uint32_t>(dims.size()) + 1;
    output.dims[0].symbol = "batch";
    for (size_t k = 0; k < dims.size(); ++k) output.dims[k + 1].size = dims[k];
    output.limit = limit;
    outputs.push_back(output);
    return *this;
  }
};

const Dim kBatch = Dim::symbol("batch");

ValueId add_input(Graph* graph, const std::string& name, gr_dtype_t dtype, Shape shape,
                  int64_t limit = 0) {
  Value value;
  value.source = Source::kInput;
  value.name = name;
  value.type = {dtype, std::move(shape)};
  value.limit = limit;
  const Result<ValueId> id = graph->add_source(std::move(value));
  EXPECT_TRUE(id.ok()) << id.status().message();
  return *id;
}

Result<Feed> feed_of(const FakeData& fake) { return Feed::make(fake.api, "fake", 7); }

Result<Bindings> fit(const FakeData& fake, const Graph& graph, int64_t rows = 4) {
  const Result<Feed> feed = feed_of(fake);
  if (!feed.ok()) return feed.status();
  return feed->bindings(graph, rows);
}

std::string refusal(const FakeData& fake, const Graph& graph) {
  const Result<Bindings> bindings = fit(fake, graph);
  EXPECT_FALSE(bindings.ok());
  EXPECT_EQ(bindings.status().code(), GR_INVALID_ARGUMENT);
  return bindings.status().message();
}

TEST(Feed, MatchesInputsByNameInAnyOrder) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64}, 65).add("targets", GR_INT64, {64}, 65);
  fake.add("unused", GR_FLOAT32, {2});
  Graph graph;
  add_input(&graph, "targets", GR_INT64, {kBatch, Dim(64)});
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim(64)}, 65);
  const Result<Bindings> bindings = fit(fake, graph, 3);
  ASSERT_TRUE(bindings.ok()) << bindings.status().message();
  EXPECT_EQ(*bindings, (Bindings{{"batch", 3}}));
  EXPECT_EQ(feed_of(fake)->names(), (std::vector<std::string>{"tokens", "targets", "unused"}));
  EXPECT_EQ(feed_of(fake)->info().vocab, 65);
}

TEST(Feed, BindsSymbolsToTheDatasNumbers) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64});
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim::symbol("time")});
  const Result<Bindings> bindings = fit(fake, graph, 3);
  ASSERT_TRUE(bindings.ok()) << bindings.status().message();
  EXPECT_EQ(*bindings, (Bindings{{"batch", 3}, {"time", 64}}));
}

TEST(Feed, ChecksExpressionsOfSymbols) {
  const Dim time = Dim::symbol("time");
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, time});
  add_input(&graph, "wide", GR_FLOAT32, {kBatch, time * Dim(2) + Dim(1)});
  FakeData right;
  right.add("tokens", GR_INT64, {64}).add("wide", GR_FLOAT32, {129});
  EXPECT_TRUE(fit(right, graph).ok());
  FakeData wrong;
  wrong.add("tokens", GR_INT64, {64}).add("wide", GR_FLOAT32, {128});
  EXPECT_TRUE(contains(refusal(wrong, graph), "data 'fake' gives float32[batch, 128]"));
}

TEST(Feed, RefusesAnInputThatNothingServes) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64}).add("targets", GR_INT64, {64});
  Graph graph;
  add_input(&graph, "token", GR_INT64, {kBatch, Dim(64)});
  EXPECT_EQ(refusal(fake, graph),
            "model input 'token' is not brought by data 'fake', which has tokens, targets (did you "
            "mean 'tokens'?)");
}

TEST(Feed, NamesBothShapesThatDiffer) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {128});
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim(64)});
  EXPECT_EQ(refusal(fake, graph),
            "model input 'tokens' is int64[batch, 64], data 'fake' gives int64[batch, 128]");
}

TEST(Feed, RefusesAnotherRankOrDtype) {
  FakeData fake;
  fake.add("x", GR_FLOAT32, {8, 8});
  Graph flat;
  add_input(&flat, "x", GR_FLOAT32, {kBatch, Dim(64)});
  EXPECT_TRUE(contains(refusal(fake, flat), "data 'fake' gives float32[batch, 8, 8]"));
  Graph whole;
  add_input(&whole, "x", GR_INT64, {kBatch, Dim(8), Dim(8)});
  EXPECT_TRUE(contains(refusal(fake, whole), "is int64[batch, 8, 8], data 'fake' gives float32"));
}

TEST(Feed, RefusesASymbolWithTwoValues) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64}).add("targets", GR_INT64, {63});
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim::symbol("time")});
  add_input(&graph, "targets", GR_INT64, {kBatch, Dim::symbol("time")});
  EXPECT_TRUE(contains(refusal(fake, graph), "'time' would be both 64 and 63"));
}

TEST(Feed, RefusesIdsBeyondTheModelsLimit) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64}, 84);
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim(64)}, 64);
  EXPECT_TRUE(contains(refusal(fake, graph),
                       "data 'fake' may bring 'tokens' up to 83, the model takes values below 64"));
}

TEST(Feed, AllowsAnEqualLimit) {
  FakeData fake;
  fake.add("tokens", GR_INT64, {64}, 64);
  Graph graph;
  add_input(&graph, "tokens", GR_INT64, {kBatch, Dim(64)}, 64);
  EXPECT_TRUE(fit(fake, graph).ok());
}

TEST(Feed, RefusesADeclarationThatBreaksTheRules) {
  Graph graph;
  FakeData none;
  EXPECT_TRUE(contains(refusal(none, graph), "data 'fake' declares no outputs"));
  FakeData twice;
  twice.add("x", GR_INT64, {1}).add("x", GR_INT64, {1});
  EXPECT_TRUE(contains(refusal(twice, graph), "output 1 'x' is declared twice"));
  FakeData no_batch;
  no_batch.add("x", GR_INT64, {1});
  no_batch.outputs[0].dims[0] = {4, nullptr};
  EXPECT_TRUE(contains(refusal(no_batch, graph), "must have \"batch\" as its first dim"));
  FakeData symbol;
  symbol.add("x", GR_INT64, {1});
  symbol.outputs[0].dims[1].symbol = "time";
  EXPECT_TRUE(contains(refusal(symbol, graph), "has a dim 1 that is no number"));
  FakeData rank;
  rank.add("x", GR_INT64, {1});
  rank.outputs[0].rank = GR_MAX_RANK + 1;
  EXPECT_TRUE(contains(refusal(rank, graph), "has rank 9, wanted 1 to 8"));
}

class FeedBatch : public testing::Test {
 protected:
  void SetUp() override {
    fake_.add("tokens", GR_INT64, {1}).add("unused", GR_FLOAT32, {3});
    feed_ = std::make_unique<Result<Feed>>(feed_of(fake_));
    ASSERT_TRUE(feed_->ok()) << feed_->status().message();
  }
  Feed& feed() { return **feed_; }

  FakeData fake_;
  std::unique_ptr<Result<Feed>> feed_;
  int64_t content_[2] = {};
  int64_t shape_[2] = {2, 1};
  int64_t strides_[2] = {1, 1};
  DLTensor tensor_ = {content_, {kDLCPU, 0}, 2, gr_dl_dtype(GR_INT64), shape_, strides_, 0};
};

TEST_F(FeedBatch, FillPassesSeedSplitIndexAndSize) {
  ASSERT_TRUE(feed().fill(GR_SPLIT_VALIDATION, 5, 2, 2, {&tensor_, nullptr}).ok());
  EXPECT_EQ(content_[0], 42);
  EXPECT_EQ(fake_.asked.struct_size, sizeof(gr_batch_request_t));
  EXPECT_EQ(fake_.asked.split, GR_SPLIT_VALIDATION);
  EXPECT_EQ(fake_.asked.seed, 7u);
  EXPECT_EQ(fake_.asked.index, 5);
  EXPECT_EQ(fake_.asked.batch_size, 2);
  EXPECT_EQ(fake_.asked_outputs, 2u);
}

TEST_F(FeedBatch, UnreadOutputGetsDenseRoomOfItsOwn) {
  ASSERT_TRUE(feed().fill(GR_SPLIT_TRAIN, 0, 2, 2, {&tensor_, nullptr}).ok());
  EXPECT_EQ(fake_.last_shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(fake_.last_strides, (std::vector<int64_t>{3, 1}));
  ASSERT_TRUE(feed().fill(GR_SPLIT_VALIDATION, 1, 2, 1, {&tensor_, nullptr}).ok());
  EXPECT_EQ(fake_.last_shape, (std::vector<int64_t>{1, 3}));
}

TEST_F(FeedBatch, KeepsThePluginsWordsAndCode) {
  fake_.code = GR_OUT_OF_RANGE;
  const Status status = feed().fill(GR_SPLIT_TRAIN, 9, 2, 2, {&tensor_, nullptr});
  EXPECT_EQ(status.code(), GR_OUT_OF_RANGE);
  EXPECT_EQ(status.message(), "data 'fake': tokens: id 70 at row 3");
}

TEST_F(FeedBatch, ValidationEndsWithShortAndEmptyBatches) {
  for (const int64_t rows : {2, 1, 0}) {
    fake_.answer_rows = rows;
    const Result<int64_t> got = feed().rows(GR_SPLIT_VALIDATION, 3, 2);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(*got, rows);
  }
}

TEST_F(FeedBatch, RefusesRowsThatThePluginMayNotAnswer) {
  fake_.answer_rows = 3;
  EXPECT_EQ(feed().rows(GR_SPLIT_VALIDATION, 0, 2).status().code(), GR_INTERNAL);
  fake_.answer_rows = 1;
  EXPECT_EQ(feed().rows(GR_SPLIT_TRAIN, 0, 2).status().code(), GR_INTERNAL);
}

// gr.batch/1 beside a FakeData, as each test fills it in.
struct FakeBatches {
  gr_batch_info_t declared = {};
  gr_batch_description_t answer = {};
  gr_batch_t api = {};

  explicit FakeBatches(FakeData* fake) {
    api.struct_size = sizeof api;
    api.self = this;
    api.info = [](void* self, gr_batch_info_t* out, gr_error_t*) -> int32_t {
      const uint32_t size = out->struct_size;
      *out = static_cast<FakeBatches*>(self)->declared;
      out->struct_size = size;
      return GR_OK;
    };
    api.describe = [](void* self, const gr_batch_request_t*, gr_batch_description_t* out,
                      gr_error_t*) -> int32_t {
      *out = static_cast<FakeBatches*>(self)->answer;
      return GR_OK;
    };
    current = this;
    fake->api.get_extension = [](void*, const char* id) -> const void* {
      return std::strcmp(id, GR_EXT_BATCH) == 0 ? &current->api : nullptr;
    };
  }
  static inline FakeBatches* current = nullptr;
};

constexpr const char* kBoxNames[] = {"box"};
constexpr const char* kBothNames[] = {"box", "point"};
constexpr gr_objective_set_t kSets[] = {{kBothNames, 2}, {kBoxNames, 1}};
constexpr gr_batch_symbol_t kTime[] = {{"time", 9}};

TEST(FeedBatches, WithoutTheExtensionEveryBatchIsAlike) {
  FakeData fake;
  fake.add("x", GR_FLOAT32, {4});
  const Result<Feed> feed = feed_of(fake);
  ASSERT_TRUE(feed.ok());
  EXPECT_TRUE(feed->objective_sets().empty());
  EXPECT_EQ(feed->describe(GR_SPLIT_TRAIN, 5, 2)->set, 0u);
}

TEST(FeedBatches, ReadsSetsAndBindsDeclaredSymbols) {
  FakeData fake;
  fake.add("x", GR_FLOAT32, {0, 4});
  fake.outputs[0].dims[1].symbol = "time";
  FakeBatches batches(&fake);
  batches.declared.sets = kSets;
  batches.declared.set_count = 2;
  batches.declared.symbols = kTime;
  batches.declared.symbol_count = 1;
  batches.answer.objective_set = 1;
  batches.answer.sizes[0] = 7;
  const Result<Feed> feed = feed_of(fake);
  ASSERT_TRUE(feed.ok()) << feed.status().message();
  EXPECT_EQ(feed->objective_sets()[1], (std::vector<std::string>{"box"}));
  EXPECT_EQ(feed->largest()[0], 9);
  const Result<BatchDescription> batch = feed->describe(GR_SPLIT_TRAIN, 0, 2);
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  EXPECT_EQ(batch->set, 1u);
  Graph graph;
  add_input(&graph, "x", GR_FLOAT32, {kBatch, Dim::symbol("length"), Dim(4)});
  const Result<Bindings> bindings = feed->bindings(graph, 2, batch->sizes);
  ASSERT_TRUE(bindings.ok()) << bindings.status().message();
  EXPECT_EQ(bindings->at("length"), 7);
}

TEST(FeedBatches, AnswersBeyondTheDeclarationAreRefused) {
  FakeData fake;
  fake.add("x", GR_FLOAT32, {0});
  fake.outputs[0].dims[1].symbol = "time";
  FakeBatches batches(&fake);
  batches.declared.symbols = kTime;
  batches.declared.symbol_count = 1;
  const Result<Feed> feed = feed_of(fake);
  ASSERT_TRUE(feed.ok());
  for (const int64_t size : {0, 10}) {
    batches.answer.sizes[0] = size;
    EXPECT_EQ(feed->describe(GR_SPLIT_TRAIN, 0, 2).status().code(), GR_INTERNAL) << size;
  }
  batches.answer.sizes[0] = 9;
  EXPECT_TRUE(feed->describe(GR_SPLIT_TRAIN, 0, 2).ok());
  batches.answer.objective_set = 1;  // no sets are declared
  EXPECT_EQ(feed->describe(GR_SPLIT_TRAIN, 0, 2).status().code(), GR_INTERNAL);
}

TEST(FeedBatches, BadDeclarationsAreRefused) {
  FakeData fake;
  fake.add("x", GR_FLOAT32, {0});
  fake.outputs[0].dims[1].symbol = "time";
  FakeBatches batches(&fake);
  EXPECT_TRUE(contains(feed_of(fake).status().message(), "gr.batch/1 does not declare 'time'"));
  constexpr gr_batch_symbol_t kNothing[] = {{"time", 0}};
  batches.declared.symbols = kNothing;
  batches.declared.symbol_count = 1;
  EXPECT_TRUE(contains(feed_of(fake).status().message(), "symbol 0 has no name or a largest size"));
  batches.declared.symbols = kTime;
  constexpr gr_objective_set_t kTwice[] = {{kBoxNames, 1}, {kBoxNames, 1}};
  batches.declared.sets = kTwice;
  batches.declared.set_count = 2;
  EXPECT_TRUE(contains(feed_of(fake).status().message(), "set 1 is declared twice"));
  batches.api.describe = nullptr;
  EXPECT_TRUE(contains(feed_of(fake).status().message(), "info or describe is missing"));
}

}  // namespace
}  // namespace gradrack
