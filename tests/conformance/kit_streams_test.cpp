// SPDX-License-Identifier: Apache-2.0
// The streams that the kit tries, and the one that it reads back on.
#include <gtest/gtest.h>

#include "backends/common/host_backend.hpp"
#include "backends/reference/kernels.hpp"
#include "sdk/conformance/backend_streams.hpp"

namespace gradrack::conform {
namespace {

/// The reference kernels on a device of so many streams, with a lab on it.
class Offered {
 public:
  explicit Offered(uint32_t streams) {
    host::KernelTable kernels;
    reference::add_all_kernels(kernels);
    host::HostBackendConfig config;
    config.description = "for tests";
    config.max_streams = streams;
    table_.struct_size = sizeof table_;
    gr_error_t err = {};
    EXPECT_EQ(host::make_host_backend(std::move(kernels), std::move(config), &table_, &err), GR_OK);
    auto device = Device::make("toy", &table_);
    EXPECT_TRUE(device.ok()) << device.status().message();
    device_ = std::move(*device);
    auto rig = Rig::make(device_.get());
    EXPECT_TRUE(rig.ok()) << rig.status().message();
    rig_ = std::move(*rig);
    auto lab = StreamLab::make({rig_.get(), rig_.get(), 1}, 16);
    EXPECT_TRUE(lab.ok()) << lab.status().message();
    lab_ = std::move(*lab);
  }
  ~Offered() {
    lab_.reset();
    rig_.reset();
    device_.reset();
    table_.destroy(table_.self);
  }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;

  size_t tried() const { return lab_->stream_count(); }
  bool tries_the_rigs() const {
    for (size_t k = 0; k < tried(); ++k) {
      if (lab_->stream(k) == rig_->stream()) return true;
    }
    return false;
  }

 private:
  gr_backend_t table_ = {};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Rig> rig_;
  std::unique_ptr<StreamLab> lab_;
};

TEST(KitStreams, ReadsBackOnAStreamThatIsNotTried) {
  for (const uint32_t streams : {3u, 4u, 8u, 9u, 16u}) {
    const Offered offered(streams);
    EXPECT_FALSE(offered.tries_the_rigs()) << streams;
    EXPECT_EQ(offered.tried(), std::min<size_t>(8, streams - 1)) << streams;
  }
}

TEST(KitStreams, TriesTwoStreamsWhereThereAreNoMore) {
  EXPECT_EQ(Offered(2).tried(), 2u);
  EXPECT_EQ(Offered(1).tried(), 1u);
}

}  // namespace
}  // namespace gradrack::conform
