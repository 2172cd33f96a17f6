#include "propose/event_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace kbeam {
namespace {

std::vector<StreamEvent> read_in_pieces(std::string_view bytes, std::size_t piece) {
  std::vector<StreamEvent> events;
  EventStream stream([&](const StreamEvent& event) { events.push_back(event); });
  for (std::size_t at = 0; at < bytes.size(); at += piece) stream.feed(bytes.substr(at, piece));
  return events;
}

TEST(EventStream, ThePiecesDoNotMatter) {
  constexpr std::string_view kBytes =
      "\xEF\xBB\xBF: a comment\r\n"
      "event: delta\r\ndata: {\"a\":1}\r\n\r\n"
      "data: one\ndata:two\n\n"
      "data: by return\r\r"
      "id: 7\n\n"
      "data\n\n"
      "data: never ended";
  for (std::size_t piece = 1; piece < kBytes.size(); ++piece) {
    const std::vector<StreamEvent> events = read_in_pieces(kBytes, piece);
    ASSERT_EQ(events.size(), 4u) << "pieces of " << piece;
    EXPECT_EQ(events[0].name, "delta");
    EXPECT_EQ(events[0].data, "{\"a\":1}");
    EXPECT_EQ(events[1].name, "");
    EXPECT_EQ(events[1].data, "one\ntwo");
    EXPECT_EQ(events[2].data, "by return");
    EXPECT_EQ(events[3].data, "");
  }
}

TEST(EventStream, GarbageIsNoEvent) {
  EXPECT_TRUE(read_in_pieces("<html>\n\n<body>502</body>\n\n", 5).empty());
  EXPECT_TRUE(read_in_pieces("\n\n\n", 1).empty());
}

}  // namespace
}  // namespace kbeam
