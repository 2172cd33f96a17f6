#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace kbeam {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for gzip's frame
constexpr std::size_t kPiece = std::size_t{1} << 18;

void give_input(z_stream& stream, std::string_view bytes, std::size_t from) {
  const std::size_t left = bytes.size() - from;
  // zlib does not write here, but its field is not const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + from));
  stream.avail_in =
      static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

Error damaged(const std::string& name, const std::string& what) {
  return {ErrorCode::corrupt, "unpack " + name, what, "fetch or record the file again"};
}

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) ==
            Z_OK,
        "zlib starts");
  std::string packed, piece(kPiece, '\0');
  std::size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      give_input(stream, text, taken);
      taken += stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
    packed.append(piece, 0, piece.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

Result<std::string> gunzip(std::string_view bytes, const std::string& name,
                           std::size_t most_bytes) {
  z_stream stream{};
  CHECK(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib starts");
  std::string text, piece(kPiece, '\0');
  std::size_t taken = 0;
  int state = Z_OK;
  while (state == Z_OK && text.size() <= most_bytes) {
    if (stream.avail_in == 0) {
      give_input(stream, bytes, taken);
      taken += stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, 0, piece.size() - stream.avail_out);
    const bool more = stream.avail_in > 0 || taken < bytes.size();
    if (state == Z_STREAM_END && more) state = inflateReset(&stream);  // the next member
  }
  inflateEnd(&stream);
  if (text.size() > most_bytes) return damaged(name, "it holds too much text");
  if (state != Z_STREAM_END) return damaged(name, "it is cut off or was changed");
  return text;
}

}  // namespace kbeam
