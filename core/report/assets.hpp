// SPDX-License-Identifier: Apache-2.0
// Private to report/: page.css and page.js as texts of the program (assets.cpp.in).
#pragma once

namespace gradrack {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace gradrack
