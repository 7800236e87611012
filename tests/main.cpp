// main() of the tests that run ranks: GoogleTest's, but a failed ASSERT throws.
//
// A failed ASSERT only returns from its function. If that function is a rank's, the rank would leave while
// the others wait for it, on real GPUs for ever. An exception stops the run on all ranks.
#include <gtest/gtest.h>

namespace {

class ThrowIfFatal : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.fatally_failed()) throw testing::AssertionException(result);
  }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // The last listener: the others have printed the failure.
  testing::UnitTest::GetInstance()->listeners().Append(new ThrowIfFatal);
  return RUN_ALL_TESTS();
}
