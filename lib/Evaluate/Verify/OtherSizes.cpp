//===- OtherSizes.cpp - the sizes of smaller launches ---------------------===//
//
// Integers of a launch that look like sizes become others, and the grid with them.
//
//===----------------------------------------------------------------------===//
#include "BlockSample.h"
#include "optiml/Evaluate/Verify/DerivedSizes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

using namespace optiml;

int64_t optiml::valueOf(const LaunchImage &launch, const ArgumentInteger &integer) {
  const std::string &bytes = launch.arguments[integer.argument].bytes;
  uint64_t value = 0;
  memcpy(&value, bytes.data() + integer.offset, integer.bytes);
  return integer.isSigned ? llvm::SignExtend64(value, 8 * integer.bytes) : int64_t(value);
}

static void setValue(LaunchImage &launch, const ArgumentInteger &integer, int64_t value) {
  memcpy(launch.arguments[integer.argument].bytes.data() + integer.offset, &value, integer.bytes);
}

namespace {

/// Smaller values of integers that count something hardly say so: a filter's width, a number of channels.
constexpr int64_t leastSize = 8;

/// An integer that counts something is a product of so many at most: images, channels, rows and columns.
constexpr unsigned mostFactors = 4;

/// What the integers of a launch become.
struct NewValues {
  std::map<int64_t, int64_t> now;     ///< by the value before
  std::map<int64_t, unsigned> counts; ///< how many integers had a value
};

/// Products of so many values: of as many integers, or of two extents that may be equal.
void forEachProduct(const NewValues &values, unsigned factors, int64_t most,
                    llvm::function_ref<void(int64_t before, int64_t now)> visit) {
  const bool maySquare = factors == 2;
  auto multiply = [&](auto &&self, unsigned factors, int64_t least, unsigned used, int64_t before, int64_t now) {
    if (!factors)
      return visit(before, now);
    for (auto it = values.now.lower_bound(least); it != values.now.end() && it->first <= most / before; ++it) {
      const unsigned own = it->first == least ? used : 0;
      if (own < (maySquare ? 2 : values.counts.at(it->first)))
        self(self, factors - 1, it->first, own + 1, before * it->first, now * it->second);
    }
  };
  multiply(multiply, factors, 2, 0, 1, 1);
}

/// How integers of a launch become smaller, by their values.
class SmallerValues {
public:
  /// `kept`: values that are no sizes, as far as one can tell.
  SmallerValues(std::vector<int64_t> all, const std::vector<int64_t> &kept) {
    for (int64_t v : all)
      if (v > 1 && (++counts[v], v < leastSize || llvm::is_contained(kept, v)))
        same[v] = v;
    llvm::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    llvm::erase_if(all, [&](int64_t v) { return v < leastSize || same.count(v); });
    values = std::move(all);
    for (int64_t v : values) // from the smallest on
      if (!isDerived(v))
        bases.push_back(v);
  }
  size_t count() const { return bases.size(); }
  int64_t base(size_t i) const { return bases[i]; }
  /// What each value becomes when the bases become `now`.
  NewValues with(const std::vector<int64_t> &now) const {
    NewValues result{same, counts};
    for (size_t i = 0; i < bases.size(); ++i)
      result.now[bases[i]] = now[i];
    for (int64_t v : values)
      if (!result.now.count(v))
        result.now[v] = derived(v, result);
    return result;
  }

private:
  bool isDerived(int64_t v) const {
    NewValues smaller{same, counts};
    for (int64_t b : values)
      if (b < v)
        smaller.now[b] = b;
    return derived(v, smaller) != 0;
  }
  /// As a product of smaller ones, or as what lies beside one; 0: it is neither.
  int64_t derived(int64_t v, const NewValues &smaller) const {
    int64_t product = 0;
    for (unsigned factors = 2; factors <= mostFactors && !product; ++factors)
      forEachProduct(smaller, factors, v, [&](int64_t before, int64_t now) { product = before == v ? now : product; });
    if (product)
      return product;
    for (auto [a, newA] : smaller.now)
      if (a < v && !same.count(a)) {
        if (v - a <= 2)
          return newA + (v - a);
        if (v == 2 * a || v == 2 * a + 1)
          return 2 * newA + (v - 2 * a);
      }
    return 0;
  }
  std::vector<int64_t> values, bases;
  std::map<int64_t, int64_t> same; ///< what stays, each by itself: others may be products of it
  std::map<int64_t, unsigned> counts;
};

} // namespace

/// What the extent of a grid along one axis becomes, of blocks with `block` threads along an axis; 0: it follows from
/// no integer. Where it may have been made of several, the least: blocks that find nothing to do cost a variant that
/// shares its work among them much.
static int64_t extentFor(uint32_t extent, uint32_t block, const NewValues &values) {
  constexpr uint32_t leastSure = 32; // fewer blocks are a product of many integers by chance
  int64_t result = 0;
  auto consider = [&](int64_t before, int64_t now) {
    const bool isBlocks = int64_t(llvm::divideCeil(uint64_t(before), block)) == extent;
    if (!isBlocks && before != extent)
      return;
    const int64_t own = isBlocks ? int64_t(llvm::divideCeil(uint64_t(now), block)) : now;
    result = result ? std::min(result, own) : own;
  };
  const unsigned most = extent < leastSure ? 2 : mostFactors;
  for (unsigned factors = 1; factors <= most && !result; ++factors)
    forEachProduct(values, factors, int64_t(extent) * block, consider);
  return result;
}

/// Of the blocks' axes the one that this axis of the grid goes with: another, where only that explains its extent.
static unsigned axisOfBlocks(const LaunchImage &launch, unsigned axis, const NewValues &values) {
  for (unsigned other : {axis, 0u, 1u, 2u})
    if (extentFor(launch.grid[axis], launch.block[other], values))
      return other;
  return axis;
}

static uint32_t gridFor(const LaunchImage &launch, unsigned axis, const NewValues &values) {
  const int64_t result = extentFor(launch.grid[axis], launch.block[axisOfBlocks(launch, axis, values)], values);
  // What follows from no integer (heads, or blocks that share all work) is no test where there are many.
  constexpr uint32_t most = 2;
  return uint32_t(std::min<int64_t>(result > 0 ? result : most, launch.grid[axis]));
}

static LaunchImage launchWith(const LaunchImage &launch, const std::vector<ArgumentInteger> &integers,
                              const NewValues &values) {
  LaunchImage other = launch;
  for (const ArgumentInteger &integer : integers)
    if (auto it = values.now.find(valueOf(launch, integer)); it != values.now.end())
      setValue(other, integer, it->second);
  for (unsigned axis = 0; axis < 3; ++axis)
    other.grid[axis] = gridFor(launch, axis, values);
  return other;
}

/// The launch with other sizes in place of the bases.
static LaunchImage launchWith(const LaunchImage &launch, const std::vector<ArgumentInteger> &integers,
                              const SmallerValues &smaller, const std::vector<int64_t> &now) {
  return launchWith(launch, integers, smaller.with(now));
}

// Odd sizes beside what tiles take; whole tiles; hardly anything; and whole pieces of 16 bytes beside tiles. They rise,
// so that what was no smaller than another one, as the distance of rows, stays so.
static constexpr int64_t odd[] = {37, 43, 53, 61, 67, 71}, whole[] = {32, 64, 96, 128, 160, 192}, few[] = {1, 2, 3, 5},
                         pieces[] = {36, 44, 52, 60, 68, 76}, fewPieces[] = {4, 8, 12, 20};
// Where a launch has so many extents that their product takes long: odd sizes, and whole ones.
static constexpr size_t manyExtents = 3;
static constexpr int64_t shortOdd[] = {9, 11, 13, 15, 17, 19}, shortWhole[] = {8, 16, 24, 32, 40, 48};

// So many sizes are kept at most, and none that is larger: launches would not be small.
static constexpr size_t mostKept = 2;
static constexpr int64_t largestKept = 256;

// Threads of a row that one block of a variant may take over.
static constexpr uint32_t largestBlock = 1024;

/// A length of more than one block, odd, or a whole number of what `size` is.
static constexpr int64_t lengthOf(int64_t size) { return size % 2 ? size * 15 + 2 : size % 8 ? size * 15 : size * 8; }

static std::vector<int64_t> allOdd(const SmallerValues &smaller) {
  std::vector<int64_t> now;
  for (size_t i = 0; i < smaller.count(); ++i) {
    const int64_t size = odd[i % std::size(odd)], base = smaller.base(i);
    now.push_back(size < base ? size : base * 5 / 8 | 1);
  }
  return now;
}

/// Odd sizes in a launch of a grid whose rows go with the threads' columns: blocks by whole groups, so that several of
/// them may be one of a variant, where the kernel does not look whether its row is there. The longer one first.
static std::vector<LaunchImage> wholeGroups(const LaunchImage &launch, const std::vector<ArgumentInteger> &integers,
                                            const SmallerValues &smaller) {
  constexpr int64_t longer = 64, isFew = 16;
  std::vector<LaunchImage> result;
  for (auto [more, group] : {std::pair(longer, 16u), std::pair(int64_t(0), 8u)}) {
    std::vector<int64_t> now;
    for (size_t i = 0; i < smaller.count(); ++i)
      now.push_back(std::min(smaller.base(i) <= isFew ? few[1] : odd[i % std::size(odd)] + more, smaller.base(i)));
    LaunchImage other = launchWith(launch, integers, smaller, now);
    bool isTurned = false;
    for (unsigned axis = 0; axis < 3; ++axis)
      if (uint32_t &extent = other.grid[axis];
          axisOfBlocks(launch, axis, smaller.with(now)) != axis && extent >= group) {
        extent = extent / group * group;
        isTurned = true;
      }
    if (isTurned)
      result.push_back(std::move(other));
  }
  return result;
}

/// `keepsBlock`: integers that are as large as the block along an axis may be its extent.
static SmallerValues smallerValues(const LaunchImage &launch, const SizedKernel &kernel, bool keepsBlock = true) {
  std::vector<int64_t> all, kept;
  for (const ArgumentInteger &integer : kernel.integers)
    all.push_back(valueOf(launch, integer));
  for (uint32_t extent : launch.block)
    if (extent > 1 && keepsBlock)
      kept.push_back(extent);
  return SmallerValues(std::move(all), kept);
}

/// What the bases become with these sizes.
static std::vector<int64_t> basesWith(const LaunchImage &launch, const SmallerValues &smaller,
                                      llvm::ArrayRef<int64_t> sizes) {
  const bool isRow = llvm::count_if(launch.grid, [](uint32_t e) { return e > 1; }) < 2;
  std::vector<int64_t> now;
  for (size_t i = 0; i < smaller.count(); ++i) {
    int64_t size = sizes[i % sizes.size()];
    if (smaller.count() == 1 && size >= leastSize && isRow)
      size = lengthOf(size);
    if (size >= smaller.base(i) && smaller.base(i) > sizes[0]) // something between
      size = size % 2 ? smaller.base(i) * 5 / 8 | 1 : smaller.base(i) / 2 / sizes[0] * sizes[0];
    now.push_back(std::clamp<int64_t>(size, 1, smaller.base(i)));
  }
  return now;
}

std::vector<std::vector<LaunchImage>> optiml::launchesWithNearSizes(const LaunchImage &launch,
                                                                    const SizedKernel &kernel) {
  constexpr int64_t mostSteps = 7; // all that a piece of 16 bytes may leave, of what has 2
  const SmallerValues smaller = smallerValues(launch, kernel), all = smallerValues(launch, kernel, false);
  auto stepped = [&](const SmallerValues &values, llvm::ArrayRef<int64_t> sizes, int64_t step) {
    std::vector<int64_t> now = basesWith(launch, values, sizes);
    for (size_t i = 0; i < now.size(); ++i)
      now[i] = std::min(now[i] + step, values.base(i));
    return launchWith(launch, kernel.integers, values, now);
  };
  std::vector<std::vector<LaunchImage>> result(3);
  for (int64_t step = 1; step <= mostSteps && smaller.count(); ++step) {
    result[0].push_back(stepped(smaller, odd, step));
    result[1].push_back(stepped(smaller, shortOdd, step));
  }
  if (smaller.count() >= manyExtents)
    std::swap(result[0], result[1]);
  const bool keepsBlock = llvm::any_of(kernel.integers, [&](const ArgumentInteger &integer) {
    const int64_t value = valueOf(launch, integer);
    return value >= leastSize && llvm::is_contained(launch.block, uint32_t(value));
  });
  if (keepsBlock && all.count())
    for (llvm::ArrayRef<int64_t> sizes : {llvm::ArrayRef(shortOdd), llvm::ArrayRef(odd)})
      for (int64_t step : {0, 1, 2})
        result[2].push_back(stepped(all, sizes, step));
  // Not the product of what is whole any more.
  const NewValues whole = smaller.with(basesWith(launch, smaller, fewPieces));
  for (auto [before, now] : whole.now)
    if (before >= leastSize && now > 1 && now < before) {
      LaunchImage other = launchWith(launch, kernel.integers, whole);
      for (const ArgumentInteger &integer : kernel.integers)
        if (valueOf(launch, integer) == before)
          setValue(other, integer, now - 1);
      result[2].push_back(std::move(other));
    }
  return result;
}

std::vector<std::vector<LaunchImage>> optiml::launchesWithOtherSizes(const LaunchImage &launch,
                                                                     const SizedKernel &kernel) {
  const SmallerValues smaller = smallerValues(launch, kernel);
  std::vector<std::vector<LaunchImage>> result;
  auto add = [&](std::vector<LaunchImage> alternatives) {
    llvm::erase_if(alternatives, [&](const LaunchImage &other) {
      auto isSame = [&](const LaunchImage &known) {
        return known.grid == other.grid &&
               llvm::equal(known.arguments, other.arguments, [](auto &a, auto &b) { return a.bytes == b.bytes; });
      };
      return isSame(launch) || llvm::any_of(result, [&](const auto &known) { return isSame(known.front()); });
    });
    if (!alternatives.empty())
      result.push_back(std::move(alternatives));
  };
  std::vector<std::vector<llvm::ArrayRef<int64_t>>> lists = {{pieces, fewPieces}, {fewPieces}};
  if (!kernel.addsRare)
    lists.insert(lists.begin(), {{odd, shortOdd}, {whole, shortWhole}, {few}});
  for (const std::vector<llvm::ArrayRef<int64_t>> &list : smaller.count() ? lists : decltype(lists)()) {
    std::vector<LaunchImage> alternatives;
    for (llvm::ArrayRef<int64_t> sizes : llvm::ArrayRef(list).take_front(smaller.count() < manyExtents ? 1 : 2))
      alternatives.push_back(launchWith(launch, kernel.integers, smaller, basesWith(launch, smaller, sizes)));
    add(std::move(alternatives));
  }
  if (smaller.count() && smaller.base(0) <= odd[0]) // what is short was kept: a number of features, of channels
    add({launchWith(launch, kernel.integers, smaller, allOdd(smaller))});
  add(wholeGroups(launch, kernel.integers, smaller));
  for (size_t keeps = 0; keeps <= mostKept && keeps < smaller.count(); ++keeps) {
    if (keeps && smaller.base(keeps - 1) > largestKept)
      break;
    auto with = [&](int64_t least, bool isLong) {
      std::vector<int64_t> now;
      for (size_t i = 0; i < smaller.count(); ++i) {
        const int64_t size = odd[i % std::size(odd)],
                      more = least + (isLong && i + 1 == smaller.count() ? lengthOf(size) : size);
        now.push_back(i < keeps ? smaller.base(i) : std::min(more | 1, smaller.base(i)));
      }
      return launchWith(launch, kernel.integers, smaller, now);
    };
    std::vector<LaunchImage> alternatives, shorter;
    // The others may have to be no smaller than what is kept.
    for (int64_t least : std::set<int64_t>{0, keeps ? smaller.base(keeps - 1) : 0}) {
      LaunchImage other = with(least, /*isLong=*/false);
      if (blocksOf(other.grid) == 1) {
        shorter.push_back(other); // where what is kept makes more blocks take too long
        other = with(least, true);
      }
      alternatives.push_back(std::move(other));
    }
    llvm::move(shorter, std::back_inserter(alternatives));
    // Blocks that find nothing to do, where the kernel looks whether there is something: in a row of blocks so many
    // that a larger block of a variant has none either.
    const bool isRow = launch.grid[1] == 1 && launch.grid[2] == 1 && launch.block[1] == 1 && launch.block[2] == 1;
    for (LaunchImage &other : alternatives)
      for (unsigned axis = 0; axis < 3; ++axis)
        if (launch.grid[axis] > 1)
          other.grid[axis] += isRow ? std::max(1u, largestBlock / launch.block[0]) : 1;
    add(std::move(alternatives));
  }
  return result;
}
