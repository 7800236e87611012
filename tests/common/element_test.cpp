#include "overlap/gpu/element.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "element_types.hpp"

namespace overlap {
namespace {

TEST(ElementTypeTest, TypesAndValuesBelongTogether) {
  EXPECT_EQ(type_of<int>(), ElementType::kInt32);
  EXPECT_EQ(type_of<__half>(), ElementType::kF16);
  EXPECT_EQ(type_of<__nv_bfloat16>(), ElementType::kBf16);
  EXPECT_EQ(type_of<float>(), ElementType::kF32);
}

TEST(VisitTypeTest, CallsTheFunctionWithTheType) {
  for (const ElementType type :
       {ElementType::kInt32, ElementType::kF16, ElementType::kBf16, ElementType::kF32}) {
    int calls = 0;
    const std::size_t bytes = visit_type(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ++calls;
      EXPECT_EQ(type_of<T>(), type);
      return sizeof(T);
    });
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(bytes, size_of(type));
  }
}

TEST(VisitTypeTest, TakesOnlyTheTypesThatItIsGiven) {
  const auto name = [](auto tag) {
    static_assert(Floating<typename decltype(tag)::type>);  // not instantiated for other types
    return std::string(name_of(type_of<typename decltype(tag)::type>()));
  };
  EXPECT_EQ((visit_type<__half, float>(ElementType::kF16, name)), "f16");
  EXPECT_EQ((visit_type<__half, float>(ElementType::kF32, name)), "f32");
  try {
    visit_type<__half, float>(ElementType::kBf16, name);
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "--type bf16 is not one of the types that the program is compiled for");
  }
}

template <typename T>
class ElementTest : public testing::Test {};
TYPED_TEST_SUITE(ElementTest, ElementTypes, TypeNames);

TYPED_TEST(ElementTest, LargestIntegerIsTheLast) {
  using T = TypeParam;
  const std::int64_t largest = largest_integer<T>();
  if constexpr (Floating<T>) {
    for (const std::int64_t integer : {largest - 1, largest, -largest}) {
      EXPECT_EQ(value_of(from_double<T>(static_cast<double>(integer))), static_cast<double>(integer));
    }
    const auto next = static_cast<double>(largest + 1);
    EXPECT_NE(value_of(from_double<T>(next)), next);
  } else {
    EXPECT_EQ(largest, 2147483647);
  }
}

template <typename T>
class SixteenBitTest : public testing::Test {};
using SixteenBitTypes = testing::Types<__half, __nv_bfloat16>;
TYPED_TEST_SUITE(SixteenBitTest, SixteenBitTypes, TypeNames);

TYPED_TEST(SixteenBitTest, EveryPatternKeepsItsBitsAndItsValue) {
  using T = TypeParam;
  int nans = 0;
  for (int bits = 0; bits < 65536; ++bits) {
    const T element = from_bits<T>(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(bits_of(element), bits);
    const double value = value_of(element);
    ASSERT_EQ(is_nan(element), std::isnan(value)) << bits;
    if (is_nan(element)) {
      ++nans;
    } else {
      ASSERT_EQ(bits_of(from_double<T>(value)), bits);
    }
  }
  EXPECT_EQ(nans, (std::same_as<T, __half> ? 2 * 1023 : 2 * 127));
}

// Between two neighbours a and b: the midpoint rounds to the even one, any other value to the nearer one,
// however near the midpoint it is. A float cannot represent such values.
TYPED_TEST(SixteenBitTest, FromDoubleRoundsOnceToTheNearest) {
  using T = TypeParam;
  const int infinity = std::same_as<T, __half> ? 0x7C00 : 0x7F80;
  for (int bits = 0; bits + 1 < infinity; ++bits) {
    const T low = from_bits<T>(static_cast<std::uint16_t>(bits));
    const T high = from_bits<T>(static_cast<std::uint16_t>(bits + 1));
    const double middle = (value_of(low) + value_of(high)) / 2;
    const T even = bits % 2 == 0 ? low : high;
    ASSERT_EQ(bits_of(from_double<T>(middle)), bits_of(even)) << bits;
    ASSERT_EQ(bits_of(from_double<T>(std::nextafter(middle, 0.0))), bits_of(low)) << bits;
    ASSERT_EQ(bits_of(from_double<T>(std::nextafter(middle, 1e300))), bits_of(high)) << bits;
    ASSERT_EQ(value_of(from_double<T>(-middle)), -value_of(even)) << bits;
    ASSERT_EQ(value_of(from_double<T>(-std::nextafter(middle, 1e300))), -value_of(high)) << bits;
  }
  EXPECT_TRUE(std::isinf(value_of(from_double<T>(1e300))));
  EXPECT_EQ(value_of(from_double<T>(1e-300)), 0);
  EXPECT_TRUE(is_nan(from_double<T>(std::nan(""))));
}

}  // namespace
}  // namespace overlap
