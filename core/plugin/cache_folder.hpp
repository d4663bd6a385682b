// SPDX-License-Identifier: Apache-2.0
// The folder for files that can be made again: where it is, and that it is the user's own.
//
// $GRADRACK_CACHE_DIR, else $XDG_CACHE_HOME/gradrack, else $HOME/.cache/gradrack; none in a process
// with raised privileges. Invariant: what is handed out exists, and nobody else can write in it.
#pragma once

#include <sys/stat.h>

#include <string>

#include "core/base/status.hpp"

namespace gradrack {

/// The folder as the environment says; "" when there is none.
std::string default_cache_folder();

/// "" when only this user can write there, else who can, to finish a sentence.
std::string exposure(const struct stat& info);

/// Makes `folder` (0700) and those above it where they are missing. An error that finishes the
/// sentence "FOLDER is not used: ..." when that fails, it is no folder, or others can write in it.
Status make_private_folder(const std::string& folder);

/// Where more than `most` files of `folder` begin with `prefix`, the older half of them goes.
void drop_oldest(const std::string& folder, const std::string& prefix, size_t most);

}  // namespace gradrack
