// SPDX-License-Identifier: Apache-2.0
// StreamSet: see stream_set.hpp.
#include "core/exec/stream_set.hpp"

namespace gradrack {

Result<gr_stream_t*> StreamSet::stream(Device* device, uint32_t index) {
  if (!device->concurrent()) return device->stream(index);
  GR_CHECK(index < device->info().max_streams);
  std::vector<Stream>& streams = own_[device];
  while (streams.size() <= index) {
    GR_ASSIGN(Stream made, device->make_stream());
    streams.push_back(std::move(made));
  }
  return streams[index].get();
}

}  // namespace gradrack
