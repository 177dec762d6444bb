//===- ProgramSizes.cpp - the sizes that a program is run with ------------===//
#include "optiml/Generate/ProgramText.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>

using namespace optiml::gen;

/// Window sizes and the like, which the gate does not make smaller.
static bool isKept(const Size &size, int64_t asked) { return size.keep && asked <= 64; }

std::vector<std::string> optiml::gen::smallArguments(const ProgramSpec &spec) {
  std::vector<std::string> result;
  for (const Size &size : spec.operation->sizes) {
    int64_t asked = spec.sizes.at(size.name);
    int64_t value = isKept(size, asked) ? asked : std::min(asked, size.small);
    result.push_back(std::to_string(value));
  }
  return result;
}

/// `value` where it is allowed, as near below as it goes.
static int64_t allowed(const Size &size, int64_t value) {
  if (size.powerOfTwo)
    value = int64_t(llvm::bit_floor(uint64_t(std::max<int64_t>(value, 1))));
  return std::clamp(value, size.least, size.most);
}

std::vector<std::string> optiml::gen::otherArguments(const ProgramSpec &spec) {
  std::vector<std::string> result;
  int64_t odd = 1; // sizes that were equal need not stay so
  for (const Size &size : spec.operation->sizes) {
    int64_t asked = spec.sizes.at(size.name);
    int64_t value = isKept(size, asked) ? asked : allowed(size, (2 * size.small) | odd);
    odd += 2;
    result.push_back(std::to_string(value));
  }
  return result;
}

std::vector<std::string> optiml::gen::middleArguments(const ProgramSpec &spec) {
  std::vector<std::string> result;
  for (const Size &size : spec.operation->sizes) {
    int64_t asked = spec.sizes.at(size.name);
    double mean = std::sqrt(double(std::max<int64_t>(size.small, 1)) * double(asked));
    result.push_back(std::to_string(isKept(size, asked) || asked <= size.small ? asked : allowed(size, int64_t(mean))));
  }
  return result;
}
