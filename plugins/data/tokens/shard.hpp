// SPDX-License-Identifier: Apache-2.0
// Shard: one .bin file of token ids, as nanoGPT and llm.c write them.
//
// Forms: plain (ids and nothing else: nanoGPT), and llm.c's, 256 int32 of header and the ids. The
// header's first numbers: 20240520, 1, count: uint16 (GPT-2); 20240801, 7, count: uint32 (Llama 3).
// Invariant: the ids are as many as the header says, or as the file's size does. All of a file is
// looked at once, so that an id beyond the vocabulary is found before the first step.
#pragma once

#include <functional>

#include "plugins/data/common/ids.hpp"
#include "plugins/data/common/mapped_file.hpp"

/// What the options say of the files.
struct ShardFormat {
  std::string form = "auto";   ///< auto, plain, llmc
  std::string dtype = "auto";  ///< auto (plain: uint16), uint16, uint32
};

/// What reading all of a file tells.
struct ShardContent {
  int64_t largest = -1;  ///< id; -1: there is none
  std::string identity;  ///< the file's name without its folder, its size and SHA-256
};

class Shard {
 public:
  /// Throws GR_NOT_FOUND, GR_IO, and GR_INVALID_ARGUMENT for a file that is not of that form.
  Shard(std::string path, const ShardFormat& format);

  const corpus::IdView& ids() const { return ids_; }
  /// "uint16 plain"
  const std::string& form() const { return form_; }
  /// Reads all of the file, once. With `vocab` above 0 throws GR_OUT_OF_RANGE for an id that is
  /// not below it. `tick` is called now and then and may throw.
  ShardContent look(int64_t vocab, const std::function<void()>& tick) const;

 private:
  void read_header(int64_t count, int width, const ShardFormat& format);
  void read_plain(const ShardFormat& format);

  corpus::MappedFile file_;
  corpus::IdView ids_;
  std::string form_;
};
