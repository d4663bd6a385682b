// SPDX-License-Identifier: Apache-2.0
// Backend `toy`: reference kernels of a few operators on streams with a thread each, and, by the
// option `fault`, one deliberate fault, which the conformance kit has to notice.
//
// A fault takes the place of a function of the table, or is done around the kernel of one operator
// in one dtype. Invariant: with `fault: none` the whole kit passes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "backends/common/host_backend.hpp"
#include "backends/common/stream.hpp"
#include "backends/reference/kernels.hpp"
#include "tests/conformance/wrong/pattern_faults.hpp"
#include "tests/conformance/wrong/timing_faults.hpp"

namespace {

namespace host = gradrack::host;
using host::NodeSpec;

constexpr const char* kOperators[] = {"Add",  "Sub", "Mul",    "Neg",
                                      "Relu", "Max", "Gather", "gradrack.FusedMatMul"};

// ---- Kernels

/// One run, as a fault sees it.
struct Run {
  const NodeSpec& node;
  const DLTensor* const* in;
  DLTensor* const* out;
  void* workspace;
  float kept = 0;

  template <typename T = float>
  T* output() const {
    return static_cast<T*>(out[0]->data);
  }
  const float* input(size_t k) const { return static_cast<const float*>(in[k]->data); }
  int64_t count() const { return node.outputs[0].count; }
};

/// Done before and after the right kernel, where there is at least one element.
struct KernelFault {
  const char* name;
  const char* op;
  gr_dtype_t dtype;  // of the output
  void (*before)(Run& run);
  void (*after)(Run& run);
  bool in_place;  // promises that output 0 may lie over input 0
  int64_t workspace_bytes_each;
};

void nothing(Run&) {}

void write_past(Run& run) { run.output()[run.count()] = 0; }

// A loop whose remainder is filled up with what lies behind, times 0.
void read_beyond(Run& run) {
  run.output()[run.count() - 1] += 0.0F * run.input(0)[run.node.inputs[0].count];
}

void write_input(Run& run) { const_cast<float*>(run.input(0))[0] += 1; }

void keep_last(Run& run) { run.kept = run.output()[run.count() - 1]; }
void restore_last(Run& run) { run.output()[run.count() - 1] = run.kept; }

// As before summing up in the output.
void clear(Run& run) { std::fill_n(run.output(), run.count(), 0.0F); }

void sum_in_workspace(Run& run) {
  auto* sums = static_cast<float*>(run.workspace);
  for (int64_t i = 0; i < run.count(); ++i) run.output()[i] = sums[i] += run.output()[i];
}

void swallow_nan(Run& run) {
  for (int64_t i = 0; i < run.count(); ++i) {
    if (std::isnan(run.output()[i])) run.output()[i] = 0;
  }
}

// Of two launches one is a unit in the last place larger: far below every tolerance.
void waver(Run& run) {
  static std::atomic<unsigned> launches{0};
  float& first = run.output()[0];
  if (launches.fetch_add(1) % 2 == 0) first = std::nextafter(first, INFINITY);
}

void round_to_float(Run& run) {
  auto* out = run.output<double>();
  for (int64_t i = 0; i < run.count(); ++i) out[i] = static_cast<float>(out[i]);
}

void ignore_alpha(Run& run) {
  const auto alpha = static_cast<float>(run.node.get_float("alpha", 1));
  for (int64_t i = 0; i < run.count(); ++i) run.output()[i] /= alpha;
}

constexpr KernelFault kKernelFaults[] = {
    {"writes_past", "Neg", GR_FLOAT32, nothing, write_past, false, 0},
    {"reads_beyond", "Mul", GR_FLOAT32, nothing, read_beyond, false, 0},
    {"writes_input", "Neg", GR_FLOAT32, nothing, write_input, false, 0},
    {"leaves_last", "Neg", GR_FLOAT32, keep_last, restore_last, false, 0},
    {"wrong_in_place", "Neg", GR_FLOAT32, clear, nothing, true, 0},
    {"dirty_workspace", "Neg", GR_FLOAT32, nothing, sum_in_workspace, false, sizeof(float)},
    {"relu_swallows_nan", "Relu", GR_FLOAT32, nothing, swallow_nan, false, 0},
    {"max_swallows_nan", "Max", GR_FLOAT32, nothing, swallow_nan, false, 0},
    {"wavers", "Sub", GR_FLOAT32, nothing, waver, false, 0},
    {"claims_float64", "Add", GR_FLOAT64, nothing, round_to_float, false, 0},
    {"claims_alpha", "gradrack.FusedMatMul", GR_FLOAT32, nothing, ignore_alpha, false, 0},
};

class FaultyKernel final : public host::Kernel {
 public:
  FaultyKernel(const KernelFault& fault, NodeSpec node, std::unique_ptr<Kernel> right)
      : fault_(fault), node_(std::move(node)), right_(std::move(right)) {}

  int64_t workspace_bytes() const override {
    const int64_t own = node_.outputs[0].count * fault_.workspace_bytes_each;
    return std::max(own, right_->workspace_bytes());
  }
  int in_place(int) const override { return fault_.in_place ? 0 : -1; }
  int32_t run(const DLTensor* const* in, DLTensor* const* out, void* workspace,
              gr_error_t* err) const override {
    Run run{node_, in, out, workspace};
    const bool any = run.count() > 0;
    if (any) fault_.before(run);
    const int32_t code = right_->run(in, out, workspace, err);
    if (any && code == GR_OK) fault_.after(run);
    return code;
  }

 private:
  const KernelFault& fault_;
  NodeSpec node_;
  std::unique_ptr<Kernel> right_;
};

host::KernelTable kernels(const std::string& fault) {
  const auto right = std::make_shared<host::KernelTable>();
  gradrack::reference::add_all_kernels(*right);
  host::KernelTable table;
  for (const char* const op : kOperators) {
    const auto claim = [right](const NodeSpec& node) {
      std::string reason;
      return right->match(node, &reason) != nullptr ? std::string() : reason;
    };
    const auto make = [right, fault](const NodeSpec& node) -> std::unique_ptr<host::Kernel> {
      std::string reason;
      auto kernel = right->match(node, &reason)->make(node);
      for (const KernelFault& row : kKernelFaults) {
        if (fault != row.name || node.op != row.op || node.outputs[0].dtype != row.dtype) continue;
        return std::make_unique<FaultyKernel>(row, node, std::move(kernel));
      }
      return kernel;
    };
    table.add({op, claim, make});
  }
  pattern_faults::add(fault, &table);
  return table;
}

// ---- Memory, streams, events

/// Functions of the table with a fault each.
struct Faulty {
  static inline gr_backend_t right = {};       // the same for every instance
  static inline gr_stream_t* first = nullptr;  // made since the last one of that name went
  static constexpr int64_t kSkew = 16;

  static int32_t copy_at_once(void*, const DLTensor* to, const DLTensor* from, gr_stream_t*,
                              gr_error_t*) noexcept {
    int64_t bytes = gr_dtype_bytes(gr_dtype_of(from->dtype));
    for (int32_t k = 0; k < from->ndim; ++k) bytes *= from->shape[k];
    if (bytes > 0) std::memcpy(to->data, from->data, static_cast<size_t>(bytes));
    return GR_OK;
  }

  static int32_t stream_create(void* self, gr_stream_t** out, gr_error_t* err) noexcept {
    const int32_t code = right.stream_create(self, out, err);
    if (code == GR_OK && first == nullptr) first = *out;
    return code;
  }
  static void stream_destroy(void* self, gr_stream_t* stream) noexcept {
    if (stream == first) first = nullptr;
    right.stream_destroy(self, stream);
  }
  // As a launch that forgets its stream goes to the device's default one.
  static int32_t launch_on_first(void* self, gr_kernel_t* kernel, const DLTensor* const* inputs,
                                 DLTensor* const* outputs, const DLTensor* workspace,
                                 gr_stream_t* stream, gr_error_t* err) noexcept {
    return right.launch(self, kernel, inputs, outputs, workspace, first != nullptr ? first : stream,
                        err);
  }

  static int32_t wait_for_nothing(void*, gr_stream_t*, gr_event_t*, gr_error_t*) noexcept {
    return GR_OK;
  }
  static int32_t synchronize_nothing(void*, gr_event_t*, gr_error_t*) noexcept { return GR_OK; }

  // The last work queued is not part of it.
  static int32_t record_early(void* self, gr_event_t* event, gr_stream_t* stream,
                              gr_error_t* err) noexcept {
    const int32_t code = right.event_record(self, event, stream, err);
    auto* const made = reinterpret_cast<host::Event*>(event);
    if (made->position > 0) --made->position;
    return code;
  }

  // An event that was recorded once keeps its place.
  static int32_t record_once(void* self, gr_event_t* event, gr_stream_t* stream,
                             gr_error_t* err) noexcept {
    if (reinterpret_cast<host::Event*>(event)->stream != nullptr) return GR_OK;
    return right.event_record(self, event, stream, err);
  }

  static int32_t allocate_askew(void* self, int64_t bytes, void** out, gr_error_t* err) noexcept {
    const int32_t code = right.allocate(self, bytes < 0 ? bytes : bytes + kSkew, out, err);
    if (code == GR_OK) *out = static_cast<char*>(*out) + kSkew;
    return code;
  }
  static void release_askew(void* self, void* memory) noexcept {
    right.release(self, memory == nullptr ? nullptr : static_cast<char*>(memory) - kSkew);
  }

  static int32_t synchronize_silently(void* self, gr_stream_t* stream, gr_error_t* err) noexcept {
    (void)right.stream_synchronize(self, stream, err);
    return GR_OK;
  }
};

void spoil(const std::string& fault, gr_backend_t* table) {
  Faulty::right = *table;
  if (fault == "copy_ignores_stream") table->copy = Faulty::copy_at_once;
  if (fault == "launch_ignores_stream") {
    table->stream_create = Faulty::stream_create;
    table->stream_destroy = Faulty::stream_destroy;
    table->launch = Faulty::launch_on_first;
  }
  if (fault == "wait_does_nothing") table->stream_wait = Faulty::wait_for_nothing;
  if (fault == "synchronize_does_nothing") table->event_synchronize = Faulty::synchronize_nothing;
  if (fault == "event_too_early") table->event_record = Faulty::record_early;
  if (fault == "event_keeps_first") table->event_record = Faulty::record_once;
  if (fault == "loses_errors") table->stream_synchronize = Faulty::synchronize_silently;
  if (fault == "unaligned") {
    table->allocate = Faulty::allocate_askew;
    table->release = Faulty::release_askew;
  }
  FaultyTiming::spoil(fault, table);
}

// ---- The plugin

int32_t create(const gr_host_t*, const gr_options_t* options, void* instance,
               gr_error_t* err) noexcept {
  try {
    const std::string fault = gr_options_find(options, "fault")->s;
    host::HostBackendConfig config;
    config.description = "reference kernels on threads";
    config.threaded = true;
    config.max_streams = static_cast<uint32_t>(gr_options_find(options, "streams")->i);
    gr_backend_t table = {};
    table.struct_size = sizeof table;
    const int32_t code = host::make_host_backend(kernels(fault), std::move(config), &table, err);
    if (code != GR_OK) return code;
    spoil(fault, &table);
    auto* const out = static_cast<gr_backend_t*>(instance);
    table.struct_size = std::min(out->struct_size, table.struct_size);
    std::memcpy(out, &table, table.struct_size);
    return GR_OK;
  } catch (...) {
    return gr_fail(err, GR_OUT_OF_MEMORY, "create", "out of memory");
  }
}

const gr_option_t options[] = {
    GR_OPT_CHOICE(
        "fault", "none",
        "none|copy_ignores_stream|launch_ignores_stream|wait_does_nothing|"
        "synchronize_does_nothing|event_too_early|event_keeps_first|loses_errors|"
        "unaligned|writes_past|reads_beyond|writes_input|leaves_last|wrong_in_place|"
        "dirty_workspace|relu_swallows_nan|max_swallows_nan|wavers|claims_float64|"
        "claims_alpha|mark_at_once|mark_keeps_first|mark_clock_by_stream|"
        "marks_in_microseconds|reads_unmarked|pattern_forgets|pattern_hides|pattern_unknown",
        "What is wrong."),
    GR_OPT_INT("streams", "4", 1, 16, "Streams offered."),
};

const gr_factory_t factory = {
    sizeof(gr_factory_t), 0,       "backend", "toy", "1.0.0", "For tests.", options, 2,
    sizeof(gr_option_t),  nullptr, create};

}  // namespace

GR_PLUGIN("test.wrong_backend", "1.0.0", &factory);
