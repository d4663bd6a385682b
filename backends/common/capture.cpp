// SPDX-License-Identifier: Apache-2.0
// gr.capture/1: begin points streams to a recording, end takes it away from them. See
// recording.hpp.
#include "backends/common/capture.hpp"

#include <array>

#include "backends/common/handles.hpp"
#include "backends/common/recording.hpp"

namespace gradrack::host {
namespace {

constexpr uint32_t kMostStreams = 64;  // in one recording; what replay has room for

std::shared_ptr<Recording>& recording_of(gr_recording_t* recording) {
  return *reinterpret_cast<std::shared_ptr<Recording>*>(recording);
}

int32_t refuse(gr_error_t* err, const char* call, const std::string& text) {
  return gr_fail(err, GR_INVALID_ARGUMENT, call, text.c_str());
}

int32_t check_count(uint32_t count, const char* call, gr_error_t* err) {
  if (count > 0 && count <= kMostStreams) return GR_OK;
  return refuse(err, call,
                std::to_string(count) + " streams, wanted 1 to " + std::to_string(kMostStreams));
}

int32_t begin(void*, gr_stream_t* const* streams, uint32_t count, gr_error_t* err) noexcept {
  return guarded("begin", err, [&] {
    const int32_t code = check_count(count, "begin", err);
    if (code != GR_OK) return code;
    std::vector<std::shared_ptr<Stream>> all;
    for (uint32_t k = 0; k < count; ++k) {
      all.push_back(stream_of(streams[k]));
      if (all[k]->recording() == nullptr) continue;
      return gr_fail(err, GR_FAILED_PRECONDITION, "begin", "a stream is being recorded already");
    }
    const auto recording = std::make_shared<Recording>(all);
    for (uint32_t k = 0; k < count; ++k) {
      if (all[k]->recording() == nullptr) {
        all[k]->record_to(recording, k);
        continue;
      }
      for (uint32_t named = 0; named < k; ++named) all[named]->record_to(nullptr, 0);
      return refuse(err, "begin", "stream " + std::to_string(k) + " is named twice");
    }
    return int32_t{GR_OK};
  });
}

int32_t end(void*, gr_stream_t* stream, gr_recording_t** out, gr_error_t* err) noexcept {
  return guarded("end", err, [&] {
    const std::shared_ptr<Recording> recording = stream_of(stream)->recording();
    if (recording == nullptr) {
      return gr_fail(err, GR_FAILED_PRECONDITION, "end", "this stream is not being recorded");
    }
    for (const auto& each : recording->streams()) each->record_to(nullptr, 0);
    recording->seal();
    if (out != nullptr) {
      *out = reinterpret_cast<gr_recording_t*>(new std::shared_ptr<Recording>(recording));
    }
    return int32_t{GR_OK};
  });
}

int32_t replay(void*, gr_recording_t* recording, gr_stream_t* const* streams, uint32_t count,
               gr_error_t* err) noexcept {
  return guarded("replay", err, [&] {
    Recording& what = *recording_of(recording);
    if (count != what.lanes()) {
      return refuse(
          err, "replay",
          std::to_string(count) + " streams for a recording of " + std::to_string(what.lanes()));
    }
    std::array<Stream*, kMostStreams> on;
    for (uint32_t k = 0; k < count; ++k) {
      on[k] = stream_of(streams[k]).get();
      if (on[k]->recording() == nullptr) continue;
      return gr_fail(err, GR_FAILED_PRECONDITION, "replay", "a stream is being recorded");
    }
    what.replay({on.data(), count});
    return int32_t{GR_OK};
  });
}

void destroy(void*, gr_recording_t* recording) noexcept {
  if (recording != nullptr) delete &recording_of(recording);
}

}  // namespace

const gr_capture_t* capture_extension() {
  static const gr_capture_t table = {sizeof table, GR_CAPTURE_EVENTS, nullptr, begin, end, replay,
                                     destroy};
  return &table;
}

}  // namespace gradrack::host
