// SPDX-License-Identifier: Apache-2.0
// Backend `my_backend`: a device in host memory that runs a few float32 operators in plain loops.
//
// The host asks claim about every node, prepare for a kernel of each claimed one, and calls launch
// in every step. What is not claimed goes to the next backend of the chain or is taken apart into
// operators that are (`gradrack ops`). Work runs inside the call, so a stream is always idle and an
// event always passed. Invariant: a kernel depends on its inputs and attributes alone.
// Change first: a row of kLoops, its rule in `refusal`, its loop. Then memory and streams.
#include <cstdlib>

#include "gradrack/backend.hpp"
#include "loops.hpp"

namespace {

namespace gr = gradrack::sdk;

constexpr int64_t kAlignment = 64;  // bytes, of every allocation

bool same_dims(const gr_value_type_t& a, const gr_value_type_t& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

class MyBackend {
 public:
  static constexpr const char* kName = "my_backend";  // `plugin: my_backend`
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "A few float32 operators in plain loops.";

  // A device with queues keeps its own in these. A kernel owns what it needs in every step.
  struct Stream {};
  struct Event {};
  struct Kernel {
    Loop run = nullptr;
    LoopSizes sizes;
    int32_t input[2] = {-1, -1};  // place among the inputs of launch
  };

  // A device that may be absent also has: static void probe(const gr_host_t&), which throws
  // gr::Error(GR_UNSUPPORTED, "device", "why"), so that the next backend of the chain is taken.
  explicit MyBackend(const gr::Options&) {}

  gr_device_info_t device_info() const {
    gr_device_info_t info{};
    info.device_type = kDLCPU;
    info.memory = GR_MEMORY_HOST;  // GR_MEMORY_DEVICE or _HANDLE: the host never reads through it
    info.alignment = kAlignment;
    info.max_streams = 16;
    info.description = "host memory, plain loops";
    return info;
  }

  // Memory. The host owns all of it and takes it before the first step.
  void* allocate(int64_t bytes) {
    const int64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes <= 0 || rounded < bytes) return nullptr;
    return std::aligned_alloc(kAlignment, static_cast<size_t>(rounded));
  }
  void release(void* memory) noexcept { std::free(memory); }
  int32_t copy(const DLTensor& to, const DLTensor& from, Stream&, gr_error_t*) noexcept {
    const int64_t bytes = gr::byte_count(from);
    if (bytes > 0) std::memcpy(data(to), data(from), static_cast<size_t>(bytes));
    return GR_OK;
  }

  // Streams and events. A device with queues marks a place in one and lets another wait for it.
  std::unique_ptr<Stream> make_stream() { return std::make_unique<Stream>(); }
  std::unique_ptr<Event> make_event() { return std::make_unique<Event>(); }
  int32_t synchronize(Stream&, gr_error_t*) noexcept { return GR_OK; }
  int32_t synchronize(Event&, gr_error_t*) noexcept { return GR_OK; }
  int32_t record(Event&, Stream&, gr_error_t*) noexcept { return GR_OK; }
  int32_t wait(Stream&, Event&, gr_error_t*) noexcept { return GR_OK; }

  // May this node run here? It comes as a yes; the reason of a no stands in the host's report.
  void claim(const gr::Node& node, gr_claim_t& claim) const {
    const std::string reason = refusal(node);
    if (!reason.empty()) gr::refuse(claim, reason);
  }

  // Shapes are known: make the kernel. The node is gone after the call, so copy what it needs.
  std::unique_ptr<Kernel> prepare(const gr::Group& group, gr_kernel_info_t& info) const {
    gr::require(group.nodes().size() == 1, GR_UNSUPPORTED, "prepare", "one node at a time");
    const gr::Node node = group.nodes()[0];
    const std::string reason = refusal(node);
    gr::require(reason.empty(), GR_UNSUPPORTED, node.op().c_str(), reason);
    auto kernel = std::make_unique<Kernel>();
    kernel->run = find_loop(node.op())->run;
    const bool matmul = kernel->run == loop_matmul;
    kernel->sizes.count = gr::element_count(node.output(0));
    for (uint32_t k = 0; k < node.input_count(); ++k) {
      kernel->input[k] = group.input_position(node.input(k).id);
      const bool moves = same_dims(node.input(k), node.output(0));
      kernel->sizes.step[k] = moves ? 1 : 0;
      if (moves && !matmul) info.in_place[0] = kernel->input[k];  // output over this input
    }
    if (matmul) size_matmul(node, kernel->sizes);
    return kernel;
  }

  // In every step. A device of its own would queue the kernel on the stream and return.
  int32_t launch(Kernel& kernel, const DLTensor* const* inputs, DLTensor* const* outputs,
                 const DLTensor*, Stream&, gr_error_t*) noexcept {
    const auto input = [&](int k) {
      return kernel.input[k] < 0 ? nullptr : data(*inputs[kernel.input[k]]);
    };
    kernel.run(kernel.sizes, input(0), input(1), data(*outputs[0]));
    return GR_OK;
  }

 private:
  static float* data(const DLTensor& t) {
    return reinterpret_cast<float*>(static_cast<char*>(t.data) + t.byte_offset);
  }

  /// Empty: the node runs here. Else the dtype, rank or shape in the way.
  static std::string refusal(const gr::Node& node) {
    const LoopRow* row = find_loop(node.op());
    if (row == nullptr) return "no kernel";
    if (node.input_count() != row->inputs || node.output_count() != 1) return "number of inputs";
    const gr_value_type_t& output = node.output(0);
    if (output.dtype != GR_FLOAT32) return "the output is " + gr::dtype_text(output.dtype);
    for (uint32_t k = 0; k < row->inputs; ++k) {
      const gr_value_type_t& input = node.input(k);
      if (input.dtype != GR_FLOAT32) {
        return gr::text("input ", k, " is ", gr::dtype_text(input.dtype));
      }
      if (row->run == loop_matmul) {
        if (input.rank != 2) return "matrices of rank 2 alone";
      } else if (!same_dims(input, output) && gr::element_count(input) != 1) {
        return "broadcasts of one number alone";
      }
    }
    return "";
  }

  static void size_matmul(const gr::Node& node, LoopSizes& sizes) {
    sizes.trans_a = node.get_int("transA") != 0;
    sizes.trans_b = node.get_int("transB") != 0;
    sizes.alpha = node.get_float("alpha", 1);
    sizes.rows = node.output(0).dims[0];
    sizes.columns = node.output(0).dims[1];
    sizes.inner = node.input(0).dims[sizes.trans_a ? 0 : 1];
  }
};

}  // namespace

// The one exported symbol. The id is yours: reverse DNS.
GRADRACK_PLUGIN("org.example.my_backend", "1.0.0", gr::Backend<MyBackend>)
