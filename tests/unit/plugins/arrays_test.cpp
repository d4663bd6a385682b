// SPDX-License-Identifier: Apache-2.0
// Data plugin `arrays`, through the C ABI: splits, epochs, and what it refuses to read.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "tests/unit/plugins/batch.hpp"

namespace gradrack {
namespace {

using testing::get_batch;
using testing::Instance;
using testing::OptionTexts;
using testing::TempFile;
using testing::train_request;
using testing::validation_request;

const gr_factory_t* factory() {
  return testing::load_factory("gradrack_data_arrays", "data", "arrays");
}

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  std::string out = "\x93NUMPY";
  out.push_back(static_cast<char>(major));
  out.push_back('\0');
  for (int k = 0; k < (major == 1 ? 2 : 4); ++k) {
    out.push_back(static_cast<char>(header.size() >> (8 * k) & 0xff));
  }
  return out + header + data;
}

template <typename T>
std::string npy_of(const char* descr, const std::string& shape, const std::vector<T>& values) {
  std::string data(values.size() * sizeof(T), '\0');
  std::memcpy(data.data(), values.data(), data.size());
  return npy(
      std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n",
      data);
}

/// n samples of two features {k, 10 k} and label k mod 3.
struct Source {
  explicit Source(int n, OptionTexts texts = {})
      : Source(npy_of("<f4", "(" + std::to_string(n) + ", 2)", features(n)),
               npy_of("<i8", "(" + std::to_string(n) + ",)", labels(n)), std::move(texts)) {}
  Source(const std::string& features_npy, const std::string& labels_npy, OptionTexts texts = {})
      : x("x.npy", features_npy), y("y.npy", labels_npy), plugin(factory(), add_files(texts)) {}

  static std::vector<float> features(int n) {
    std::vector<float> values;
    for (int k = 0; k < n; ++k) {
      values.push_back(static_cast<float>(k));
      values.push_back(static_cast<float>(10 * k));
    }
    return values;
  }
  static std::vector<int64_t> labels(int n) {
    std::vector<int64_t> values(static_cast<size_t>(n));
    for (int k = 0; k < n; ++k) values[static_cast<size_t>(k)] = k % 3;
    return values;
  }
  OptionTexts add_files(OptionTexts texts) const {
    texts["features"] = x.path();
    texts["labels"] = y.path();
    return texts;
  }

  TempFile x, y;
  Instance<gr_data_t> plugin;
};

std::vector<int64_t> ids_of(const Source& source, const gr_batch_request_t& request) {
  const auto batch = get_batch<float>(source.plugin, request);
  EXPECT_EQ(batch.status, GR_OK) << batch.error.message;
  std::vector<int64_t> ids;
  for (size_t row = 0; row < batch.second.size(); ++row) {
    ids.push_back(static_cast<int64_t>(batch.first[2 * row]));
    EXPECT_EQ(batch.first[2 * row + 1], 10 * batch.first[2 * row]);
    EXPECT_EQ(batch.second[row], ids.back() % 3) << "label of another sample";
  }
  return ids;
}

std::vector<int64_t> epoch_of(const Source& source, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> all;
  for (int64_t k = 0; k < 5; ++k) {
    const auto ids = ids_of(source, train_request(seed, epoch * 5 + k, 2));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

TEST(ArraysData, DescribesItself) {
  const Source source(20);
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  gr_data_info_t info = {};
  info.struct_size = sizeof info;
  gr_error_t err = {};
  ASSERT_EQ(source.plugin->info(source.plugin.self(), &info, &err), GR_OK);
  EXPECT_EQ(info.train_items, 18);
  EXPECT_EQ(info.validation_items, 2);
  EXPECT_EQ(info.classes, 3);
  EXPECT_STREQ(info.outputs[0].name, "images");
  EXPECT_STREQ(info.outputs[1].name, "labels");
  EXPECT_EQ(info.outputs[0].dims[1].size, 2);
}

TEST(ArraysData, OtherContentHasAnotherIdentity) {
  const auto identity_of = [](const Source& source) {
    gr_data_info_t info = {};
    info.struct_size = sizeof info;
    gr_error_t err = {};
    EXPECT_EQ(source.plugin->info(source.plugin.self(), &info, &err), GR_OK) << err.message;
    return std::string(info.identity != nullptr ? info.identity : "");
  };
  const std::string first = identity_of(Source(20));
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(identity_of(Source(20)), first);
  EXPECT_NE(identity_of(Source(21)), first);
  EXPECT_NE(identity_of(Source(20, {{"validation_fraction", "0"}})), first);
}

TEST(ArraysData, RES01_SeesEachSampleOncePerEpochInAnOrderOfItsOwn) {
  const Source source(10, {{"validation_fraction", "0"}});
  std::set<std::vector<int64_t>> orders;
  std::vector<int64_t> identity(10);
  std::iota(identity.begin(), identity.end(), 0);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<int64_t> order = epoch_of(source, 1, epoch);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, identity) << "epoch " << epoch;
  }
  EXPECT_EQ(orders.size(), 3u);
}

TEST(ArraysData, RES01_ResumesInTheMiddleOfALaterEpoch) {
  const Source first(10, {{"validation_fraction", "0"}});
  const std::vector<int64_t> whole = epoch_of(first, 1, 1);
  const Source resumed(10, {{"validation_fraction", "0"}});
  std::vector<int64_t> rest;
  for (int64_t index = 7; index < 10; ++index) {
    const auto ids = ids_of(resumed, train_request(1, index, 2));
    rest.insert(rest.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(rest, std::vector<int64_t>(whole.begin() + 4, whole.end()));
}

TEST(ArraysData, OrderDependsOnTheSeed) {
  const Source source(10, {{"validation_fraction", "0"}});
  EXPECT_NE(epoch_of(source, 1, 0), epoch_of(source, 2, 0));
}

TEST(ArraysData, PassesOverWhatIsLeftAfterTheLastFullBatch) {
  const Source source(10, {{"validation_fraction", "0"}});
  std::set<int64_t> seen;
  for (int64_t index = 0; index < 3; ++index) {
    for (const int64_t id : ids_of(source, train_request(1, index, 3))) seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 9u);
}

TEST(ArraysData, WalksValidationInOrderWithAShortLastBatch) {
  const Source source(20, {{"validation_fraction", "0.25"}});
  EXPECT_EQ(ids_of(source, validation_request(0, 3)), (std::vector<int64_t>{15, 16, 17}));
  EXPECT_EQ(ids_of(source, validation_request(1, 3)), (std::vector<int64_t>{18, 19}));
  EXPECT_EQ(ids_of(source, validation_request(2, 3)), (std::vector<int64_t>{}));
}

TEST(ArraysData, RefusesABatchLargerThanTheTrainingPart) {
  const Source source(10);
  const auto batch = get_batch<float>(source.plugin, train_request(1, 0, 10));
  EXPECT_EQ(batch.status, GR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(batch.error.message).find("only 9"), std::string::npos);
}

TEST(ArraysData, ConvertsOtherDtypes) {
  const Source source(npy_of<uint8_t>("|u1", "(4, 2)", {0, 0, 1, 10, 2, 20, 3, 30}),
                      npy_of<int32_t>("<i4", "(4,)", {0, 1, 2, 0}),
                      {{"validation_fraction", "0.5"}});
  ASSERT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
  EXPECT_EQ(ids_of(source, validation_request(0, 2)), (std::vector<int64_t>{2, 3}));
}

TEST(ArraysData, ReadsFormatTwo) {
  std::string data(8, '\0');
  const Source source(npy("{'shape': (2, 1), 'fortran_order': False, 'descr': '<f4'}", data, 2),
                      npy_of<int64_t>("<i8", "(2,)", {0, 1}), {{"validation_fraction", "0"}});
  EXPECT_EQ(source.plugin.status(), GR_OK) << source.plugin.message();
}

TEST(ArraysData, NamesALabelOutsideTheClasses) {
  const Source source(npy_of("<f4", "(3, 2)", Source::features(3)),
                      npy_of<int64_t>("<i8", "(3,)", {0, 5, 1}), {{"classes", "3"}});
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
  EXPECT_NE(source.plugin.message().find("label 5 at position 1 is outside [0, 3)"),
            std::string::npos)
      << source.plugin.message();
}

TEST(ArraysData, RefusesNegativeLabels) {
  const Source source(npy_of("<f4", "(3, 2)", Source::features(3)),
                      npy_of<int64_t>("<i8", "(3,)", {0, -1, 1}));
  EXPECT_EQ(source.plugin.status(), GR_OUT_OF_RANGE);
}

TEST(ArraysData, RefusesUnequalCounts) {
  const Source source(npy_of("<f4", "(3, 2)", Source::features(3)),
                      npy_of<int64_t>("<i8", "(2,)", {0, 1}));
  EXPECT_EQ(source.plugin.status(), GR_INVALID_ARGUMENT);
  EXPECT_NE(source.plugin.message().find("2 labels"), std::string::npos);
}

TEST(ArraysData, NamesANonFiniteFeature) {
  const Source source(npy_of<float>("<f4", "(2, 1)", {1, NAN}),
                      npy_of<int64_t>("<i8", "(2,)", {0, 1}));
  EXPECT_EQ(source.plugin.status(), GR_NONFINITE);
  EXPECT_NE(source.plugin.message().find("element 1"), std::string::npos);
}

struct Malformed {
  const char* name;
  std::string content;
  const char* message;
};

TEST(ArraysData, RefusesMalformedFilesByName) {
  const std::string eight(8, '\0');
  const auto with = [&](const std::string& header) { return npy(header, eight); };
  const Malformed cases[] = {
      {"empty", "", "ends too early"},
      {"other format", "PK\x03\x04 not an array", "is not an .npy file"},
      {"cut header", npy("{'descr': '<f4', ", "").substr(0, 14), "ends too early"},
      {"huge header", std::string("\x93NUMPY\x02\0\xff\xff\xff\xff", 12), "claims a header"},
      {"version", npy("{}", "", 3), "format 3.0"},
      {"big-endian", with("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1)}"), "'>f4'"},
      {"object", with("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "'|O'"},
      {"fortran", with("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1)}"), "Fortran"},
      {"structured", with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
       "structured"},
      {"truncated", with("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1)}"),
       "holds 8 bytes of data, its header asks for 12"},
      {"trailing", with("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}"), "asks for 4"},
      {"overflow",
       with("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, "
            "4294967296, 4294967296)}"),
       "more elements"},
      {"negative", with("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 1)}"),
       "wanted a dimension"},
      {"code", with("{'descr': '<f4', 'fortran_order': False, 'shape': (1+1, 1)}"), "wanted ')'"},
      {"no shape", with("{'descr': '<f4', 'fortran_order': False}"), "no proper .npy header"},
      {"twice", with("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 1)}"), "repeated"},
      {"rest", with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1)} x"),
       "no proper .npy header"},
      {"rank", with("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,2)}"),
       "more than 8"},
      {"scalar", npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", std::string(4, '\0')),
       "has no samples"},
  };
  for (const Malformed& c : cases) {
    const Source source(c.content, npy_of<int64_t>("<i8", "(2,)", {0, 1}));
    EXPECT_EQ(source.plugin.status(), GR_INVALID_ARGUMENT) << c.name;
    EXPECT_EQ(source.plugin.field(), "features") << c.name;
    EXPECT_NE(source.plugin.message().find(c.message), std::string::npos)
        << c.name << ": " << source.plugin.message();
    EXPECT_NE(source.plugin.message().find("x.npy"), std::string::npos) << c.name;
  }
}

TEST(ArraysData, NamesAMissingFile) {
  const Instance<gr_data_t> plugin(factory(), {{"features", "no/x.npy"}, {"labels", "no/y.npy"}});
  EXPECT_EQ(plugin.status(), GR_NOT_FOUND);
  EXPECT_EQ(plugin.field(), "features");
}

}  // namespace
}  // namespace gradrack
