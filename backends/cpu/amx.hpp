// SPDX-License-Identifier: Apache-2.0
// AMX: the processor's tiles for products of bfloat16, and who may use them.
//
// Kernels that are written for tiles (files compiled with -mamx-tile -mamx-bf16) ask amx_usable()
// when they are made and open an AmxTiles around their work. Invariant: one layout for all, eight
// tiles of 16 rows of 64 bytes; what is smaller is padded with zeros by the kernel.
#pragma once

namespace gradrack::cpu {

/// The processor has AMX-BF16 and AVX512-BF16, the system lends the tiles' registers to this
/// process, and GRADRACK_CPU_ISA asks for no less. [any]
bool amx_usable();

/// The tiles of the calling thread, laid out and given back. Not across a call of oneDNN, which
/// lays them out in its own way. amx_usable() must hold.
class AmxTiles {
 public:
  AmxTiles();
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
};

}  // namespace gradrack::cpu
