// SPDX-License-Identifier: Apache-2.0
// Exit codes of the `gradrack` program: their one home.
//
// Scripts branch on these, so a number never changes its meaning. Invariant: what the user can mend
// in the command or the config is 2; everything else says where to look.
#pragma once

#include "core/base/status.hpp"

namespace gradrack {

enum ExitCode : int {
  kExitOk = 0,
  kExitInternal = 1,  ///< a bug, out of memory, or a part that is not available
  kExitUsage = 2,     ///< command line or configuration
  kExitPlugin = 3,    ///< plugin missing, not loadable, wrong ABI version, or none of a chain works
  kExitData = 4,      ///< data or file: missing, empty, out of range, unwritable
  kExitStopped = 5,   ///< training stopped: non-finite loss
  kExitAgain = 75,    ///< stopped and saved before its end (EX_TEMPFAIL): start it again
  kExitSighup = 129,  ///< 128 + SIGHUP
  kExitSigint = 130,  ///< 128 + SIGINT
  kExitSigterm = 143,  ///< 128 + SIGTERM
};

/// The exit code of an error: by its code first, by its area where that leaves it open.
inline int exit_code(const Status& status) {
  const Area area = status.area();
  switch (status.code()) {
    case GR_OK:
      return kExitOk;
    case GR_INVALID_ARGUMENT:
      return kExitUsage;
    case GR_VERSION:
      return kExitPlugin;
    case GR_NONFINITE:
      return kExitStopped;
    case GR_CANCELLED:
      return kExitAgain;
    case GR_UNSUPPORTED:
      return area == Area::kPlugin ? kExitPlugin : kExitInternal;
    case GR_NOT_FOUND:
    case GR_FAILED_PRECONDITION:
    case GR_IO:
    case GR_OUT_OF_RANGE:
      return area == Area::kConfig ? kExitUsage : area == Area::kPlugin ? kExitPlugin : kExitData;
    default:
      return kExitInternal;
  }
}

}  // namespace gradrack
