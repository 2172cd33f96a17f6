#include "report/ncu_counters.h"

#include <gmock/gmock.h>

namespace kbeam {
namespace {

using testing::HasSubstr;

constexpr char kTable[] =
    "==PROF== Connected to process 510\n"
    "\"ID\",\"Kernel Name\",\"Block Size\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
    "\"0\",\"kbeam_probe\",\"(256, 1, 1)\",\"gpu__time_duration.sum\",\"ns\",\"199040\"\n"
    "\"1\",\"_Z5panelPf\",\"(32, 1, 1)\",\"gpu__time_duration.sum\",\"ns\",\"20,000\"\n"
    "\"1\",\"_Z5panelPf\",\"(32, 1, "
    "1)\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"%\",\"0.5\"\n"
    "\"2\",\"_Z5panelPf\",\"(32, 1, 1)\",\"gpu__time_duration.sum\",\"ns\",\"40000\"\n"
    "\"2\",\"_Z5panelPf\",\"(32, 1, 1)\",\"launch__a \"\"quoted\"\" one\",\"\",\"n/a\"\n"
    "==PROF== Disconnected\n";

TEST(NcuCounters, the_mean_of_a_metric_over_the_launches_of_a_kernel_of_the_plan) {
  const auto counters = counters_from_ncu(kTable, {"_Z5panelPf", "_Z6updatePf"});
  ASSERT_TRUE(counters.ok()) << counters.error().text();
  ASSERT_EQ(counters->size(), 2u);
  EXPECT_EQ((*counters)[0].kernel, "_Z5panelPf");
  EXPECT_EQ((*counters)[0].name, "dram__throughput.avg.pct_of_peak_sustained_elapsed %");
  EXPECT_EQ((*counters)[0].value, 0.5);
  EXPECT_EQ((*counters)[1].name, "gpu__time_duration.sum ns");
  EXPECT_EQ((*counters)[1].value, 30000);
}

TEST(NcuCounters, what_is_no_such_table_is_refused_with_a_reason) {
  const auto reason = [](std::string_view text) {
    const auto counters = counters_from_ncu(text, {"_Z5panelPf"});
    return counters.ok() ? "read" : counters.error().text();
  };
  EXPECT_THAT(reason(""), HasSubstr("holds no table"));
  EXPECT_THAT(reason("==ERROR== no permission\n"), HasSubstr("holds no table"));
  EXPECT_THAT(reason("\"ID\",\"Kernel Name\"\n"), HasSubstr("lacks a column"));
  const std::string header = "\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n";
  EXPECT_THAT(reason(header + "\"_Z5panelPf\",\"dram\"\n"), HasSubstr("in the middle of a row"));
  EXPECT_THAT(reason(header + "\"panel(float*)\",\"dram\",\"%\",\"1\"\n"),
              HasSubstr("no metric of a kernel of this plan"));
}

}  // namespace
}  // namespace kbeam
