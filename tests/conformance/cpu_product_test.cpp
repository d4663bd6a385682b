// SPDX-License-Identifier: Apache-2.0
// Products of matrices, cut into tiles, on every table of tiles that this processor runs: any size
// and layout against plain sums, nothing read or written beyond the matrices, the same bits however
// the work is shared.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "backends/cpu/product.hpp"
#include "gradrack/bfloat16.hpp"

namespace gradrack::cpu {
namespace {

std::vector<const TileLoops*> tables() {
  std::vector<const TileLoops*> all = {tiles_base()};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(tiles_avx2());
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    for (const TileLoops* t : {tiles_avx512(), tiles_bfloat16(), tiles_amx()}) all.push_back(t);
  }
  std::erase(all, nullptr);
  return all;
}

/// Numbers that end where a page ends that nobody may touch.
class Numbers {
 public:
  Numbers(int64_t count, bool narrow) : narrow_(narrow), count_(count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * (narrow ? 2 : 4);
    size_ = (bytes + page - 1) / page * page + page;
    map_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(map_, MAP_FAILED);
    EXPECT_EQ(mprotect(map_ + size_ - page, page, PROT_NONE), 0);
    data_ = map_ + size_ - page - bytes;
  }
  ~Numbers() { munmap(map_, size_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  void* data() const { return data_; }
  int64_t count() const { return count_; }
  float get(int64_t k) const {
    if (narrow_) return sdk::from_bfloat16(static_cast<const uint16_t*>(data())[k]);
    return static_cast<const float*>(data())[k];
  }
  void set(int64_t k, float x) {
    if (narrow_) {
      static_cast<uint16_t*>(data())[k] = sdk::to_bfloat16(x);
    } else {
      static_cast<float*>(data())[k] = x;
    }
  }
  void fill(uint32_t seed) {
    std::minstd_rand random(seed);
    // Multiples of 1/16 up to 2: exact in bfloat16, and so are their products in float32.
    for (int64_t k = 0; k < count_; ++k) {
      set(k, static_cast<float>(static_cast<int>(random() % 65) - 32) / 16.0f);
    }
  }

 private:
  bool narrow_;
  int64_t count_;
  size_t size_ = 0;
  char* map_ = nullptr;
  char* data_ = nullptr;
};

struct Case {
  int64_t m, n, k;
  bool trans_a = false, trans_b = false;
  bool narrow_a = false, narrow_b = false, narrow_c = false;
  float alpha = 1.0f;
  bool accumulate = false;
  int64_t gap = 0;  // elements more between rows than there are columns
};

std::string text(const Case& c) {
  return std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) +
         (c.trans_a ? " A^T" : "") + (c.trans_b ? " B^T" : "") + (c.narrow_a ? " a16" : "") +
         (c.narrow_b ? " b16" : "") + (c.narrow_c ? " c16" : "") +
         " alpha=" + std::to_string(c.alpha) + (c.accumulate ? " +=" : "") +
         " gap=" + std::to_string(c.gap);
}

int64_t span(int64_t rows, int64_t columns, int64_t step) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * step + columns;
}

/// One product with its data.
struct Made {
  Made(const Case& what, bool narrow, uint32_t seed)
      : c(what),
        row_a((c.trans_a ? c.m : c.k) + c.gap),
        row_b((c.trans_b ? c.k : c.n) + c.gap),
        row_c(c.n + c.gap),
        a(c.trans_a ? span(c.k, c.m, row_a) : span(c.m, c.k, row_a), c.narrow_a),
        b(c.trans_b ? span(c.n, c.k, row_b) : span(c.k, c.n, row_b), c.narrow_b),
        y(span(c.m, c.n, row_c), c.narrow_c) {
    a.fill(seed);
    b.fill(seed + 1);
    y.fill(seed + 2);
    shape.narrow = narrow;
    shape.rows = c.m;
    const FactorLayout fa{c.narrow_a, c.trans_a ? 1 : row_a, c.trans_a ? row_a : 1};
    const FactorLayout fb{c.narrow_b, c.trans_b ? 1 : row_b, c.trans_b ? row_b : 1};
    shape.terms.push_back({c.k, fa, {fb}});
    shape.parts.push_back({c.n, c.narrow_c, row_c});
    shape.alpha = c.alpha;
    shape.accumulate = c.accumulate;
    for (int64_t k = 0; k < y.count(); ++k) before.push_back(y.get(k));
  }

  double element(int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t p = 0; p < c.k; ++p) {
      sum += static_cast<double>(a.get(c.trans_a ? p * row_a + i : i * row_a + p)) *
             static_cast<double>(b.get(c.trans_b ? j * row_b + p : p * row_b + j));
    }
    const double old = c.accumulate ? before[static_cast<size_t>(i * row_c + j)] : 0.0;
    return sum * static_cast<double>(c.alpha) + old;
  }

  void run(const TileLoops* loops, int threads, int64_t limit) {
    Pool pool(threads);
    const Product product(shape, threads, limit, loops);
    Numbers workspace(product.workspace_bytes() / 4, false);
    std::memset(workspace.data(), 0xff, static_cast<size_t>(product.workspace_bytes()));
    ASSERT_EQ(product.workspace_bytes() % 64, 0);
    const void *pa = a.data(), *pb = b.data();
    void* py = y.data();
    product.run(pool, {&pa, &pb, &py, nullptr}, workspace.data());
  }

  /// Sums of the numbers here are exact in float32 as long as they are short.
  void check() const {
    for (int64_t i = 0; i < c.m; ++i) {
      for (int64_t j = 0; j < row_c && i * row_c + j < y.count(); ++j) {
        const auto got = static_cast<double>(y.get(i * row_c + j));
        if (j >= c.n) {
          ASSERT_EQ(got, before[static_cast<size_t>(i * row_c + j)]) << "gap after row " << i;
          continue;
        }
        const double want = element(i, j);
        const double slack = c.narrow_c ? std::abs(want) / 256 + 1e-30 : std::abs(want) * 1e-6;
        ASSERT_NEAR(got, want, slack) << text(c) << " at " << i << ", " << j;
      }
    }
  }

  Case c;
  int64_t row_a, row_b, row_c;
  Numbers a, b, y;
  ProductShape shape;
  std::vector<double> before;
};

Case random_case(std::minstd_rand& random) {
  const auto size = [&](int64_t most) -> int64_t {
    const auto kind = random() % 8;
    if (kind == 0) return static_cast<int64_t>(random() % 2);
    if (kind < 4) return static_cast<int64_t>(random() % 5) * 32;
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
  };
  const auto coin = [&] { return random() % 2 == 0; };
  Case c{size(150), size(150), size(1200)};
  c.trans_a = coin();
  c.trans_b = coin();
  c.narrow_a = coin();
  c.narrow_b = coin();
  c.narrow_c = coin();
  if (random() % 3 == 0) c.alpha = 0.25f;
  c.accumulate = !c.narrow_c && random() % 3 == 0;
  if (random() % 4 == 0) c.gap = static_cast<int64_t>(random() % 9);
  return c;
}

TEST(CpuProduct, AnySizeAndLayoutOnEveryTable) {
  for (const TileLoops* loops : tables()) {
    std::minstd_rand random(7);
    for (uint32_t round = 0; round < 150; ++round) {
      Made made(random_case(random), loops->narrow, round);
      const int threads = static_cast<int>(random() % 3) + 1;
      // Small limits cut B into many passes.
      const int64_t limit = random() % 3 == 0 ? 1 << 14 : Product::kPackedLimit;
      made.run(loops, threads, limit);
      made.check();
      if (HasFatalFailure()) {
        FAIL() << loops->name << ", round " << round << ", " << text(made.c) << ", " << threads
               << " threads, limit " << limit;
      }
    }
  }
}

TEST(CpuProduct, TheSameBitsOnAnyNumberOfThreads) {
  for (const TileLoops* loops : tables()) {
    Case c{333, 97, 1111};
    c.narrow_a = loops->narrow;
    std::vector<float> first;
    for (const int threads : {1, 2, 5}) {
      Made made(c, loops->narrow, 3);
      // Numbers whose sums round, unlike those of fill().
      for (int64_t k = 0; k < made.a.count(); ++k) made.a.set(k, 1.0f / static_cast<float>(k + 1));
      made.run(loops, threads, Product::kPackedLimit);
      std::vector<float> all;
      for (int64_t k = 0; k < made.y.count(); ++k) all.push_back(made.y.get(k));
      if (first.empty()) first = all;
      EXPECT_EQ(first, all) << loops->name << " on " << threads << " threads";
    }
  }
}

TEST(CpuProduct, NonFiniteNumbersStayInTheirRowsAndColumns) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  for (const TileLoops* loops : tables()) {
    for (const bool trans : {false, true}) {
      Case c{37, 41, 45, trans, trans};
      Made made(c, loops->narrow, 5);
      for (int64_t k = 0; k < made.a.count(); ++k) made.a.set(k, 1.0f);
      for (int64_t k = 0; k < made.b.count(); ++k) made.b.set(k, 1.0f);
      made.a.set(trans ? 44 * 37 + 36 : 36 * 45 + 44, nan);  // row 36, the last number of k
      made.b.set(trans ? 40 * 45 + 44 : 44 * 41 + 40, inf);  // column 40
      made.run(loops, 2, Product::kPackedLimit);
      for (int64_t i = 0; i < c.m; ++i) {
        for (int64_t j = 0; j < c.n; ++j) {
          const float got = made.y.get(i * 41 + j);
          if (i == 36) {
            EXPECT_TRUE(std::isnan(got)) << loops->name << " " << i << ", " << j;
          } else {
            EXPECT_EQ(got, j == 40 ? inf : 45.0f) << loops->name << " " << i << ", " << j;
          }
        }
      }
    }
  }
}

/// Adds what it gets to a matrix for each part.
class Collected final : public ProductFinish {
 public:
  Collected(int64_t rows, std::vector<int64_t> columns) : columns_(std::move(columns)) {
    for (const int64_t n : columns_) sums.emplace_back(static_cast<size_t>(rows * n));
  }
  void take(const ProductTile& t) const override {
    const auto part = static_cast<size_t>(t.part);
    for (int64_t i = 0; i < t.rows; ++i) {
      for (int64_t j = 0; j < t.columns; ++j) {
        const int64_t at = (t.row + i) * columns_[part] + t.column + j;
        sums[part][static_cast<size_t>(at)] += t.sums[i * t.row_sums + j];
      }
    }
  }
  mutable std::vector<std::vector<float>> sums;

 private:
  std::vector<int64_t> columns_;
};

/// Two terms and two parts in all mixtures of dtypes: 0.5 (X0 W00 + X1 W10 | X0 W01 + X1 W11).
struct Mixture {
  static constexpr int64_t kRows = 75, kDepth[] = {40, 700}, kColumns[] = {33, 70};

  Mixture() {
    uint32_t seed = 1;
    for (Numbers* n : {&x0, &x1, &w00, &w01, &w10, &w11}) n->fill(seed++);
    shape.rows = kRows;
    shape.terms = {
        {kDepth[0], {true, kDepth[0], 1}, {{false, kColumns[0], 1}, {true, 1, kDepth[0]}}},
        {kDepth[1], {false, kDepth[1], 1}, {{true, kColumns[0], 1}, {false, kColumns[1], 1}}}};
    shape.parts = {{kColumns[0], false, kColumns[0]}, {kColumns[1], false, kColumns[1]}};
    shape.alpha = 0.5f;
    shape.finish = true;
  }

  float element(size_t part, int64_t i, int64_t j) const {
    const int64_t n = kColumns[part];
    double sum = 0;
    for (int64_t p = 0; p < kDepth[0]; ++p) {
      const float w = part == 0 ? w00.get(p * n + j) : w01.get(j * kDepth[0] + p);
      sum += static_cast<double>(x0.get(i * kDepth[0] + p)) * static_cast<double>(w);
    }
    for (int64_t p = 0; p < kDepth[1]; ++p) {
      const Numbers& w = part == 0 ? w10 : w11;
      sum += static_cast<double>(x1.get(i * kDepth[1] + p)) * static_cast<double>(w.get(p * n + j));
    }
    return static_cast<float>(0.5 * sum);
  }

  void check(const Collected& got) const {
    for (size_t part = 0; part < 2; ++part) {
      const int64_t n = kColumns[part];
      for (int64_t k = 0; k < kRows * n; ++k) {
        ASSERT_FLOAT_EQ(got.sums[part][static_cast<size_t>(k)], element(part, k / n, k % n))
            << "part " << part << " at " << k / n << ", " << k % n;
      }
    }
  }

  Numbers x0{kRows * kDepth[0], true}, x1{kRows * kDepth[1], false};
  Numbers w00{kDepth[0] * kColumns[0], false}, w01{kDepth[0] * kColumns[1], true};
  Numbers w10{kDepth[1] * kColumns[0], true}, w11{kDepth[1] * kColumns[1], false};
  ProductShape shape;
};

TEST(CpuProduct, TermsAreSummedAndPartsShareTheirRows) {
  Mixture m;
  const void* a[] = {m.x0.data(), m.x1.data()};
  const void* b[] = {m.w00.data(), m.w01.data(), m.w10.data(), m.w11.data()};
  for (const TileLoops* loops : tables()) {
    SCOPED_TRACE(loops->name);
    m.shape.narrow = loops->narrow;
    const Product product(m.shape, 2, Product::kPackedLimit, loops);
    Numbers space(product.workspace_bytes() / 4, false);
    const Collected got(Mixture::kRows, {Mixture::kColumns[0], Mixture::kColumns[1]});
    Pool pool(2);
    product.run(pool, {a, b, nullptr, &got}, space.data());
    m.check(got);
  }
}

TEST(CpuProduct, RowsMayBeRunByHandWithBPackedOnce) {
  Mixture m;
  const void* a[] = {m.x0.data(), m.x1.data()};
  const void* b[] = {m.w00.data(), m.w01.data(), m.w10.data(), m.w11.data()};
  for (const TileLoops* loops : tables()) {
    SCOPED_TRACE(loops->name);
    m.shape.narrow = loops->narrow;
    const Product product(m.shape, 2, INT64_MAX, loops);
    Numbers packed(product.packed_bytes() / 4, false), scratch(product.scratch_bytes() / 4, false);
    const Collected got(Mixture::kRows, {Mixture::kColumns[0], Mixture::kColumns[1]});
    const ProductData data{a, b, nullptr, &got};
    for (int64_t k = product.pack_pieces(); k-- > 0;) product.pack(k, data, packed.data());
    product.run_rows(41, Mixture::kRows - 41, data, packed.data(), scratch.data());
    product.run_rows(0, 41, data, packed.data(), scratch.data());
    m.check(got);
  }
}

}  // namespace
}  // namespace gradrack::cpu
