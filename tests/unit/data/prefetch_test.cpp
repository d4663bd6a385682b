// SPDX-License-Identifier: Apache-2.0
// Prefetch: the same batches, in any order of asking, by any number of threads; bounded, stoppable.
#include "core/data/prefetch.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <set>

#include "core/base/stop_signal.hpp"
#include "core/data/feed.hpp"

namespace gradrack {
namespace {

/// Prepares batches whose description is their number, and remembers what it was asked.
struct Source {
  Prefetch::Prepare prepare() {
    return [this](int64_t index, PreparedBatch* out) -> Status {
      const int now = ++inside;
      {
        const std::lock_guard lock(mutex);
        most = std::max(most.load(), now);
        asked.push_back(index);
        largest = std::max(largest, index);
      }
      const int64_t fails = fail_at;
      out->description.set = static_cast<size_t>(index);
      if (meet > 1) wait_for_others();
      --inside;
      if (index == fails) return io_error("a bad sector");
      return {};
    };
  }
  /// Until `meet` calls are inside at once, or a second has passed.
  void wait_for_others() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (inside < meet && most < meet && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  int64_t largest_asked() {
    const std::lock_guard lock(mutex);
    return largest;
  }

  std::mutex mutex;
  std::atomic<int> inside = 0;
  std::atomic<int64_t> fail_at = -1;
  int meet = 1;
  std::atomic<int> most = 0;
  int64_t largest = -1;
  std::vector<int64_t> asked;
};

size_t taken(Prefetch& prefetch, int64_t index) {
  const Result<const PreparedBatch*> batch = prefetch.take(index);
  EXPECT_TRUE(batch.ok()) << batch.status().message();
  const size_t set = batch.ok() ? (*batch)->description.set : SIZE_MAX;
  prefetch.release(index);
  return set;
}

TEST(Prefetch, BringsBatchesInOrderWhateverTheThreads) {
  for (const int64_t workers : {1, 3}) {
    Source source;
    Prefetch prefetch(source.prepare(), 4, workers);
    for (int64_t index = 10; index < 300; ++index) {
      EXPECT_EQ(taken(prefetch, index), static_cast<size_t>(index));
    }
  }
}

TEST(Prefetch, PreparesNoFurtherThanItsDepth) {
  Source source;
  Prefetch prefetch(source.prepare(), 3, 2);
  for (int64_t index = 0; index < 100; ++index) {
    ASSERT_TRUE(prefetch.take(index).ok());
    EXPECT_LT(source.largest_asked(), index + 3);
    prefetch.release(index);
  }
}

// A position is where the run is, so it may be entered anywhere and left again.
TEST(Prefetch, FollowsJumps) {
  Source source;
  Prefetch prefetch(source.prepare(), 4, 2);
  for (const int64_t index : {5, 6, 7, 2, 3, 1000, 0, 1, 0}) {
    EXPECT_EQ(taken(prefetch, index), static_cast<size_t>(index));
  }
}

TEST(Prefetch, TakesABatchTwiceBeforeItIsReleased) {
  Source source;
  Prefetch prefetch(source.prepare(), 2, 1);
  const Result<const PreparedBatch*> first = prefetch.take(4), again = prefetch.take(4);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
}

TEST(Prefetch, TellsAnErrorAtItsBatchAlone) {
  Source source;
  source.fail_at = 5;
  Prefetch prefetch(source.prepare(), 4, 1);
  for (int64_t index = 0; index < 5; ++index) EXPECT_EQ(taken(prefetch, index), size_t(index));
  const Result<const PreparedBatch*> bad = prefetch.take(5);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "a bad sector");
  source.fail_at = -1;
  EXPECT_EQ(taken(prefetch, 6), 6u);
  EXPECT_EQ(taken(prefetch, 5), 5u) << "asked for anew, it is prepared anew";
}

TEST(Prefetch, UsesItsThreadsAtOnce) {
  Source source;
  source.meet = 2;
  Prefetch prefetch(source.prepare(), 4, 2);
  EXPECT_EQ(taken(prefetch, 0), 0u);
  EXPECT_EQ(source.most, 2);
}

TEST(Prefetch, EndsWithoutEverBeingAsked) {
  Source source;
  { const Prefetch prefetch(source.prepare(), 4, 3); }
  EXPECT_TRUE(source.asked.empty());
}

TEST(PrefetchDeathTest, StopSignalEndsAWait) {
  EXPECT_EXIT(
      {
        const StopSignals stops;
        std::atomic<bool> end = false;
        Prefetch prefetch(
            [&](int64_t, PreparedBatch*) -> Status {
              raise(SIGTERM);
              while (!end) std::this_thread::yield();
              return {};
            },
            1, 1);
        const Result<const PreparedBatch*> batch = prefetch.take(0);
        end = true;
        _exit(batch.status().code() == GR_CANCELLED ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "");
}

// ---- behind a Feed --------------------------------------------------------------------------

/// A source of one int64 output [batch, 2]: (index, row). Counts the calls inside it.
struct Counting {
  explicit Counting(uint32_t flags) {
    output.name = "tokens";
    output.dtype = GR_INT64;
    output.rank = 2;
    output.dims[0].symbol = "batch";
    output.dims[1].size = 2;
    api.struct_size = sizeof api;
    api.flags = flags;
    api.self = this;
    api.info = [](void* self, gr_data_info_t* out, gr_error_t*) -> int32_t {
      out->output_count = 1;
      out->outputs = &static_cast<Counting*>(self)->output;
      out->output_stride = sizeof(gr_data_output_t);
      return GR_OK;
    };
    api.rows = [](void*, const gr_batch_request_t* request, int64_t* rows, gr_error_t*) -> int32_t {
      *rows = request->batch_size;
      return GR_OK;
    };
    api.batch = [](void* self, const gr_batch_request_t* request, DLTensor* const* tensors,
                   uint32_t, gr_error_t*) -> int32_t {
      auto& source = *static_cast<Counting*>(self);
      source.most = std::max(source.most.load(), ++source.inside);
      auto* values = static_cast<int64_t*>(tensors[0]->data);
      for (int64_t row = 0; row < request->batch_size; ++row) {
        values[2 * row] = request->index + (request->split == GR_SPLIT_TRAIN ? 0 : 1000);
        values[2 * row + 1] = row;
      }
      std::this_thread::yield();
      --source.inside;
      return GR_OK;
    };
  }

  gr_data_output_t output = {};
  gr_data_t api = {};
  std::atomic<int> inside = 0, most = 0;
};

std::vector<int64_t> filled(Feed& feed, int32_t split, int64_t index) {
  std::vector<int64_t> values(6, -1);
  int64_t dims[] = {3, 2}, strides[] = {2, 1};
  DLTensor tensor = {values.data(), {kDLCPU, 0}, 2, gr_dl_dtype(GR_INT64), dims, strides, 0};
  EXPECT_TRUE(feed.describe(split, index, 3).ok());
  EXPECT_TRUE(feed.fill(split, index, 3, 3, {&tensor}).ok());
  return values;
}

TEST(FeedAhead, GivesTheSameBatches) {
  for (const uint32_t flags : {uint32_t{0}, uint32_t{GR_DATA_CONCURRENT}}) {
    Counting source(flags);
    Result<Feed> feed = Feed::make(source.api, "counting", 1);
    ASSERT_TRUE(feed.ok());
    feed->prepare_ahead(3, 4, 3);
    for (int64_t index = 0; index < 200; ++index) {
      EXPECT_EQ(filled(*feed, GR_SPLIT_TRAIN, index),
                (std::vector<int64_t>{index, 0, index, 1, index, 2}));
      if (index % 10 == 0) {
        EXPECT_EQ(filled(*feed, GR_SPLIT_VALIDATION, index)[0], index + 1000);
      }
    }
    if (flags == 0) {
      EXPECT_EQ(source.most, 1) << "it did not say that it takes several threads";
    }
  }
}

}  // namespace
}  // namespace gradrack
