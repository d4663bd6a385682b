// SPDX-License-Identifier: Apache-2.0
// RowProgram: runs a RowCode (row_code.hpp) as the kernel of a group.
//
// Invariant: pieces of column sums are cut by the number of rows alone, as NormScaleGradKernel's,
// and joined in order, so the bits depend on nothing else.
#pragma once

#include <memory>

#include "backends/common/group.hpp"
#include "backends/cpu/context.hpp"
#include "backends/cpu/row_code.hpp"

namespace gradrack::cpu {

class RowProgram final : public host::Kernel {
 public:
  RowProgram(const host::GroupSpec& group, const Context& context, RowCode code);

  int64_t workspace_bytes() const override;
  bool cannot_fail() const override { return true; }
  int in_place(int output) const override { return code_.in_place[static_cast<size_t>(output)]; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t*) const override;

 private:
  struct Launch {
    const DLTensor* const* in;
    DLTensor* const* out;
    double* sums;  // by piece, by column sum, by column
  };
  class Piece;
  void join_sums(const Launch& launch) const;

  const Context& context_;
  RowCode code_;
  std::vector<bool> narrow_sums_;  // whose output is bfloat16
  int64_t block_rows_, blocks_;    // of column sums
};

}  // namespace gradrack::cpu
