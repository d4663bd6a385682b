// SPDX-License-Identifier: Apache-2.0
// Cancelling: see cancel.hpp.
#include "plugins/data/common/cancel.hpp"

#include "gradrack/error.hpp"
#include "gradrack/extensions.h"

namespace corpus {

namespace gr = gradrack::sdk;

std::function<void()> cancel_tick(const gr_host_t& host) {
  const auto* cancel =
      static_cast<const gr_cancel_t*>(host.get_extension(host.context, GR_EXT_CANCEL));
  return [cancel] {
    gr::require(cancel == nullptr || cancel->cancelled(cancel->context) == 0, GR_CANCELLED, "",
                "the run was asked to end while the data was read");
  };
}

}  // namespace corpus
