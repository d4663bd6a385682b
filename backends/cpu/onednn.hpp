// SPDX-License-Identifier: Apache-2.0
// oneDNN's primitives on bfloat16: made for fixed shapes, run on the calling thread alone.
//
// Invariant: a primitive is made and run with one OpenMP thread, so that all threads are the pool's
// (gemm.hpp says why), and its scratch memory is the caller's. What oneDNN cannot do fast on this
// processor is refused with a reason; it never falls into oneDNN's plain loops.
// Source: https://oneapi-src.github.io/oneDNN/v2.6/
#pragma once

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

namespace gradrack::cpu {

/// The processor as oneDNN sees it.
const dnnl::engine& onednn_engine();

/// Attributes with the scratch memory given at each run.
dnnl::primitive_attr onednn_attr();

/// From now on oneDNN uses the calling thread alone when it calls; for threads of this backend.
void use_one_openmp_thread();

/// While it lives, what the calling thread makes is made for one thread; for the host's threads.
class OneOpenMpThread {
 public:
  OneOpenMpThread();
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

/// "" when `describe` makes a description of a fast primitive, else why there is none. `what` names
/// the operation in the reason.
std::string refuse_slow(const char* what,
                        const std::function<dnnl::primitive_desc_base()>& describe);

}  // namespace gradrack::cpu
