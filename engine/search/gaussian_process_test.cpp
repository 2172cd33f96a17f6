#include "search/gaussian_process.h"

#include <gtest/gtest.h>
#include <kbeam/random.h>

#include <cmath>

namespace kbeam {
namespace {

double slope(const Point& point) {
  return std::sin(3 * point[0]) + 0.2 * point[1];
}

struct Data {
  std::vector<Point> points;
  std::vector<double> values;
};

Data make_data(int count) {
  Random random(7);
  Data data;
  for (int i = 0; i < count; ++i) {
    // The third knob has no order and does not matter.
    data.points.push_back({random.uniform(), random.uniform(), double(random.below(3))});
    data.values.push_back(slope(data.points.back()));
  }
  return data;
}

GaussianProcess::Place place_at(const GaussianProcess& process, const Point& point) {
  GaussianProcess::Place place{point, {}, 1};
  process.catch_up(place);
  return place;
}

TEST(GaussianProcess, BelievesWhatItWasToldAndDoubtsTheRest) {
  GaussianProcess process({true, true, false});
  process.set_data({{0.1, 0.2, 0}, {0.5, 0.8, 1}}, {1.0, -1.0});
  const auto near = process.belief(place_at(process, {0.1, 0.2, 0}));
  EXPECT_NEAR(near.mean, 1.0, 0.4);
  const auto far = process.belief(place_at(process, {1.0, 0.0, 2}));
  EXPECT_GT(far.deviation, 2 * near.deviation);
  EXPECT_LT(std::abs(far.mean), 0.5);
}

TEST(GaussianProcess, PredictsASmoothFunctionOnceItIsFitted) {
  Data data = make_data(60);
  GaussianProcess process({true, true, false});
  process.set_data(data.points, data.values);
  process.fit();
  Random random(8);
  double worst = 0;
  for (int i = 0; i < 50; ++i) {
    const Point point{random.uniform(), random.uniform(), double(random.below(3))};
    const auto belief = process.belief(place_at(process, point));
    worst = std::max(worst, std::abs(belief.mean - slope(point)));
  }
  EXPECT_LT(worst, 0.15);
  // The fit sees which knob matters.
  EXPECT_GT(process.correlation({0.5, 0.5, 0}, {0.5, 0.5, 1}), 0.9);
  EXPECT_LT(process.correlation({0.0, 0.5, 0}, {1.0, 0.5, 0}), 0.9);
}

TEST(GaussianProcess, SeesFromFewPointsWhatEachKnobDoesByItself) {
  // Seven switches with an effect each, of which twelve settings are known.
  const auto level = [](const Point& point) {
    double sum = 0;
    for (std::size_t knob = 0; knob < point.size(); ++knob) sum += point[knob] * (knob + 1.0) / 7;
    return sum - 2;
  };
  const auto setting = [](unsigned bits) {
    Point point;
    for (int knob = 0; knob < 7; ++knob) point.push_back((bits >> knob) & 1u);
    return point;
  };
  std::vector<Point> points;
  std::vector<double> values;
  Random random(9);
  for (int i = 0; i < 12; ++i) {
    points.push_back(setting(static_cast<unsigned>(random.below(128))));
    values.push_back(level(points.back()));
  }
  GaussianProcess process(std::vector<bool>(7, true));
  process.set_data(points, values);
  process.fit();
  double error = 0, spread = 0;
  for (unsigned bits = 0; bits < 128; ++bits) {
    const double truth = level(setting(bits));
    error += std::pow(process.belief(place_at(process, setting(bits))).mean - truth, 2);
    spread += truth * truth;
  }
  EXPECT_LT(error, 0.4 * spread);
}

TEST(GaussianProcess, AddingPointByPointIsTheSameAsAllAtOnce) {
  const Data data = make_data(25);
  GaussianProcess whole({true, true, false}), grown({true, true, false});
  whole.set_data(data.points, data.values);
  grown.set_data({data.points[0]}, {data.values[0]});
  GaussianProcess::Place place{{0.3, 0.7, 1}, {}, 1};
  const int version = grown.version();
  for (std::size_t i = 1; i < data.points.size(); ++i) {
    grown.add(data.points[i], data.values[i]);
    grown.catch_up(place);
  }
  EXPECT_EQ(grown.version(), version);
  const auto a = whole.belief(place_at(whole, place.point)), b = grown.belief(place);
  EXPECT_NEAR(a.mean, b.mean, 1e-9);
  EXPECT_NEAR(a.deviation, b.deviation, 1e-9);
}

TEST(GaussianProcess, TakesTheSamePointTwiceAndEqualValues) {
  GaussianProcess process({true});
  process.set_data({{0.5}}, {0.0});
  for (int i = 0; i < 20; ++i) process.add({0.5}, 0.0);
  process.fit();
  const auto belief = process.belief(place_at(process, {0.4}));
  EXPECT_TRUE(std::isfinite(belief.mean) && std::isfinite(belief.deviation));
}

}  // namespace
}  // namespace kbeam
