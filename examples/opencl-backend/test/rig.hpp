// SPDX-License-Identifier: Apache-2.0
// A small stand-in for the host: loads a backend library and runs one node on it.
//
// For bringing up a device before gradrack-conform: it knows the C table alone. Two backends are
// driven alike, so that `reference` of the installed Gradrack says what is right. Invariant:
// nothing of the backend's own code is used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradrack/gradrack.h"

namespace rig {

struct Tensor {
  gr_dtype_t dtype = GR_FLOAT32;
  std::vector<int64_t> dims;
  std::vector<double> values;  // int64 up to 2^53
  bool known = false;          // handed to claim and prepare as a constant
};

struct Attr {
  std::string name;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  int32_t type = GR_ATTR_INT;
};

struct Case {
  std::string op;  // "Add", "gradrack.FusedMatMul"
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;  // dtype and dims
  std::vector<Attr> attrs;
};

struct Answer {
  int32_t status = GR_OK;
  std::string message;                      // of a refusal or an error
  std::vector<std::vector<double>> values;  // by output
};

class Backend {
 public:
  /// Loads `library` and makes its backend with the defaults of its options.
  explicit Backend(const std::string& library);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  bool ok() const { return status_ == GR_OK; }
  std::string message() const { return error_.message; }
  const gr_backend_t& table() const { return table_; }

  /// Claims, prepares, copies in, launches, copies out.
  Answer run(const Case& c);

 private:
  gr_backend_t table_ = {};
  gr_error_t error_ = {};
  int32_t status_ = GR_INTERNAL;
};

}  // namespace rig
