// A verdict instead of a result, thrown to the end of a seat's command, and who is to blame for
// what the driver refuses.
#pragma once

#include <exception>
#include <string>

#include "model/verdict.h"
#include "target/cuda/driver.h"

namespace kbeam {

class SeatRefusal : public std::exception {
 public:
  SeatRefusal(Verdict verdict, std::string sentence)
      : verdict_(verdict), sentence_(std::move(sentence)) {}
  Verdict verdict() const { return verdict_; }
  const std::string& sentence() const { return sentence_; }
  const char* what() const noexcept override { return sentence_.c_str(); }

 private:
  Verdict verdict_;
  std::string sentence_;
};

// What a driver's refusal says of the candidate when it happened to its plan or its kernels.
SeatRefusal blame_candidate(const DriverFailure& failure, const std::string& doing);

// Does `work`, which is the candidate's: what the driver refuses becomes a verdict.
template <typename Work>
auto on_behalf_of_candidate(const std::string& doing, const Work& work) {
  try {
    return work();
  } catch (const DriverFailure& failure) {
    throw blame_candidate(failure, doing);
  }
}

}  // namespace kbeam
