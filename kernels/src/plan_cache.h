// Recorded plans by operation and shape, the most recently used ones kept. Knows no operation; not
// thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>

namespace kernelbeam {

template <typename Plan>
class PlanCache {
 public:
  // What decides a plan, the operation first. What is fixed for the cache's owner is not part of
  // it.
  using Key = std::array<std::int64_t, 4>;

  explicit PlanCache(std::size_t capacity) : capacity_(capacity) {}

  // Null when absent. A found plan counts as used.
  std::shared_ptr<const Plan> find(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, at->second);
    return entries_.front().plan;
  }

  // Drops the plan that was not used for longest when full.
  std::shared_ptr<const Plan> insert(const Key& key, Plan plan) {
    auto shared = std::make_shared<const Plan>(std::move(plan));
    entries_.push_front({key, shared});
    index_[key] = entries_.begin();
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return shared;
  }

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<const Plan> plan;
  };
  std::size_t capacity_;
  std::list<Entry> entries_;  // most recently used first
  std::map<Key, typename std::list<Entry>::iterator> index_;
};

}  // namespace kernelbeam
