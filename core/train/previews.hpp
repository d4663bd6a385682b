// SPDX-License-Identifier: Apache-2.0
// Previews: pictures that the data plugin draws of the model's answers, after each evaluation.
//
// The first rows of the first validation batch are run once more and handed, with all outputs, to
// the plugin's gr.preview/1; the pictures go to the run folder. Invariant: nothing of the training
// is read or changed, so a run with previews has the bytes of one without.
#pragma once

#include "core/state/run_folder.hpp"
#include "core/train/programs.hpp"
#include "gradrack/preview.h"

namespace gradrack {

class Previews {
 public:
  /// `count` pictures an evaluation; 0: none. GR_UNSUPPORTED: the data plugin draws none.
  static Result<Previews> make(const Instance<gr_data_t>& data, int64_t count);

  /// Evaluates the first validation batch and writes its pictures. GR_IO, and what the plugin
  /// answers. [exec]
  Status write(Programs& programs, const RunFolder& folder, int64_t step);
  bool wanted() const { return count_ > 0; }

 private:
  const gr_preview_t* table_ = nullptr;
  std::string name_;  ///< of the plugin
  int64_t count_ = 0;
  int64_t height_ = 0, width_ = 0;
  std::vector<uint8_t> pixels_;
};

}  // namespace gradrack
