// SPDX-License-Identifier: Apache-2.0
// A page of HTML that needs no other file: the frame that simulations and reports of runs share.
#pragma once

#include <string>

namespace gradrack {

/// `title` is text; `style` and `body` stand as they are, so texts in them went through xml_text.
std::string html_page(const std::string& title, const std::string& style, const std::string& body);

/// `text` for a <pre>: each line through xml_text, line ends kept.
std::string html_lines(const std::string& text);

}  // namespace gradrack
