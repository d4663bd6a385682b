// SPDX-License-Identifier: Apache-2.0
// oneDNN's engine, threads and refusals: see onednn.hpp.
#include "backends/cpu/onednn.hpp"

#include <omp.h>

#include "backends/cpu/context.hpp"

namespace gradrack::cpu {

void cap_onednn() {
  if (isa_allows(Isa::kAmx)) return;  // ONEDNN_MAX_CPU_ISA may still ask for less
  static const dnnl::status capped =
      dnnl::set_max_cpu_isa(isa_allows(Isa::kAvx512) ? dnnl::cpu_isa::avx512_core_bf16
                            : isa_allows(Isa::kAvx2) ? dnnl::cpu_isa::avx2
                                                     : dnnl::cpu_isa::sse41);
  (void)capped;  // refused only by a oneDNN that was used already: the first Context comes first
}

const dnnl::engine& onednn_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::primitive_attr onednn_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

void use_one_openmp_thread() {
  // The number is a setting of the calling thread.
  thread_local bool done = false;
  if (done) return;
  omp_set_num_threads(1);
  done = true;
}

OneOpenMpThread::OneOpenMpThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneOpenMpThread::~OneOpenMpThread() { omp_set_num_threads(before_); }

std::string refuse_slow(const char* what,
                        const std::function<dnnl::primitive_desc_base()>& describe) {
  const OneOpenMpThread one;
  try {
    const std::string name = describe().impl_info_str();
    if (name.find("ref") == std::string::npos) return {};
    return std::string("oneDNN has only plain loops for this bfloat16 ") + what;
  } catch (const dnnl::error& e) {
    return std::string("oneDNN has no bfloat16 ") + what + " for this processor: " + e.what();
  }
}

}  // namespace gradrack::cpu
