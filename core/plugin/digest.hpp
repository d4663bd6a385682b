// SPDX-License-Identifier: Apache-2.0
// SHA-256, as plugin manifests, plugins.lock and cached verdicts write it.
//
// Small part of plugin/. libnettle does the work: an eighth of libcrypto's start-up cost for the
// one function that is needed. Invariant: always 64 lower-case hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace gradrack {

/// FIPS 180-4 SHA-256 of `bytes`. [any]
std::string sha256_hex(std::string_view bytes);

/// Has `text` the form of such a digest?
bool is_sha256_hex(std::string_view text);

}  // namespace gradrack
