// SPDX-License-Identifier: Apache-2.0
// MayThrow: what a variant needs whose other types may find no memory when they are copied.
#pragma once

namespace gradrack::sdk {

/// An alternative that is never chosen. libstdc++ 12 takes a variant of numbers, strings and
/// vectors for one that always holds something: where the copy of a string finds no memory, it
/// destroys what was not made. A type that it does not know that of makes it look.
struct MayThrow {
  MayThrow() = delete;
  MayThrow(const MayThrow&) {}
  bool operator==(const MayThrow&) const { return true; }
};

}  // namespace gradrack::sdk
