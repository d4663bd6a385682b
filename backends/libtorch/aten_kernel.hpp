// SPDX-License-Identifier: Apache-2.0
// AtenKernel: a host::Kernel whose work is one call of ATen, or a few.
//
// A family adds entries with add(): a claim, and a builder that gets the node and a frame, makes
// its views and scratch, and answers the function that runs. Invariant: what runs in a step takes
// its tensors from the frame; a frame serves one run at a time, and runs of one kernel that overlap
// get a frame each. Errors of ATen come back as codes that name the operator and its shapes.
#pragma once

#include <functional>
#include <stdexcept>

#include "backends/libtorch/frame.hpp"

namespace gradrack::libtorch {

/// The tensors of a run as the host gave them: for scalars that are read while running.
struct Call {
  const DLTensor* const* in;
  DLTensor* const* out;

  template <class T>
  T scalar(size_t k) const {
    return *static_cast<const T*>(in[k]->data);
  }
};

using Body = std::function<void(const Call&)>;
/// Called once a frame. Constants of int32 and int64 are readable.
using Build = std::function<Body(const NodeSpec&, Frame&)>;
using Claim = std::function<std::string(const NodeSpec&)>;

struct EntryOptions {
  /// Output 0 may take the memory of the first of these inputs that has its type and dims.
  std::vector<int> in_place = {};
  /// The same for outputs 1, 2, ...: one input each.
  std::vector<int> in_place_after = {};
};

/// Refuses dtypes that ATen has no name for, then whatever `claim` refuses.
void add(host::KernelTable& table, const std::string& op, Claim claim, Build build,
         EntryOptions options = {});

// Claims. Each answers "" for yes.
/// Every input and output that is a number with a fraction has the same dtype, and input 0 is one.
std::string claim_reals(const NodeSpec& node);
/// The same, and float32 or float64: 16 bits are widened (kernels.cpp).
std::string claim_wide(const NodeSpec& node);
/// All dtypes.
std::string claim_any(const NodeSpec& node);
/// All but bool: arithmetic.
std::string claim_numbers(const NodeSpec& node);
bool is_real(gr_dtype_t dtype);

/// An error of the data: comes back with this code.
class DataError : public std::runtime_error {
 public:
  DataError(int32_t status, const std::string& text) : std::runtime_error(text), code(status) {}
  const int32_t code;
};

}  // namespace gradrack::libtorch
