// SPDX-License-Identifier: Apache-2.0
// ATen keeps the number of threads by thread, in the OpenMP runtime: see threads.hpp.
#include "backends/libtorch/threads.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>

namespace gradrack::libtorch {
namespace {

/// Joins the team of a thread that ends: left to themselves its threads go later, or never.
struct TeamEnd {
  ~TeamEnd() { (void)omp_pause_resource(omp_pause_soft, omp_get_initial_device()); }
};

class AtenSeat final : public host::Seat {
 public:
  explicit AtenSeat(int threads) : threads_(threads) {}
  void enter() override {
    static thread_local const TeamEnd end;
    (void)end;
    at::init_num_threads();  // else the first kernel would overwrite the next line
    // Not at::set_num_threads: it also starts threads for NNPACK, and nothing ends them.
    omp_set_num_threads(threads_);
  }

 private:
  const int threads_;
};

}  // namespace

void wake() {
  static const bool awake = [] {
    const c10::InferenceMode no_autograd;
    at::ones({2}).add_(1);
    return true;
  }();
  (void)awake;
}

int default_threads() { return at::get_num_threads(); }

std::unique_ptr<host::Seat> make_seat(int threads) { return std::make_unique<AtenSeat>(threads); }

}  // namespace gradrack::libtorch
