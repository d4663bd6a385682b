// SPDX-License-Identifier: Apache-2.0
// gradrack.FusedMatMul by CLBlast: y = alpha op(a) op(b), leading dims broadcast.
//
// Batches become one strided call where strides allow, otherwise one for each outer index. CLBlast
// cannot read the stream's status, so the step settles unanswered checks first. What CLBlast needs
// for itself comes from the host's workspace, as a sub-buffer that is made again only when the
// workspace is somewhere else. Invariant: CLBlast compiles while plans are made (warm_up), not in a
// step.
#include <clblast_c.h>

#include <algorithm>
#include <cmath>

#include "operators.hpp"

namespace opencl_backend {
namespace {

/// Sizes of one call; strides in elements between matrices of a batch.
struct Product {
  CLBlastTranspose ta, tb;
  size_t m, n, k, lda, ldb, batch;
  int64_t stride_a, stride_b, stride_y;
  double alpha;
};

struct Place {
  cl_mem memory;
  size_t offset;  // elements
};

int32_t fail_blast(CLBlastStatusCode code, gr_error_t* err) noexcept {
  if (code == CLBlastSuccess) return GR_OK;
  char text[96];
  (void)std::snprintf(text, sizeof text, "CLBlast failed with status %d (see clblast_c.h)",
                      static_cast<int>(code));
  const bool memory = code == CLBlastTempBufferAllocFailure ||
                      code == CLBlastOpenCLOutOfResources || code == CLBlastOpenCLOutOfHostMemory;
  return gr_fail(err, memory ? GR_OUT_OF_MEMORY : GR_INTERNAL, "FusedMatMul", text);
}

CLBlastStatusCode strided(const Product& p, const Place& a, const Place& b, const Place& y,
                          bool wide, cl_command_queue queue) noexcept {
  const auto sa = static_cast<size_t>(p.stride_a), sb = static_cast<size_t>(p.stride_b);
  const auto sy = static_cast<size_t>(p.stride_y);
  if (wide) {
    return CLBlastDgemmStridedBatched(CLBlastLayoutRowMajor, p.ta, p.tb, p.m, p.n, p.k, p.alpha,
                                      a.memory, a.offset, p.lda, sa, b.memory, b.offset, p.ldb, sb,
                                      0.0, y.memory, y.offset, p.n, sy, p.batch, &queue, nullptr);
  }
  return CLBlastSgemmStridedBatched(CLBlastLayoutRowMajor, p.ta, p.tb, p.m, p.n, p.k,
                                    static_cast<float>(p.alpha), a.memory, a.offset, p.lda, sa,
                                    b.memory, b.offset, p.ldb, sb, 0.0f, y.memory, y.offset, p.n,
                                    sy, p.batch, &queue, nullptr);
}

CLBlastStatusCode single(const Product& p, const Place& a, const Place& b, const Place& y,
                         bool wide, cl_command_queue queue, cl_mem temp) noexcept {
  if (wide) {
    return CLBlastDgemmWithTempBuffer(CLBlastLayoutRowMajor, p.ta, p.tb, p.m, p.n, p.k, p.alpha,
                                      a.memory, a.offset, p.lda, b.memory, b.offset, p.ldb, 0.0,
                                      y.memory, y.offset, p.n, &queue, nullptr, temp);
  }
  return CLBlastSgemmWithTempBuffer(CLBlastLayoutRowMajor, p.ta, p.tb, p.m, p.n, p.k,
                                    static_cast<float>(p.alpha), a.memory, a.offset, p.lda,
                                    b.memory, b.offset, p.ldb, 0.0f, y.memory, y.offset, p.n,
                                    &queue, nullptr, temp);
}

/// Bytes that one matrix of the product needs for CLBlast itself; 0 when it runs directly.
size_t temp_bytes(const Product& p, bool wide, cl_command_queue queue) {
  size_t bytes = 0;
  const auto query = wide ? CLBlastDGemmTempBufferSize : CLBlastSGemmTempBufferSize;
  const CLBlastStatusCode code = query(CLBlastLayoutRowMajor, p.ta, p.tb, p.m, p.n, p.k, 0, p.lda,
                                       0, p.ldb, 0, p.n, &queue, &bytes);
  gr::require(code == CLBlastSuccess, GR_INTERNAL, "FusedMatMul",
              "CLBlast does not say how much memory it needs: status ", static_cast<int>(code));
  return bytes;
}

/// Queues a whole product, matrix by matrix when CLBlast needs memory of its own.
CLBlastStatusCode multiply(const Product& p, Place a, Place b, Place y, bool wide,
                           cl_command_queue queue, cl_mem temp) noexcept {
  if (temp == nullptr && p.batch > 1) return strided(p, a, b, y, wide, queue);
  for (size_t k = 0; k < p.batch; ++k) {
    const CLBlastStatusCode code = single(p, a, b, y, wide, queue, temp);
    if (code != CLBlastSuccess) return code;
    a.offset += static_cast<size_t>(p.stride_a);
    b.offset += static_cast<size_t>(p.stride_b);
    y.offset += static_cast<size_t>(p.stride_y);
  }
  return CLBlastSuccess;
}

class ProductStep final : public Step {
 public:
  struct Start {
    int64_t a, b, y;  // elements
  };
  ProductStep(const Product& product, bool wide, const Port& a, const Port& b, const Port& y)
      : product_(product), wide_(wide), a_(a), b_(b), y_(y) {}

  void start_at(const Start& start) { starts_.push_back(start); }
  void use_temp(const Port& port, size_t bytes) {
    temp_port_ = port;
    temp_bytes_ = bytes;
  }

  int32_t run(const LaunchTensors& tensors, Stream& stream, gr_error_t* err) noexcept override {
    const int32_t settled = stream.settle(err);
    if (settled != GR_OK || stream.failed()) return settled;
    const int32_t made = temp_bytes_ > 0 ? place_temp(tensors, err) : int32_t{GR_OK};
    if (made != GR_OK) return made;
    const Place a = place(a_.of(tensors)), b = place(b_.of(tensors)), y = place(y_.of(tensors));
    for (const Start& s : starts_) {
      const CLBlastStatusCode code = multiply(
          product_, {a.memory, a.offset + static_cast<size_t>(s.a)},
          {b.memory, b.offset + static_cast<size_t>(s.b)},
          {y.memory, y.offset + static_cast<size_t>(s.y)}, wide_, stream.queue(), temp_.get());
      if (code != CLBlastSuccess) return fail_blast(code, err);
    }
    return GR_OK;
  }

 private:
  Place place(const DLTensor& tensor) const noexcept {
    return {static_cast<cl_mem>(tensor.data), tensor.byte_offset / (wide_ ? 8 : 4)};
  }

  /// The sub-buffer for CLBlast: the same one as long as the workspace stays where it is.
  int32_t place_temp(const LaunchTensors& tensors, gr_error_t* err) noexcept {
    const DLTensor& workspace = temp_port_.of(tensors);
    const cl_mem parent = static_cast<cl_mem>(workspace.data);
    const size_t origin = workspace.byte_offset + static_cast<size_t>(temp_port_.offset);
    if (temp_ && parent == parent_ && origin == origin_) return GR_OK;
    const cl_buffer_region region = {origin, temp_bytes_};
    cl_int code = CL_SUCCESS;
    temp_.reset(
        clCreateSubBuffer(parent, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    parent_ = parent;
    origin_ = origin;
    return fail_cl(code, "clCreateSubBuffer", err);
  }

  Product product_;
  bool wide_;
  Port a_, b_, y_, temp_port_;
  size_t temp_bytes_ = 0;
  std::vector<Start> starts_;
  MemoryHandle temp_;
  cl_mem parent_ = nullptr;
  size_t origin_ = 0;
};

/// Strides, over the batch dims of y, of a factor's matrices.
Dims batch_strides(const Dims& dims, const Dims& batch) {
  const int64_t matrix = dims[dims.size() - 2] * dims.back();
  Dims strides = broadcast_strides(Dims(dims.begin(), dims.end() - 2), batch);
  for (int64_t& stride : strides) stride *= matrix;
  return strides;
}

Product product_of(const gr::Node& node, const Dims& a, const Dims& b, const Dims& y) {
  Product p{};
  const bool ta = node.get_int("transA") != 0, tb = node.get_int("transB") != 0;
  p.ta = ta ? CLBlastTransposeYes : CLBlastTransposeNo;
  p.tb = tb ? CLBlastTransposeYes : CLBlastTransposeNo;
  p.m = static_cast<size_t>(y[y.size() - 2]);
  p.n = static_cast<size_t>(y.back());
  p.k = static_cast<size_t>(ta ? a[a.size() - 2] : a.back());
  p.lda = static_cast<size_t>(a.back());
  p.ldb = static_cast<size_t>(b.back());
  p.batch = 1;
  p.alpha = node.get_float("alpha", 1.0);
  return p;
}

/// Puts the innermost batch dim into `p` and leaves the others in `starts`.
std::vector<ProductStep::Start> take_batch(const Space& space, Product* p) {
  const Dims& dims = space.dims();
  const auto& layouts = space.layouts();
  const size_t last = dims.size() - 1;
  p->batch = static_cast<size_t>(dims[last]);
  p->stride_a = layouts[0].strides[last];
  p->stride_b = layouts[1].strides[last];
  p->stride_y = layouts[2].strides[last];
  std::vector<ProductStep::Start> starts = {{0, 0, 0}};
  for (size_t k = 0; k < last; ++k) {
    std::vector<ProductStep::Start> next;
    for (const auto& s : starts) {
      for (int64_t i = 0; i < dims[k]; ++i) {
        next.push_back({s.a + i * layouts[0].strides[k], s.b + i * layouts[1].strides[k],
                        s.y + i * layouts[2].strides[k]});
      }
    }
    starts = std::move(next);
  }
  return starts;
}

/// One b for all a: the rows of all matrices are rows of one.
void merge_rows(Product* p) {
  const auto rows = static_cast<int64_t>(p->m);
  const bool dense = p->ta == CLBlastTransposeNo && p->stride_b == 0 &&
                     p->stride_a == rows * static_cast<int64_t>(p->k) &&
                     p->stride_y == rows * static_cast<int64_t>(p->n);
  if (p->batch == 1 || !dense) return;
  p->m *= p->batch;
  p->batch = 1;
}

MemoryHandle scratch(const Device& device, size_t bytes) {
  cl_int code = CL_SUCCESS;
  MemoryHandle memory(clCreateBuffer(device.context.get(), CL_MEM_READ_WRITE,
                                     std::max<size_t>(bytes, 64), nullptr, &code));
  check_cl(code, "clCreateBuffer");
  return memory;
}

/// Runs the product once on memory of its own, so that CLBlast compiles what it needs now.
void warm_up(const Device& device, const Product& p, bool wide, size_t temp) {
  const size_t item = wide ? 8 : 4;
  const auto extent = [&](int64_t stride, size_t matrix) {
    return (static_cast<size_t>(stride) * (p.batch - 1) + matrix) * item;
  };
  const MemoryHandle a = scratch(device, extent(p.stride_a, p.m * p.k));
  const MemoryHandle b = scratch(device, extent(p.stride_b, p.k * p.n));
  const MemoryHandle y = scratch(device, extent(p.stride_y, p.m * p.n));
  const MemoryHandle t = temp > 0 ? scratch(device, temp) : MemoryHandle();
  gr_error_t err = {};
  const CLBlastStatusCode code =
      multiply(p, {a.get(), 0}, {b.get(), 0}, {y.get(), 0}, wide, device.service.get(), t.get());
  gr::check(fail_blast(code, &err), err);
  check_cl(clFinish(device.service.get()), "clFinish");
}

void build_matmul(Builder& builder) {
  const gr::Node& node = builder.node();
  const Dims a = dims_of(node.input(0)), b = dims_of(node.input(1)), y = dims_of(node.output(0));
  const bool wide = node.output(0).dtype == GR_FLOAT64;
  if (product(y) == 0) return;
  Product p = product_of(node, a, b, y);
  if (p.k == 0) {  // an empty sum; CLBlast refuses it
    return add_map(builder, y, {}, dense_output(builder, 0, wide ? "double" : "float"), "0");
  }
  const Dims batch(y.begin(), y.end() - 2);
  Dims strides = dense_strides(batch);
  for (int64_t& stride : strides) stride *= y[y.size() - 2] * y.back();
  const Space space(batch,
                    {{batch_strides(a, batch), 0}, {batch_strides(b, batch), 0}, {strides, 0}});
  const auto starts = take_batch(space, &p);
  merge_rows(&p);
  auto step =
      std::make_unique<ProductStep>(p, wide, builder.input(0), builder.input(1), builder.output(0));
  for (const auto& start : starts) step->start_at(start);
  const size_t temp = temp_bytes(p, wide, builder.device().service.get());
  if (temp > 0) step->use_temp(builder.workspace(static_cast<int64_t>(temp)), temp);
  warm_up(builder.device(), p, wide, temp);
  builder.add(std::move(step));
}

}  // namespace

void add_matmul_operators(OperatorTable& table) {
  table["gradrack.FusedMatMul"] = {refuse_unless_real, build_matmul};
}

}  // namespace opencl_backend
