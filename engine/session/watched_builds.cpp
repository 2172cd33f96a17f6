#include "session/watched_builds.h"

#include "base/affinity.h"

namespace kbeam {

WatchedBuilds::WatchedBuilds(Build build, std::vector<Row> rows, const std::vector<Watch>& watches,
                             const std::vector<int>& cpus)
    : build_(std::move(build)), rows_(std::move(rows)) {
  for (const Watch watch : watches)
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      Job& job = jobs_.emplace_back(Job{row, watch, {}});
      built_[{row, watch}] = job.promise.get_future().share();
    }
  for (const int cpu : cpus)
    threads_.emplace_back([this, cpu] {
      pin_this_thread(cpu);
      work();
    });
}

WatchedBuilds::~WatchedBuilds() {
  next_ = jobs_.size();
}

void WatchedBuilds::work() {
  for (std::size_t job = next_++; job < jobs_.size(); job = next_++)
    jobs_[job].promise.set_value(build_(rows_[jobs_[job].row], jobs_[job].watch));
}

Result<WatchedBuild> WatchedBuilds::get(std::size_t row, Watch watch) const {
  return built_.at({row, watch}).get();
}

}  // namespace kbeam
