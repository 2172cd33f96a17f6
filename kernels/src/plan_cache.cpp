#include "plan_cache.h"

#include <utility>

namespace kernelbeam {

std::shared_ptr<const kbeam::CpuPlan> PlanCache::find(const Key& key) {
  const auto at = index_.find(key);
  if (at == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return entries_.front().plan;
}

std::shared_ptr<const kbeam::CpuPlan> PlanCache::insert(const Key& key, kbeam::CpuPlan plan) {
  auto shared = std::make_shared<const kbeam::CpuPlan>(std::move(plan));
  entries_.push_front({key, shared});
  index_[key] = entries_.begin();
  if (entries_.size() > capacity_) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return shared;
}

}  // namespace kernelbeam
