// Recorded plans by operation and shape, the most recently used ones kept. Knows no operation; not
// thread safe.
#pragma once

#include <kbeam/cpu_plan.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

namespace kernelbeam {

class PlanCache {
 public:
  // What decides a plan, the operation first. The team's size is fixed, so it is not part of it.
  using Key = std::array<std::int64_t, 4>;

  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  // Null when absent. A found plan counts as used.
  std::shared_ptr<const kbeam::CpuPlan> find(const Key& key);
  // Drops the plan that was not used for longest when full.
  std::shared_ptr<const kbeam::CpuPlan> insert(const Key& key, kbeam::CpuPlan plan);
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const kbeam::CpuPlan> plan;
  };
  std::size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, std::list<Entry>::iterator> index_;
};

}  // namespace kernelbeam
