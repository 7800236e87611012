// GoogleTest's main(), for tests that run on real GPUs as well: what the driver reads from the environment is
// set before its first call, whichever test makes that.
#include <gtest/gtest.h>

#include "overlap/backend.hpp"

int main(int argc, char** argv) {
  overlap::backend::prepare();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
