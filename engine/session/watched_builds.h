// The builds that sanitizers watch, of every row of a candidate, made side by side: nothing is
// timed while a promotion's gates run, so every processor may compile. Builds nothing itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/candidate.h"
#include "model/watch.h"

namespace kbeam {

class WatchedBuilds {
 public:
  using Build = std::function<Result<WatchedBuild>(const Row&, Watch)>;

  // Begins at once, in this order: every row for the first watch, then for the next. One thread a
  // CPU.
  WatchedBuilds(Build build, std::vector<Row> rows, const std::vector<Watch>& watches,
                const std::vector<int>& cpus);
  // Waits for the builds in hand and leaves the rest undone.
  ~WatchedBuilds();
  WatchedBuilds(const WatchedBuilds&) = delete;
  WatchedBuilds& operator=(const WatchedBuilds&) = delete;

  // Waits until it is built.
  Result<WatchedBuild> get(std::size_t row, Watch watch) const;

 private:
  struct Job {
    std::size_t row = 0;
    Watch watch{};
    std::promise<Result<WatchedBuild>> promise;
  };
  void work();

  Build build_;
  std::vector<Row> rows_;
  std::vector<Job> jobs_;
  std::map<std::pair<std::size_t, Watch>, std::shared_future<Result<WatchedBuild>>> built_;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace kbeam
