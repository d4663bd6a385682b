// SPDX-License-Identifier: Apache-2.0
// LinearLoss: cross-entropy of scores x W, with its gradients to x and W, without ever holding the
// scores of all classes.
//
// Classes are cut into blocks, and scores are made transposed, [classes of a block, rows], so that
// neither x nor W is packed more than once. First pass: the sum of exponentials of each block.
// Second pass, slab by slab of a few blocks: scores again (those of the first slabs are kept, as
// far as kept_bytes() goes), softmax - one_hot, W's gradient of these classes, and what they add to
// x's gradient. With many classes that is a fourth product for three, and in exchange W and its
// gradient pass by once, and everything else stays in the caches. Invariant: sums have one order
// for one number of threads; a row whose label is ignored has gradient 0 whatever its scores.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/context.hpp"
#include "backends/cpu/product.hpp"

namespace gradrack::cpu {

struct LinearLossShape {
  int64_t rows = 0, inner = 0, classes = 0;
  bool narrow = false;         // products on bfloat16, else on float32
  bool x_narrow = false;       // x [rows, inner] is stored as bfloat16
  bool weight_narrow = false;  // W is stored as bfloat16
  bool by_class = true;        // W is [classes, inner], else [inner, classes]
  bool gradients = true;       // else the loss alone
  bool grad_x_narrow = false;  // stored as bfloat16
  bool grad_w_narrow = false;
};

/// Pointers of one run. `labels`: a class each, or -1: ignored. `scale`: of the gradient of a row.
struct LinearLossData {
  const void* x = nullptr;
  const void* weight = nullptr;
  const int32_t* labels = nullptr;
  float scale = 1.0f;
  void* grad_x = nullptr;
  void* grad_w = nullptr;
};

class LinearLoss {
 public:
  LinearLoss(const LinearLossShape& shape, const Context& context);

  int64_t workspace_bytes() const { return bytes_; }
  /// The sum of -log softmax(x W)[label] over the rows that are not ignored. `workspace` is aligned
  /// to 64.
  double run(const LinearLossData& data, void* workspace) const;

 private:
  /// What is made once for whole slabs and once for the last one, which may be smaller.
  struct SlabProducts {
    std::unique_ptr<Product> grad_x, grad_w;  // grad_w: of W [inner, classes] alone
  };
  struct Run;  // pointers into the workspace

  void make_products();
  SlabProducts slab_products(int64_t classes) const;
  int64_t take(int64_t bytes);
  int64_t block_classes(int64_t block) const;
  int64_t slabs() const { return (blocks_ + slab_blocks_ - 1) / slab_blocks_; }

  void pack_x(const Run& run) const;
  /// body(block, worker) for blocks [first, last), on the pool; a worker runs one at a time.
  template <class Body>
  void for_blocks(int64_t first, int64_t last, const Body& body) const;
  void make_scores(const Run& run, int64_t block, float* scores, char* scratch) const;
  void sum_block(const Run& run, int64_t block, const float* scores) const;
  double finish_sums(const Run& run) const;
  void grade_block(const Run& run, int64_t block, char* scratch) const;
  void grade_slab(const Run& run, int64_t slab) const;

  const LinearLossShape shape_;
  const Context& context_;
  int64_t block_ = 0, blocks_ = 0, slab_blocks_ = 0;
  int64_t kept_blocks_ = 0;  // whose scores the first pass leaves behind; whole slabs
  std::unique_ptr<Product> scores_, grad_w_;
  SlabProducts whole_, last_;
  // Places in the workspace.
  int64_t packed_scores_ = 0, packed_grad_w_ = 0, scratch_ = 0, scratch_bytes_ = 0;
  int64_t scores_bytes_ = 0, kept_ = 0, slab_ = 0, worker_scores_ = 0, grades_ = 0;
  int64_t largest_ = 0, totals_ = 0, picked_ = 0, shift_ = 0, scale_ = 0, sums_ = 0;
  int64_t grad_x_ = 0, product_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace gradrack::cpu
