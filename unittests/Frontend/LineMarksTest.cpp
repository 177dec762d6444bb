//===- LineMarksTest.cpp - lines under the numbers that compilers give ----===//
#include "optiml/Frontend/LineMarks.h"
#include <gtest/gtest.h>

using namespace optiml;

// A fused kernel stands between lines of the user's, and goes on with their numbers.
TEST(LineMarks, LinesOfOneNumberAreToldApartByTheirFunction) {
  const std::string text = "#include <k.h>\n"
                           "__global__ void first(int *a) {\n"
                           "  a[0] = 1;\n"
                           "}\n"
                           "__global__ void fused(int *a) {\n"
                           "  a[1] = 2;\n"
                           "  a[2] = 3;\n"
                           "}\n" +
                           lineMark(5, "dir/user.cu") +
                           "__global__ void second(int *a) {\n"
                           "  a[3] = 4;\n"
                           "}\n" +
                           lineMark(1, "k.cuh") + "__global__ void far(int *a) { a[4] = 5; }\n";
  EXPECT_EQ(lineAt(text, "user.cu", 3, "first"), "a[0] = 1;");
  EXPECT_EQ(lineAt(text, "user.cu", 6, "fused"), "a[1] = 2;");
  EXPECT_EQ(lineAt(text, "user.cu", 6, "second"), "a[3] = 4;");
  EXPECT_EQ(lineAt(text, "user.cu", 7, "fused"), "a[2] = 3;");
  EXPECT_EQ(lineAt(text, "lib/k.cuh", 1, "far"), "__global__ void far(int *a) { a[4] = 5; }");
  EXPECT_EQ(lineAt(text, "user.cu", 40, "fused"), "");
}
