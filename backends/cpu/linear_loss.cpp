// SPDX-License-Identifier: Apache-2.0
// LinearLoss: see linear_loss.hpp.
#include "backends/cpu/linear_loss.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

namespace gradrack::cpu {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMostBlock = 128;               // classes
constexpr int64_t kSlabBytes = int64_t{4} << 20;  // of scores, where threads want no more

int64_t up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// Scores that are worth keeping: making them again costs more in float32.
int64_t kept_bytes(bool narrow) { return (narrow ? int64_t{8} : int64_t{32}) << 20; }

int64_t element(bool narrow) { return narrow ? 2 : 4; }

const char* moved(const void* data, int64_t elements, bool narrow) {
  return static_cast<const char*>(data) + elements * element(narrow);
}

}  // namespace

struct LinearLoss::Run {
  const LinearLossData& data;
  char* base;

  template <class T>
  T* at(int64_t place) const {
    return reinterpret_cast<T*>(base + place);
  }
};

LinearLoss::LinearLoss(const LinearLossShape& shape, const Context& context)
    : shape_(shape), context_(context) {
  const int64_t threads = context.pool.threads();
  block_ = std::clamp<int64_t>(up(shape.classes / 8, 16), 16, kMostBlock);
  blocks_ = (shape.classes + block_ - 1) / block_;
  const int64_t block_bytes = up(block_ * shape.rows * int64_t{sizeof(float)}, kAlign);
  slab_blocks_ = std::max(kSlabBytes / std::max<int64_t>(block_bytes, 1), 2 * threads);
  slab_blocks_ = std::clamp<int64_t>(slab_blocks_, 1, std::max<int64_t>(blocks_, 1));
  make_products();

  const int64_t row_bytes = shape.rows * int64_t{sizeof(float)};
  scores_bytes_ = block_ * row_bytes;
  packed_scores_ = take(scores_->packed_bytes());
  scratch_bytes_ = up(scores_->scratch_bytes(), kAlign);
  worker_scores_ = take(threads * up(scores_bytes_, kAlign));
  largest_ = take(blocks_ * row_bytes);
  totals_ = take(blocks_ * row_bytes);
  picked_ = take(row_bytes);
  shift_ = take(row_bytes);
  scale_ = take(row_bytes);
  sums_ = take(shape.rows * int64_t{sizeof(double)});
  if (shape.gradients) {
    const int64_t slab_bytes = slab_blocks_ * scores_bytes_;
    kept_blocks_ = std::min(kept_bytes(shape.narrow) / std::max<int64_t>(slab_bytes, 1), slabs()) *
                   slab_blocks_;
    kept_ = take(std::min(kept_blocks_, blocks_) * scores_bytes_);
    slab_ = kept_blocks_ < blocks_ ? take(slab_bytes) : 0;
    grades_ = shape.narrow ? take(slab_bytes / 2) : 0;
    grad_x_ = shape.grad_x_narrow ? take(shape.inner * row_bytes) : 0;
    int64_t most = 0;
    for (const SlabProducts* products : {&whole_, &last_}) {
      most = std::max(most, products->grad_x->workspace_bytes());
      if (products->grad_w) most = std::max(most, products->grad_w->workspace_bytes());
    }
    product_ = take(most);
    if (grad_w_) {
      packed_grad_w_ = take(grad_w_->packed_bytes());
      scratch_bytes_ = std::max(scratch_bytes_, up(grad_w_->scratch_bytes(), kAlign));
    }
  }
  scratch_ = take(threads * scratch_bytes_);
}

int64_t LinearLoss::take(int64_t bytes) {
  const int64_t place = bytes_;
  bytes_ += up(bytes, kAlign);
  return place;
}

int64_t LinearLoss::block_classes(int64_t block) const {
  return std::min(block_, shape_.classes - block * block_);
}

void LinearLoss::make_products() {
  const int64_t n = shape_.rows, d = shape_.inner, v = shape_.classes;
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const FactorLayout weight{shape_.weight_narrow, shape_.by_class ? d : 1, shape_.by_class ? 1 : v};
  ProductShape scores;  // [block, rows] = W_block x^T
  scores.narrow = shape_.narrow;
  scores.rows = block_;
  scores.terms = {{d, weight, {{shape_.x_narrow, 1, d}}}};
  scores.parts = {{n, false, n}};
  scores_ = std::make_unique<Product>(scores, 1, kNoLimit);
  if (!shape_.gradients) return;
  if (shape_.by_class) {
    ProductShape grad_w;  // [block, inner] = grades^T x
    grad_w.narrow = shape_.narrow;
    grad_w.rows = block_;
    grad_w.terms = {{n, {shape_.narrow, n, 1}, {{shape_.x_narrow, d, 1}}}};
    grad_w.parts = {{d, shape_.grad_w_narrow, d}};
    grad_w_ = std::make_unique<Product>(grad_w, 1, kNoLimit);
  }
  const int64_t slab = std::min(slab_blocks_ * block_, v);
  whole_ = slab_products(slab);
  last_ = slab_products(v - (slabs() - 1) * slab_blocks_ * block_);
}

LinearLoss::SlabProducts LinearLoss::slab_products(int64_t classes) const {
  const int64_t n = shape_.rows, d = shape_.inner, v = shape_.classes;
  const int threads = context_.pool.threads();
  SlabProducts made;
  ProductShape grad_x;  // [rows, inner] += grades W_slab
  grad_x.narrow = shape_.narrow;
  grad_x.rows = n;
  const FactorLayout weight{shape_.weight_narrow, shape_.by_class ? d : 1, shape_.by_class ? 1 : v};
  grad_x.terms = {{classes, {shape_.narrow, 1, n}, {weight}}};
  grad_x.parts = {{d, false, d}};
  grad_x.accumulate = true;
  made.grad_x = std::make_unique<Product>(grad_x, threads);
  if (shape_.by_class) return made;
  ProductShape grad_w;  // [inner, slab] = x^T grades
  grad_w.narrow = shape_.narrow;
  grad_w.rows = d;
  grad_w.terms = {{n, {shape_.x_narrow, 1, d}, {{shape_.narrow, 1, n}}}};
  grad_w.parts = {{classes, shape_.grad_w_narrow, v}};
  made.grad_w = std::make_unique<Product>(grad_w, threads);
  return made;
}

template <class Body>
void LinearLoss::for_blocks(int64_t first, int64_t last, const Body& body) const {
  std::atomic<int64_t> next{first};
  const int64_t workers = std::min<int64_t>(context_.pool.threads(), last - first);
  context_.pool.run_pieces(workers, [&](int64_t worker) {
    for (int64_t k = next.fetch_add(1); k < last; k = next.fetch_add(1)) body(k, worker);
  });
}

void LinearLoss::pack_x(const Run& run) const {
  const void* const x = run.data.x;
  const ProductData data{nullptr, &x, nullptr, nullptr};
  const int64_t scores = scores_->pack_pieces();
  const int64_t all = scores + (grad_w_ ? grad_w_->pack_pieces() : 0);
  context_.pool.parallel(all, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      if (k < scores) {
        scores_->pack(k, data, run.at<char>(packed_scores_));
      } else {
        grad_w_->pack(k - scores, data, run.at<char>(packed_grad_w_));
      }
    }
  });
}

void LinearLoss::make_scores(const Run& run, int64_t block, float* scores, char* scratch) const {
  const int64_t first = block * block_ * (shape_.by_class ? shape_.inner : 1);
  const void* const weight = moved(run.data.weight, first, shape_.weight_narrow);
  void* const c = scores;
  scores_->run_rows(0, block_classes(block), {&weight, &run.data.x, &c, nullptr},
                    run.at<char>(packed_scores_), scratch);
}

/// Largest score and sum of exponentials above it in the block, and the labels' scores.
void LinearLoss::sum_block(const Run& run, int64_t block, const float* scores) const {
  const int64_t n = shape_.rows, count = block_classes(block), first = block * block_;
  float* const largest = run.at<float>(largest_) + block * n;
  float* const total = run.at<float>(totals_) + block * n;
  std::memcpy(largest, scores, static_cast<size_t>(n) * sizeof(float));
  for (int64_t k = 1; k < count; ++k) context_.loops.max_of_columns(scores + k * n, largest, n);
  std::fill_n(total, n, 0.0f);
  for (int64_t k = 0; k < count; ++k) {
    context_.loops.add_exp_of_columns(scores + k * n, largest, total, n);
  }
  float* const picked = run.at<float>(picked_);
  for (int64_t row = 0; row < n; ++row) {
    const int64_t label = run.data.labels[row] - first;
    if (label >= 0 && label < count) picked[row] = scores[label * n + row];
  }
}

/// log(sum(exp)) of each row from its blocks; the loss.
double LinearLoss::finish_sums(const Run& run) const {
  const int64_t n = shape_.rows;
  constexpr int64_t kGrain = 256;
  context_.pool.parallel(n, kGrain, [&](int64_t begin, int64_t end) {
    const int64_t count = end - begin;
    const float* const largest = run.at<float>(largest_) + begin;
    const float* const totals = run.at<float>(totals_) + begin;
    float* const shift = run.at<float>(shift_) + begin;
    float* const part = run.at<float>(scale_) + begin;  // for now
    double* const sums = run.at<double>(sums_) + begin;
    std::memcpy(shift, largest, static_cast<size_t>(count) * sizeof(float));
    for (int64_t b = 1; b < blocks_; ++b) {
      context_.loops.max_of_columns(largest + b * n, shift, count);
    }
    std::fill_n(sums, count, 0.0);
    for (int64_t b = 0; b < blocks_; ++b) {
      context_.loops.softmax_of_columns(largest + b * n, shift, totals + b * n, part, count);
      context_.loops.add_to_columns(part, sums, count);
    }
    for (int64_t k = 0; k < count; ++k) {
      sums[k] = static_cast<double>(shift[k]) + std::log(sums[k]);
      shift[k] = static_cast<float>(sums[k]);
      part[k] = run.data.labels[begin + k] < 0 ? 0.0f : run.data.scale;
    }
  });
  double loss = 0;
  for (int64_t row = 0; row < n; ++row) {
    if (run.data.labels[row] < 0) continue;
    loss += run.at<double>(sums_)[row] - static_cast<double>(run.at<float>(picked_)[row]);
  }
  return loss;
}

/// Second pass of one block: its grades, scale (softmax - one_hot), and W's gradient of it.
void LinearLoss::grade_block(const Run& run, int64_t block, char* scratch) const {
  const int64_t n = shape_.rows, count = block_classes(block), first = block * block_;
  const int64_t place = block % slab_blocks_;
  float* scores = run.at<float>(kept_ + block * scores_bytes_);
  if (block >= kept_blocks_) {
    scores = run.at<float>(slab_ + place * scores_bytes_);
    make_scores(run, block, scores, scratch);
  }
  const float* const scale = run.at<float>(scale_);
  for (int64_t k = 0; k < count; ++k) {
    float* const x = scores + k * n;
    context_.loops.softmax_of_columns(x, run.at<float>(shift_), scale, x, n);
  }
  for (int64_t row = 0; row < n; ++row) {
    const int64_t label = run.data.labels[row] - first;
    if (label >= 0 && label < count) scores[label * n + row] -= scale[row];
  }
  const void* grades = scores;
  if (shape_.narrow) {
    auto* const to = run.at<uint16_t>(grades_) + place * block_ * n;
    context_.loops.to_bfloat16(scores, to, count * n);
    grades = to;
  }
  if (!grad_w_) return;
  const int64_t at = first * shape_.inner * element(shape_.grad_w_narrow);
  void* const c = static_cast<char*>(run.data.grad_w) + at;
  grad_w_->run_rows(0, count, {&grades, &run.data.x, &c, nullptr}, run.at<char>(packed_grad_w_),
                    scratch);
}

void LinearLoss::grade_slab(const Run& run, int64_t slab) const {
  const int64_t first = slab * slab_blocks_, last = std::min(first + slab_blocks_, blocks_);
  for_blocks(first, last, [&](int64_t block, int64_t worker) {
    grade_block(run, block, run.at<char>(scratch_ + worker * scratch_bytes_));
  });
  const int64_t in_scores = first < kept_blocks_ ? kept_ + first * scores_bytes_ : slab_;
  const void* const grades = run.at<void>(shape_.narrow ? grades_ : in_scores);
  const SlabProducts& products = slab + 1 == slabs() ? last_ : whole_;
  const int64_t offset = first * block_ * (shape_.by_class ? shape_.inner : 1);
  const void* const weight = moved(run.data.weight, offset, shape_.weight_narrow);
  void* c = shape_.grad_x_narrow ? run.at<void>(grad_x_) : run.data.grad_x;
  products.grad_x->run(context_.pool, {&grades, &weight, &c, nullptr}, run.at<char>(product_));
  if (!products.grad_w) return;
  c = static_cast<char*>(run.data.grad_w) + first * block_ * element(shape_.grad_w_narrow);
  products.grad_w->run(context_.pool, {&run.data.x, &grades, &c, nullptr}, run.at<char>(product_));
}

double LinearLoss::run(const LinearLossData& data, void* workspace) const {
  const Run run{data, static_cast<char*>(workspace)};
  if (shape_.rows == 0) {
    if (!shape_.gradients) return 0;
    const int64_t count = shape_.classes * shape_.inner;
    std::memset(data.grad_w, 0, static_cast<size_t>(count * element(shape_.grad_w_narrow)));
    return 0;
  }
  pack_x(run);
  for_blocks(0, blocks_, [&](int64_t block, int64_t worker) {
    float* scores = run.at<float>(worker_scores_ + worker * up(scores_bytes_, kAlign));
    if (block < kept_blocks_) scores = run.at<float>(kept_ + block * scores_bytes_);
    make_scores(run, block, scores, run.at<char>(scratch_ + worker * scratch_bytes_));
    sum_block(run, block, scores);
  });
  const double loss = finish_sums(run);
  if (!shape_.gradients) return loss;
  const int64_t count = shape_.rows * shape_.inner;
  float* const grad_x =
      shape_.grad_x_narrow ? run.at<float>(grad_x_) : static_cast<float*>(data.grad_x);
  std::memset(grad_x, 0, static_cast<size_t>(count) * sizeof(float));
  for (int64_t slab = 0; slab < slabs(); ++slab) grade_slab(run, slab);
  if (shape_.grad_x_narrow) {
    context_.loops.to_bfloat16(grad_x, static_cast<uint16_t*>(data.grad_x), count);
  }
  return loss;
}

}  // namespace gradrack::cpu
