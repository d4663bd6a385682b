// SPDX-License-Identifier: Apache-2.0
// Division: the threads of a backend among its streams, as the options say.
#pragma once

#include <string>

#include "gradrack/options.h"
#include "gradrack/status.h"

namespace gradrack::host {

/// How the threads are divided. What is left when they do not go round is not used.
struct Division {
  int threads = 1;
  int per_stream = 1;
  int streams() const { return threads / per_stream; }
  int used() const { return streams() * per_stream; }
};

inline int int_option(const gr_options_t* values, const char* name) {
  const gr_option_value_t* const value = gr_options_find(values, name);
  return value != nullptr ? static_cast<int>(value->i) : 0;
}

/// Options `threads` (0: what `all_threads` counts; `zero` says what 0 does) and
/// `threads_per_stream` (0: all of them). GR_INVALID_ARGUMENT: more on a stream than there are.
inline int32_t read_division(const gr_options_t* values, int (*all_threads)(), const char* zero,
                             Division* out, gr_error_t* err) {
  out->threads = int_option(values, "threads");
  if (out->threads == 0) out->threads = all_threads();
  out->per_stream = int_option(values, "threads_per_stream");
  if (out->per_stream == 0) out->per_stream = out->threads;
  if (out->per_stream <= out->threads) return GR_OK;
  const std::string text = "a stream cannot have " + std::to_string(out->per_stream) +
                           " threads: the backend has " + std::to_string(out->threads) +
                           " (option `threads`; 0 " + zero + "): lower one or raise the other";
  return gr_fail(err, GR_INVALID_ARGUMENT, "threads_per_stream", text.c_str());
}

}  // namespace gradrack::host
