// SPDX-License-Identifier: Apache-2.0
// Cases of the data kind: what it declares, what batches hold, that they depend on nothing else
// than the request, and that text survives encode and decode.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/device/convert.hpp"
#include "core/graph/graph.hpp"
#include "sdk/conformance/catalogue.hpp"
#include "sdk/conformance/host_batch.hpp"

namespace gradrack::conform {
namespace {

using DataInstance = Instance<gr_data_t>;
constexpr int64_t kIgnoreIndex = -100;  // of the cross-entropy operators
constexpr int64_t kMostBatches = 20000;

Outcome info_case(Context& context) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  CONFORM_ASSIGN(const HostBatch batch, HostBatch::make(data.table(), nullptr));
  CONFORM_ASSIGN(const HostBatch again, HostBatch::make(data.table(), nullptr));
  const gr_data_info_t &a = batch.info(), &b = again.info();
  if (a.vocab != b.vocab || a.classes != b.classes || a.block != b.block ||
      a.train_items != b.train_items || a.validation_items != b.validation_items ||
      a.output_count != b.output_count) {
    return fail("info answers differently the second time");
  }
  if (a.train_items < 1) return fail("there is nothing to train on");
  if (a.vocab < 0 || a.classes < 0 || a.block < 0 || a.validation_items < 0) {
    return fail("vocab, classes, block or validation_items is negative");
  }
  if (a.summary == nullptr || *a.summary == '\0') return fail("summary is empty");
  for (size_t k = 0; k < batch.output_count(); ++k) {
    for (size_t other = 0; other < k; ++other) {
      if (std::string(batch.output(k).name) == batch.output(other).name) {
        return fail(fmt::format("two outputs are called '{}'", batch.output(k).name));
      }
    }
  }
  return pass();
}

Outcome training_rows(Context& context) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  CONFORM_ASSIGN(HostBatch batch, HostBatch::make(data.table(), nullptr));
  for (int64_t size : {1, 2, 7, 64}) {
    size = std::min(size, batch.info().train_items);  // more may be refused
    for (const int64_t index : {0, 1, 2, 1000, 1000000}) {
      CONFORM_ASSIGN(const int64_t rows, batch.rows(GR_SPLIT_TRAIN, context.seed(), index, size));
      if (rows == size) continue;
      return fail(fmt::format("training batch {} has {} rows of {}: training batches are full",
                              index, rows, size));
    }
  }
  return pass();
}

Outcome validation_rows(Context& context) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  CONFORM_ASSIGN(HostBatch batch, HostBatch::make(data.table(), nullptr));
  const auto rows = [&](int64_t index, int64_t size) {
    return batch.rows(GR_SPLIT_VALIDATION, context.seed(), index, size);
  };
  for (const int64_t size : {3, 64}) {
    int64_t index = 0, last = size;
    for (; last == size && index < kMostBatches; ++index) {
      CONFORM_ASSIGN(last, rows(index, size));
    }
    if (last == size) return not_applicable("the validation split is too long to walk");
    // What comes after a short batch, or after the end, is the end.
    for (const int64_t later : {index, index + 1, index + 1000}) {
      CONFORM_ASSIGN(const int64_t none, rows(later, size));
      if (none == 0) continue;
      return fail(fmt::format("validation ends with batch {} of {} rows, and batch {} has {}",
                              index - 1, last, later, none));
    }
  }
  return pass();
}

// Runs `check` on some batches of both splits.
template <typename Check>
Outcome over_batches(Context& context, Check&& check) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  CONFORM_ASSIGN(HostBatch batch, HostBatch::make(data.table(), nullptr));
  for (const int32_t split : {GR_SPLIT_TRAIN, GR_SPLIT_VALIDATION}) {
    for (const int64_t index : {0, 1, 2, 3, 17, 200}) {
      CONFORM_TRY(batch.fetch(split, context.seed(), index, 5));
      for (size_t k = 0; batch.fetched_rows() > 0 && k < batch.output_count(); ++k) {
        const std::string fault = check(batch, k);
        if (fault.empty()) continue;
        return fail(fmt::format("{} batch {}, output '{}': {}",
                                split == GR_SPLIT_TRAIN ? "training" : "validation", index,
                                batch.output(k).name, fault));
      }
    }
  }
  return pass();
}

Outcome limits(Context& context) {
  return over_batches(context, [](const HostBatch& batch, size_t k) -> std::string {
    const int64_t limit = batch.output(k).limit;
    if (limit <= 0) return "";
    for (const int64_t number : batch.integers(k)) {
      if ((number >= 0 && number < limit) || number == kIgnoreIndex) continue;
      return fmt::format("it holds {}, the limit declared is {}", number, limit);
    }
    return "";
  });
}

Outcome finite(Context& context) {
  return over_batches(context, [](const HostBatch& batch, size_t k) -> std::string {
    const gr_dtype_t dtype = batch.output(k).dtype;
    if (dtype != GR_FLOAT32 && dtype != GR_FLOAT64) return "";
    const auto size = static_cast<size_t>(gr_dtype_bytes(dtype));
    const size_t count = batch.row_bytes(k) / size * static_cast<size_t>(batch.fetched_rows());
    for (size_t i = 0; i < count; ++i) {
      const auto number = read_number(dtype, batch.bytes(k) + i * size);
      if (!number.ok() || !std::isfinite(*number)) return fmt::format("element {} is no number", i);
    }
    return "";
  });
}

Outcome fills_all(Context& context) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  CONFORM_ASSIGN(HostBatch batch, HostBatch::make(data.table(), nullptr));
  for (const int32_t split : {GR_SPLIT_TRAIN, GR_SPLIT_VALIDATION}) {
    Digest digests[2];
    for (const int k : {0, 1}) {
      batch.set_background(k == 0 ? 0x3c : 0xc5);
      CONFORM_TRY(batch.fetch(split, context.seed(), 1, 4));
      batch.add_to(&digests[k]);
    }
    if (digests[0].text() != digests[1].text()) {
      return fail("batch does not write every element: what was in the tensors before shows");
    }
  }
  return pass();
}

Result<std::string> digest_of(HostBatch& batch, int32_t split, uint64_t seed, int64_t index) {
  Digest digest;
  GR_TRY(batch.fetch(split, seed, index, 4));
  batch.add_to(&digest);
  return digest.text();
}

// In order in one instance, out of order in another: what resuming needs.
Outcome pure(Context& context) {
  CONFORM_ASSIGN(const DataInstance first, context.make<gr_data_t>());
  CONFORM_ASSIGN(const DataInstance second, context.make<gr_data_t>());
  CONFORM_ASSIGN(HostBatch in_order, HostBatch::make(first.table(), nullptr));
  CONFORM_ASSIGN(HostBatch anyhow, HostBatch::make(second.table(), nullptr));
  for (const int32_t split : {GR_SPLIT_TRAIN, GR_SPLIT_VALIDATION}) {
    std::vector<std::string> digests;
    for (int64_t index = 0; index < 30; ++index) {
      CONFORM_ASSIGN(const std::string digest, digest_of(in_order, split, context.seed(), index));
      digests.push_back(digest);
    }
    std::mt19937_64 random = context.random("L5.pure");
    for (int k = 0; k < 60; ++k) {
      const auto index = static_cast<int64_t>(random() % 30);
      HostBatch& batch = k % 2 == 0 ? anyhow : in_order;
      CONFORM_ASSIGN(const std::string digest, digest_of(batch, split, context.seed(), index));
      if (digest == digests[static_cast<size_t>(index)]) continue;
      return fail(fmt::format("batch {} of {} depends on what was asked before", index,
                              split == GR_SPLIT_TRAIN ? "training" : "validation"));
    }
  }
  return pass();
}

Result<std::vector<int64_t>> encode(const gr_data_t& table, const std::string& text) {
  uint64_t needed = 0;
  GR_TRY(call_plugin("encode", nullptr, [&](gr_error_t* err) {
    return table.encode(table.self, text.data(), text.size(), nullptr, 0, &needed, err);
  }));
  std::vector<int64_t> ids(needed + 2, -77);
  uint64_t count = 0;
  const uint64_t room = needed > 0 ? needed - 1 : 0;  // one too few: it must not write past it
  GR_TRY(call_plugin("encode", nullptr, [&](gr_error_t* err) {
    return table.encode(table.self, text.data(), text.size(), ids.data(), room, &count, err);
  }));
  if (count != needed) return internal_error("encode: the number needed depends on capacity");
  if (ids[room] != -77) return internal_error("encode writes more than capacity ids");
  GR_TRY(call_plugin("encode", nullptr, [&](gr_error_t* err) {
    return table.encode(table.self, text.data(), text.size(), ids.data(), needed, &count, err);
  }));
  ids.resize(needed);
  return ids;
}

Result<std::string> decode(const gr_data_t& table, const std::vector<int64_t>& ids) {
  uint64_t needed = 0;
  GR_TRY(call_plugin("decode", nullptr, [&](gr_error_t* err) {
    return table.decode(table.self, ids.data(), ids.size(), nullptr, 0, &needed, err);
  }));
  std::string text(needed + 1, '\x07');
  uint64_t bytes = 0;
  GR_TRY(call_plugin("decode", nullptr, [&](gr_error_t* err) {
    return table.decode(table.self, ids.data(), ids.size(), text.data(), needed, &bytes, err);
  }));
  if (bytes != needed) return internal_error("decode: the number needed depends on capacity");
  if (text[needed] != '\x07') return internal_error("decode writes more than capacity bytes");
  text.resize(needed);
  return text;
}

Outcome round_trip(Context& context) {
  CONFORM_ASSIGN(const DataInstance data, context.make<gr_data_t>());
  const gr_data_t& table = data.table();
  if (table.encode == nullptr && table.decode == nullptr) {
    return not_applicable("it has no tokenizer");
  }
  if (table.encode == nullptr || table.decode == nullptr) {
    return fail("encode and decode come together or not at all");
  }
  CONFORM_ASSIGN(HostBatch batch, HostBatch::make(table, nullptr));
  CONFORM_TRY(batch.fetch(GR_SPLIT_TRAIN, context.seed(), 0, 3));
  std::vector<int64_t> ids;
  for (const int64_t id : batch.integers(0)) {
    if (id >= 0) ids.push_back(id);
  }
  if (ids.empty()) return fail("the first output of a text source holds token ids");
  CONFORM_ASSIGN(const std::string text, decode(table, ids));
  if (text.empty()) return fail("a batch of ids decodes to nothing");
  CONFORM_ASSIGN(const std::vector<int64_t> encoded, encode(table, text));
  for (const int64_t id : encoded) {
    if (id < 0 || (batch.info().vocab > 0 && id >= batch.info().vocab)) {
      return fail(
          fmt::format("encode gives the id {}, the vocabulary has {}", id, batch.info().vocab));
    }
  }
  CONFORM_ASSIGN(const std::string back, decode(table, encoded));
  if (back != text) return fail("text that is encoded and decoded is not the same");
  CONFORM_ASSIGN(const std::string nothing, decode(table, {}));
  return nothing.empty() ? pass() : fail("no ids decode to some text");
}

}  // namespace

void add_data_cases(const Target&, std::vector<Case>* cases) {
  const auto add = [&](const char* id, int level, const char* title, Outcome (*run)(Context&)) {
    cases->push_back({id, level, title, run});
  };
  add("L3.info", 3, "what it declares is complete and stays the same", info_case);
  add("L3.training_rows", 3, "training batches are full, for any index", training_rows);
  add("L3.validation_rows", 3, "validation ends, with at most one short batch", validation_rows);
  add("L3.limits", 3, "integers keep to the limit declared", limits);
  add("L3.finite", 3, "floating values are finite", finite);
  add("L3.fills_all", 3, "every element of a batch is written, and no more", fills_all);
  add("L3.text", 3, "text survives encode and decode; capacity is kept", round_trip);
  add("L5.pure", 5, "a batch depends on the request alone, in any order", pure);
}

}  // namespace gradrack::conform
