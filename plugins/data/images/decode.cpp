// SPDX-License-Identifier: Apache-2.0
// Decoding: see decode.hpp.
#include "decode.hpp"

#include <png.h>
// libjpeg's header wants the one before it.
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>

#include "gradrack/error.hpp"

namespace gr = gradrack::sdk;

namespace {

constexpr int64_t kMostPixels = int64_t{1} << 26;

void check_size(int64_t height, int64_t width, const std::string& path) {
  gr::require(height > 0 && width > 0 && height <= kMostPixels / width, GR_INVALID_ARGUMENT,
              "folder", path, ": is a picture of ", width, " x ", height, " pixels, wanted 1 to ",
              kMostPixels);
}

Picture decode_png(std::span<const std::byte> file, int64_t channels, const std::string& path) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  const auto fail = [&] {
    const std::string reason = image.message;
    png_image_free(&image);
    throw gr::Error(GR_INVALID_ARGUMENT, "folder", path + ": is a damaged PNG: " + reason);
  };
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) fail();
  Picture picture{image.height, image.width, channels, {}};
  try {
    check_size(picture.height, picture.width, path);
    image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    picture.pixels.resize(static_cast<size_t>(picture.height * picture.width * channels));
  } catch (...) {
    png_image_free(&image);
    throw;
  }
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) fail();
  // A warning means that what follows the fault is guessed.
  if ((image.warning_or_error & PNG_IMAGE_WARNING) != 0) fail();
  return picture;
}

/// libjpeg reports errors by a function that must not return.
struct JpegErrors {
  jpeg_error_mgr table;
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
};

void leave(j_common_ptr decoder) {
  auto* errors = reinterpret_cast<JpegErrors*>(decoder->err);
  decoder->err->format_message(decoder, errors->message);
  std::longjmp(errors->back, 1);
}

void complain(j_common_ptr decoder, int level) {
  if (level < 0) leave(decoder);  // the data are damaged, and the rest would be guessed
}

/// Between setjmp and longjmp nothing here has a destructor. False: `errors` says why.
bool read_jpeg(std::span<const std::byte> file, int64_t channels, JpegErrors* errors,
               jpeg_decompress_struct* decoder, Picture* picture) {
  if (setjmp(errors->back) != 0) return false;
  jpeg_create_decompress(decoder);
  jpeg_mem_src(decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  (void)jpeg_read_header(decoder, TRUE);
  decoder->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  decoder->dct_method = JDCT_ISLOW;  // the exact one
  picture->height = decoder->image_height;
  picture->width = decoder->image_width;
  if (picture->height > kMostPixels / picture->width) return true;  // refused by the caller
  (void)jpeg_start_decompress(decoder);
  picture->pixels.resize(static_cast<size_t>(picture->height * picture->width * channels));
  while (decoder->output_scanline < decoder->output_height) {
    JSAMPROW row = picture->pixels.data() + static_cast<size_t>(decoder->output_scanline) *
                                                static_cast<size_t>(picture->width * channels);
    (void)jpeg_read_scanlines(decoder, &row, 1);
  }
  (void)jpeg_finish_decompress(decoder);
  return true;
}

Picture decode_jpeg(std::span<const std::byte> file, int64_t channels, const std::string& path) {
  JpegErrors errors = {};
  jpeg_decompress_struct decoder = {};
  decoder.err = jpeg_std_error(&errors.table);
  errors.table.error_exit = leave;
  errors.table.emit_message = complain;
  const auto end = [](jpeg_decompress_struct* it) { jpeg_destroy_decompress(it); };
  const std::unique_ptr<jpeg_decompress_struct, decltype(end)> owner(&decoder, end);
  Picture picture;
  picture.channels = channels;
  const bool ok = read_jpeg(file, channels, &errors, &decoder, &picture);
  gr::require(ok, GR_INVALID_ARGUMENT, "folder", path, ": is a damaged JPEG: ", errors.message);
  check_size(picture.height, picture.width, path);
  return picture;
}

bool begins_with(std::span<const std::byte> file, std::string_view start) {
  return file.size() >= start.size() && std::memcmp(file.data(), start.data(), start.size()) == 0;
}

}  // namespace

Picture decode_picture(std::span<const std::byte> file, int64_t channels, const std::string& path) {
  if (begins_with(file, "\x89PNG\r\n\x1a\n")) return decode_png(file, channels, path);
  if (begins_with(file, "\xFF\xD8\xFF")) return decode_jpeg(file, channels, path);
  throw gr::Error(GR_INVALID_ARGUMENT, "folder",
                  path + ": is neither a PNG nor a JPEG, whatever its name says");
}
