// Tests that run on 1, 2, 3, 4 and 8 ranks each.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace overlap {

/// A test on so many ranks.
struct TestOnRanks {
  const char* name;
  void (*body)(int ranks);
};

class OnSoManyRanks : public testing::Test {
 public:
  OnSoManyRanks(const TestOnRanks& test, int ranks) : test_(test), ranks_(ranks) {}

 protected:
  int ranks() const { return ranks_; }

 private:
  void TestBody() override { test_.body(ranks_); }

  TestOnRanks test_;
  int ranks_;
};

/// The numbers of ranks that all chapters are tested on.
inline constexpr int kNumbersOfRanks[] = {1, 2, 3, 4, 8};

/// Registers one of them, so that it runs in a Fixture.
template <typename Fixture = OnSoManyRanks>
void register_test(const std::string& suite, const std::string& name, const TestOnRanks& test, int ranks) {
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                        [test, ranks]() -> Fixture* { return new Fixture(test, ranks); });
}

/// Registers a chapter's ownership tests as "Ownership/Chapter03.RingAllGather/4"; for a namespace-scope
/// constant.
inline bool test_ownership(const std::string& chapter, const std::vector<TestOnRanks>& tests) {
  for (const TestOnRanks& test : tests) {
    for (const int ranks : kNumbersOfRanks)
      register_test("Ownership/" + chapter, test.name + ("/" + std::to_string(ranks)), test, ranks);
  }
  return true;
}

}  // namespace overlap
