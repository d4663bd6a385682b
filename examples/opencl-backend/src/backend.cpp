// SPDX-License-Identifier: Apache-2.0
// The backend class: what Gradrack's wrapper (gradrack/backend.hpp) makes a plugin of.
//
// Memory is cl_mem objects, of which the host names parts (GR_MEMORY_HANDLE): a tensor's `data` is
// the cl_mem, byte_offset its place. Streams are in-order queues, events are markers in them.
// Invariant: nothing is compiled and nothing allocated by us once a plan is made.
#include "gradrack/backend.hpp"

#include <clblast_c.h>

#include <cstring>

#include "operators.hpp"
#include "runtime.hpp"

namespace opencl_backend {
namespace {

constexpr gr_option_t kOpenClOptions[] = {
    GR_OPT_STRING("platform", "any", "part of the platform's name; any: the first that fits"),
    GR_OPT_STRING("device", "any", "number on its platform, or part of its name; any: the first"),
    GR_OPT_INT("streams", "4", 1, 64, "most command queues at once"),
};

OperatorTable all_operators() {
  OperatorTable table;
  add_unary_operators(table);
  add_binary_operators(table);
  add_move_operators(table);
  add_reduce_operators(table);
  add_index_operators(table);
  add_window_operators(table);
  add_matmul_operators(table);
  return table;
}

class OpenClBackend {
 public:
  static constexpr const char* kName = "opencl";
  static constexpr const char* kVersion = "1.0.0";
  static constexpr const char* kHelp = "Any OpenCL 1.2 device; matrix products by CLBlast.";
  static constexpr auto& kOptions = kOpenClOptions;

  /// The host holds a stream by address, an event keeps its stream alive: hence one more level.
  struct Stream {
    std::shared_ptr<opencl_backend::Stream> shared;
  };
  using Event = opencl_backend::Event;
  using Kernel = opencl_backend::Kernel;

  static void probe(const gr_host_t&) { require_any_platform(); }

  explicit OpenClBackend(const gr::Options& options)
      : runtime_(Runtime::open(options.get<std::string>("platform"),
                               options.get<std::string>("device"))),
        device_(runtime_->device),
        programs_(runtime_->programs),
        streams_(static_cast<uint32_t>(options.get<int64_t>("streams"))),
        operators_(all_operators()) {}

  gr_device_info_t device_info() const {
    gr_device_info_t info{};
    info.device_type = kDLOpenCL;
    info.device_id = device_.index;
    info.memory = GR_MEMORY_HANDLE;
    info.alignment = device_.alignment;
    info.memory_bytes = device_.memory_bytes;
    info.max_streams = streams_;
    info.description = device_.description.c_str();
    return info;
  }

  void* allocate(int64_t bytes) {
    gr::require(bytes <= device_.largest_allocation, GR_OUT_OF_MEMORY, "allocate", bytes,
                " bytes in one piece, the device gives at most ", device_.largest_allocation);
    cl_int code = CL_SUCCESS;
    MemoryHandle memory(clCreateBuffer(device_.context.get(), CL_MEM_READ_WRITE,
                                       static_cast<size_t>(bytes), nullptr, &code));
    check_cl(code, "clCreateBuffer");
    // A driver may put off taking memory until it is used; out of memory should come out here.
    const cl_mem raw = memory.get();
    check_cl(
        clEnqueueMigrateMemObjects(device_.service.get(), 1, &raw,
                                   CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr),
        "clEnqueueMigrateMemObjects");
    check_cl(clFinish(device_.service.get()), "clFinish");
    return memory.detach();
  }
  void release(void* memory) noexcept { (void)clReleaseMemObject(static_cast<cl_mem>(memory)); }

  std::unique_ptr<Stream> make_stream() {
    start_copying();
    return std::make_unique<Stream>(Stream{std::make_shared<opencl_backend::Stream>(device_)});
  }
  std::unique_ptr<Event> make_event() { return std::make_unique<Event>(); }

  void claim(const gr::Node& node, gr_claim_t& claim) {
    const auto found = operators_.find(node.op());
    if (found == operators_.end()) return gr::refuse(claim, "no kernel for " + node.op());
    const std::string reason = found->second.refuse(node, device_);
    if (!reason.empty()) gr::refuse(claim, reason);
  }

  std::unique_ptr<Kernel> prepare(const gr::Group& group, gr_kernel_info_t& info) {
    gr::require(group.nodes().size() == 1, GR_INVALID_ARGUMENT, "prepare",
                "a group here is exactly one node");
    const gr::Node node = group.nodes()[0];
    const auto found = operators_.find(node.op());
    gr::require(found != operators_.end(), GR_UNSUPPORTED, "prepare", "no kernel for ", node.op());
    const std::string reason = found->second.refuse(node, device_);
    gr::require(reason.empty(), GR_UNSUPPORTED, node.raw().op, reason);
    Builder builder(node, group, device_, programs_);
    found->second.build(builder);
    info.workspace_bytes = builder.workspace_bytes();
    for (const auto& [output, input] : builder.shared()) {
      if (output < GR_MAX_IN_PLACE) info.in_place[output] = input;
    }
    return builder.finish();
  }

  int32_t copy(const DLTensor& to, const DLTensor& from, Stream& stream, gr_error_t* err) noexcept {
    opencl_backend::Stream& s = *stream.shared;
    const auto bytes = static_cast<size_t>(gr::byte_count(from));
    if (bytes == 0) return GR_OK;
    const bool to_host = to.device.device_type == kDLCPU;
    const bool from_host = from.device.device_type == kDLCPU;
    if (!to_host && !from_host) return copy_here(to, from, bytes, s, err);
    const int32_t settled = s.settle(err);
    if (settled != GR_OK || s.failed()) return settled;
    // Neither waits: host memory stays valid until the stream has passed.
    if (from_host) {
      return fail_cl(
          clEnqueueWriteBuffer(s.queue(), static_cast<cl_mem>(to.data), CL_FALSE, to.byte_offset,
                               bytes, host_bytes(from), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer", err);
    }
    return fail_cl(
        clEnqueueReadBuffer(s.queue(), static_cast<cl_mem>(from.data), CL_FALSE, from.byte_offset,
                            bytes, host_bytes(to), 0, nullptr, nullptr),
        "clEnqueueReadBuffer", err);
  }

  int32_t synchronize(Stream& stream, gr_error_t* err) noexcept {
    return stream.shared->synchronize(err);
  }
  int32_t record(Event& event, Stream& stream, gr_error_t* err) noexcept {
    return event.record(stream.shared, err);
  }
  int32_t wait(Stream& stream, Event& event, gr_error_t* err) noexcept {
    return event.hold_back(*stream.shared, err);
  }
  int32_t synchronize(Event& event, gr_error_t* err) noexcept { return event.synchronize(err); }

  int32_t launch(Kernel& kernel, const DLTensor* const* inputs, DLTensor* const* outputs,
                 const DLTensor* workspace, Stream& stream, gr_error_t* err) noexcept {
    opencl_backend::Stream& s = *stream.shared;
    const LaunchTensors tensors{inputs, outputs, workspace};
    for (const std::unique_ptr<Step>& step : kernel.steps) {
      if (s.failed()) return GR_OK;  // skipped: the error comes out when the stream is synchronised
      const int32_t status = step->run(tensors, s, err);
      if (status != GR_OK) return status;
    }
    return GR_OK;
  }

 private:
  /// Compiles what copy_here needs, before the first stream.
  void start_copying() {
    if (copy_) return;
    copy_ = programs_.kernel(
        "kernel void copy(STATUS, BUFFER(y), BUFFER(x), const long n) {\n"
        "  const long i = get_global_id(0);\n"
        "  if (i < n && !STOPPED) AT(uchar, y)[i] = AT(const uchar, x)[i];\n}\n",
        "copy");
  }

  static char* host_bytes(const DLTensor& tensor) noexcept {
    return static_cast<char*>(tensor.data) + tensor.byte_offset;
  }

  /// Within the device by a kernel of our own, which heeds the stream's status.
  int32_t copy_here(const DLTensor& to, const DLTensor& from, size_t bytes,
                    opencl_backend::Stream& s, gr_error_t* err) noexcept {
    const cl_kernel kernel = copy_.get();
    const cl_mem status = s.status(), y = static_cast<cl_mem>(to.data);
    const cl_mem x = static_cast<cl_mem>(from.data);
    const cl_ulong y_offset = to.byte_offset, x_offset = from.byte_offset;
    const cl_long n = static_cast<cl_long>(bytes);
    cl_int code = clSetKernelArg(kernel, 0, sizeof status, &status);
    code |= clSetKernelArg(kernel, 1, sizeof y, &y);
    code |= clSetKernelArg(kernel, 2, sizeof y_offset, &y_offset);
    code |= clSetKernelArg(kernel, 3, sizeof x, &x);
    code |= clSetKernelArg(kernel, 4, sizeof x_offset, &x_offset);
    code |= clSetKernelArg(kernel, 5, sizeof n, &n);
    if (code != CL_SUCCESS) return fail_cl(code, "clSetKernelArg", err);
    const size_t group = device_.group, global = (bytes + group - 1) / group * group;
    return fail_cl(
        clEnqueueNDRangeKernel(s.queue(), kernel, 1, nullptr, &global, &group, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel", err);
  }

  std::shared_ptr<Runtime> runtime_;
  const Device& device_;
  ProgramCache& programs_;
  uint32_t streams_;
  OperatorTable operators_;
  KernelHandle copy_;
};

/// CLBlast keeps compiled programs for the whole process; they go while the driver is still there.
int32_t stop(int64_t, gr_error_t*) noexcept {
  (void)CLBlastClearCache();
  Runtime::close_all();
  return GR_OK;
}

}  // namespace
}  // namespace opencl_backend

GRADRACK_PLUGIN_WITH_STOP("org.example.opencl", "1.0.0", opencl_backend::stop,
                          gradrack::sdk::Backend<opencl_backend::OpenClBackend>)
