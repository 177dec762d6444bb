//===- LineTest.cpp - who waits for a worker ------------------------------===//
#include "Measure/Gate.h"
#include "gtest/gtest.h"
#include <thread>
#include <vector>

using namespace optiml;

static constexpr auto forEver = Line::Clock::time_point::max();

TEST(Line, NoMoreAreInsideThanThereArePlaces) {
  Line line(2);
  std::atomic<int> inside{0}, most{0}, done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        ASSERT_TRUE(line.enter(k % 5 == 0, forEver, nullptr));
        int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);)
          ;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        --inside;
        line.leave();
        ++done;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(done, 240);
  EXPECT_EQ(most, 2);
}

TEST(Line, FirstComeFirstServedButForThoseWhoGoAhead) {
  Line line(1);
  ASSERT_TRUE(line.enter(false, forEver, nullptr));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ASSERT_TRUE(line.enter(/*ahead=*/i == 3, forEver, nullptr));
      {
        std::lock_guard lock(mutex);
        order.push_back(i);
      }
      line.leave();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // until it stands in line
  }
  line.leave();
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(order, (std::vector<int>{3, 0, 1, 2}));
}

TEST(Line, WaitsNoLongerThanItMay) {
  Line line(1);
  ASSERT_TRUE(line.enter(false, forEver, nullptr));
  EXPECT_FALSE(line.enter(false, Line::Clock::now() + std::chrono::milliseconds(30), nullptr));
  std::atomic<bool> cancel{true};
  EXPECT_FALSE(line.enter(false, forEver, &cancel));
  line.leave();
  EXPECT_TRUE(line.enter(false, forEver, nullptr)); // who gave up stands in nobody's way
}
