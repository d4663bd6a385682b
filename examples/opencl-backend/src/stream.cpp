// SPDX-License-Identifier: Apache-2.0
// Streams and events: see stream.hpp. Nothing here allocates but the driver itself.
#include "stream.hpp"

#include <limits>

namespace opencl_backend {
namespace {

/// `a` was given out after `b`; numbers may have gone round.
bool later(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b)) > 0;
}

int32_t fail_record(const StatusRecord& record, gr_error_t* err) {
  static const char* const kOperators[] = {"Gather", "GatherGrad", "GatherElements",
                                           "ScatterElements", "Div"};
  char text[GR_ERROR_MESSAGE_BYTES];
  const auto position = static_cast<long long>(record.position);
  if (record.what == kDivisionFault) {
    (void)std::snprintf(text, sizeof text, "integer division by zero at position %lld", position);
  } else {
    (void)std::snprintf(
        text, sizeof text, "index %lld at position %lld is out of range for an axis of %lld",
        static_cast<long long>(record.value), position, static_cast<long long>(record.limit));
  }
  return gr_fail(err, GR_OUT_OF_RANGE, kOperators[record.what], text);
}

}  // namespace

Stream::Stream(const Device& device) : device_(&device) {
  cl_int code = CL_SUCCESS;
  queue_.reset(clCreateCommandQueue(device.context.get(), device.id, 0, &code));
  check_cl(code, "clCreateCommandQueue");
  status_.reset(clCreateBuffer(device.context.get(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                               sizeof record_, &record_, &code));
  check_cl(code, "clCreateBuffer");
}

Stream::~Stream() { (void)clFinish(queue_.get()); }

int32_t Stream::begin_check() noexcept {
  last_check_ = last_check_ == std::numeric_limits<int32_t>::max() ? 1 : last_check_ + 1;
  return last_check_;
}

int32_t Stream::read_status(cl_command_queue queue, gr_error_t* err) noexcept {
  return fail_cl(clEnqueueReadBuffer(queue, status_.get(), CL_TRUE, 0, sizeof record_, &record_, 0,
                                     nullptr, nullptr),
                 "clEnqueueReadBuffer", err);
}

int32_t Stream::settle(gr_error_t* err) noexcept {
  if (failed() || answered_ == last_check_) return GR_OK;
  const int32_t status = read_status(queue_.get(), err);
  if (status == GR_OK && !failed()) answered_ = last_check_;
  return status;
}

int32_t Stream::give_out(gr_error_t* err) noexcept {
  const int32_t status = fail_record(record_, err);
  (void)clFinish(queue_.get());  // what is queued still sees the error, and is skipped
  record_ = {};
  answered_ = last_check_;
  const cl_int code = clEnqueueWriteBuffer(queue_.get(), status_.get(), CL_TRUE, 0, sizeof record_,
                                           &record_, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? status : fail_cl(code, "clEnqueueWriteBuffer", err);
}

int32_t Stream::synchronize(gr_error_t* err) noexcept {
  const int32_t waited = fail_cl(clFinish(queue_.get()), "clFinish", err);
  if (waited != GR_OK) return waited;
  const int32_t settled = settle(err);
  if (settled != GR_OK || !failed()) return settled;
  return give_out(err);
}

int32_t Stream::synchronize(cl_event marker, int32_t last, gr_error_t* err) noexcept {
  const int32_t waited = fail_cl(clWaitForEvents(1, &marker), "clWaitForEvents", err);
  if (waited != GR_OK) return waited;
  if (!failed() && later(last, answered_)) {
    // Past the queue: later work of the stream may still be running.
    const int32_t status = read_status(device_->service.get(), err);
    if (status != GR_OK) return status;
    if (!failed()) answered_ = last;
  }
  if (!failed() || later(record_.launch, last)) return GR_OK;
  return give_out(err);
}

int32_t Event::record(const std::shared_ptr<Stream>& stream, gr_error_t* err) noexcept {
  cl_event marker = nullptr;
  cl_int code = clEnqueueMarkerWithWaitList(stream->queue(), 0, nullptr, &marker);
  if (code != CL_SUCCESS) return fail_cl(code, "clEnqueueMarkerWithWaitList", err);
  marker_.reset(marker);
  stream_ = stream;
  last_check_ = stream->last_check();
  // Another queue that waits for the marker must not wait for a batch that was never sent.
  return fail_cl(clFlush(stream->queue()), "clFlush", err);
}

int32_t Event::hold_back(Stream& stream, gr_error_t* err) noexcept {
  if (!marker_) return GR_OK;
  cl_event marker = marker_.get();
  return fail_cl(clEnqueueBarrierWithWaitList(stream.queue(), 1, &marker, nullptr),
                 "clEnqueueBarrierWithWaitList", err);
}

int32_t Event::synchronize(gr_error_t* err) noexcept {
  return marker_ ? stream_->synchronize(marker_.get(), last_check_, err) : int32_t{GR_OK};
}

}  // namespace opencl_backend
