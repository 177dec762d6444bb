//===- FuseKernels.cpp - launches in a row, as one ------------------------===//
//
// fuse-launches[first+second+…]: launches that follow one another on the host become one launch of one kernel. What the
// first stores and the second loads stays in a register, and what both load is loaded once. The bodies stand one after
// the other, with names of their own. Indices that are computed alike are computed once, and equal guards become one.
//
// Example:
//   addBias<<<blocks, 256>>>(x, bias, y, rows, cols);  const auto addBias_relu_fused0 =
//   CHECK(cudaGetLastError());                             addBias_relu_fused_launch0(blocks, 256, 0, 0, x, …);
//   relu<<<blocks, 256>>>(y, n);                       CHECK(cudaGetLastError());
//                                                      addBias_relu_fused_launch(addBias_relu_fused0,
//                                                          addBias_relu_fused_launch1(blocks, 256, 0, 0, y, n));
//
//   __global__ void addBias_relu_fused(const float *x, const float *bias, float *y, int rows, int cols, int n) {
//     int at = blockIdx.x * blockDim.x + threadIdx.x;
//     if (at < rows * cols) {
//       float y_value = x[at] + bias[at % cols];
//       y[at] = y_value > 0 ? y_value : 0;
//     }
//   }
//
// Legal: these things are asked, each where it can be answered.
//  - Of the host's source: two to eight launches are statements of their own in one block. Between them stands only
//    what may stand between the launches of a loop (see `launch-loop`), and nothing leaves the block except after an
//    error.
//  - Of the kernels: an element that one kernel writes and another reads or writes belongs to the same thread in both.
//    Elements that neither writes may be read anywhere.
//  - Of the host's source again: where all that the function does with a buffer of its own (cudaMalloc) is seen, and
//    nothing looks at it after the launches, what only they read of it is not stored. Not within loops.
//  - Of the running program: streams are equal, and so are grids and blocks, or each launch has a thread for each of
//    the same elements. There is no dynamic shared memory. Parameters whose arguments are spelled alike are equal, and
//    so are the bounds of guards that became one; a parameter may also be a pointer in a record that another launch is
//    given. Arrays of which one is written do not overlap. Otherwise the launches take place as they are.
//
// Blocks may fold something in shared memory of their own: all threads of a block come to each barrier. Atomic updates
// of two kernels by one function may meet, for their order does not matter.
//
// Refuses: calls that take pointers, and opaque statements; other atomics on what the other kernel reads or writes;
// barriers that some threads may pass by, and dynamic shared memory, but for blocks that have a row each (see "Over
// rows"). Elements that another thread may have written are refused as well, as in a stencil after its input, or in a
// normalization after a reduction over all threads. It also refuses kernels in different namespaces or from headers;
// launches in templates with several instantiations or in macros, with default arguments, or under an `if`; and
// functions with labels.
//
//===----------------------------------------------------------------------===//
#include "FuseParts.h"
#include "JoinParts.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;

namespace {

class Fuser : FuseParts {
public:
  using FuseParts::add;
  explicit Fuser(const std::string &name) : FuseParts(name) { sharesFields = true; }

  /// After all parts: how the rows of a matrix may be shared among threads, with the part that does so.
  std::vector<std::pair<unsigned, RowSpace>> spaces() const {
    std::vector<std::pair<unsigned, RowSpace>> found;
    for (unsigned i = 0; i < parts.size(); ++i)
      for (const RowSpace &space : rowSpaces(*parts[i])) {
        bool known = llvm::any_of(found, [&](const auto &other) {
          return other.second.rows == space.rows && other.second.inner == space.inner &&
                 other.second.outer == space.outer;
        });
        if (!known)
          found.emplace_back(i, space);
      }
    return found;
  }

  /// Whose threads the other parts' elements can have: it has one axis, and all that work together.
  std::vector<unsigned> elementwise() const {
    const bool together = llvm::any_of(parts, [](const auto &part) { return threadsWorkTogether(*part); });
    std::vector<unsigned> found;
    for (unsigned i = 0; i < parts.size(); ++i)
      if (threadsWorkTogether(*parts[i]) == together && isAlongX(*parts[i]))
        found.push_back(i);
    return found;
  }

  /// Brings all parts to one thread a row; the fused kernel is launched as the part `geometry` is. Where a row is an
  /// element, that part stays as it is.
  llvm::Error bringTo(const RowSpace &given, unsigned geometry) {
    result.kernel.geometry = geometry;
    result.kernel.keepsThreads = given.ofElements;
    std::set<std::string> taken = mentioned;
    taken.insert(declared.begin(), declared.end());
    for (const Param &param : fused->params)
      taken.insert(param.name);
    RowSpace space = given;
    space.name = freshName(taken, given.name);
    const std::optional<Poly> elements = given.ofElements ? elementsAlongX(*parts[geometry]) : std::nullopt;
    std::vector<Condition> covers;
    for (const std::shared_ptr<Kernel> &part : parts) {
      KernelModel model(*part);
      if (given.ofElements && part == parts[geometry]) {
        if (llvm::Error e = requireVisible(*part, model, Meetings::OfAll))
          return e;
        result.kernel.launches.emplace_back();
        howBrought.emplace_back();
        continue;
      }
      if (llvm::Error e = requireVisible(*part, model, Meetings::None)) // whose threads can be one thread
        return e;
      if (given.ofElements && hasOtherElements(*part, elements))
        return notApplicable("they have other numbers of elements");
      part->params = fused->params; // the rows' extents may be those of another part
      auto brought = bringToRows(*part, space, taken);
      if (!brought)
        return brought.takeError();
      if (given.ofElements) {
        auto needed = coverRows(model, brought->rows);
        if (!needed)
          return needed.takeError();
        llvm::append_range(covers, *needed);
      }
      result.kernel.launches.push_back(brought->conditions);
      howBrought.push_back(std::move(*brought));
    }
    llvm::append_range(result.kernel.launches[geometry], covers);
    bool isFree = llvm::none_of(parts, [&](const auto &part) { return allNames(*part).count(given.name) != 0; });
    for (const std::shared_ptr<Kernel> &part : parts) {
      if (isFree && !(given.ofElements && part == parts[geometry])) {
        part->body->body.front()->text = given.name;
        substitute(*part->body, {{space.name, var(given.name, Type::makeInt())}});
      }
      declared.merge(declaredIn(*part));
    }
    result.kernel.launches[geometry].push_back(
        {IntExpr::of(threadsAlong(0) + " <= 2147483647"), "a row's number has 32 bits"});
    return llvm::Error::success();
  }

  llvm::Expected<FusedLaunches> finish(bool strictFloat) {
    for (unsigned i = 0; i < parts.size(); ++i)
      if (llvm::Error e = join(i))
        return std::move(e);
    if (!fused->maxThreads)
      fused->maxThreads = 1024; // with registers to spare for any block that its parts may be launched with
    result.kernel.names = names;
    result.kernel.sources = sources;
    result.state = originalState(fused, fused->name, fused->name, fused->name, {});
    for (const std::vector<Condition> &conditions : {joined.conditions, same})
      for (const Condition &condition : conditions)
        result.state.require(condition.expression.str(), condition.why);
    KernelModel model(*fused);
    ArrayPairs disjoint;
    bool flows = false;
    if (llvm::Error e =
            requireSameThread(result.state, model, joined.partOf, joined.strides, howBrought, disjoint, flows))
      return std::move(e);
    if (flows && strictFloat)
      return notApplicable("a value that stays in a register may be rounded in other ways (--optiml-fp=strict)");
    auto forwarded = fused->clone();
    mergeLoops(*forwarded, joined.strides,
               [&](const std::string &a, const std::string &b) { return disjoint.count(std::minmax(a, b)) != 0; });
    forwardStores(*forwarded, disjoint);
    const std::vector<std::string> left = dropDeadStores(*forwarded, dead);
    showStrides(*forwarded, joined.strides);
    removeUnused(*forwarded);
    auto original = fused->clone();
    showStrides(*original, joined.strides);
    result.state.original = original;
    result.state.tree = forwarded;
    result.kernel.name = fused->name;
    result.kernel.text = print(*forwarded);
    if (!left.empty())
      result.kernel.text = "// Nothing looks at " + llvm::join(left, ", ") +
                           " after the launches: what they would hold is not stored.\n" + result.kernel.text;
    result.kernel.parameters = parametersOf(*forwarded);
    result.kernel.conditions = result.state.rewrite.conditions;
    return std::move(result);
  }

private:
  std::vector<BroughtPart> howBrought; ///< to one thread a row, by part
  FusedLaunches result;
  PartJoiner joined{fused, [](const Poly &) { return true; }};

  /// Appends a part to the fused kernel.
  llvm::Error join(unsigned index) {
    const std::shared_ptr<Kernel> &part = parts[index];
    const bool isAsItWas = howBrought.empty() || (result.kernel.keepsThreads && index == result.kernel.geometry);
    if (llvm::Error e = requireVisible(*part, KernelModel(*part), isAsItWas ? Meetings::OfAll : Meetings::None))
      return e;
    if (part->maxThreads && (result.kernel.launches.empty() || index == result.kernel.geometry))
      fused->maxThreads = fused->maxThreads ? std::min(fused->maxThreads, part->maxThreads) : part->maxThreads;
    fused->line = fused->line ? fused->line : part->line;
    joined.add(*part, index);
    return llvm::Error::success();
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseKernels(const std::vector<KernelPart> &parts, const std::string &name,
                                                  bool strictFloat) {
  Fuser fuser(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = fuser.add(part))
      return std::move(e);
  return fuser.finish(strictFloat);
}

// Of ways to share rows among threads; each costs what fusing costs.
static constexpr size_t mostSpaces = 6;

/// In the first of these ways that is possible, each with the part whose launch has the threads; or why the first is
/// not. `none`: there is none.
static llvm::Expected<FusedLaunches> fuseInOneOf(llvm::ArrayRef<std::pair<unsigned, RowSpace>> spaces,
                                                 const std::vector<KernelPart> &parts, const std::string &name,
                                                 bool strictFloat, const char *none) {
  std::optional<std::string> refused;
  for (const auto &[geometry, space] : spaces.take_front(std::min(spaces.size(), mostSpaces))) {
    Fuser fuser(name);
    for (const KernelPart &part : parts)
      if (llvm::Error e = fuser.add(part))
        return std::move(e);
    llvm::Error brought = fuser.bringTo(space, geometry);
    auto fused = brought ? llvm::Expected<FusedLaunches>(std::move(brought)) : fuser.finish(strictFloat);
    if (fused)
      return fused;
    std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
  }
  return notApplicable("{0}", refused.value_or(none));
}

llvm::Expected<FusedLaunches> optiml::fuseOverRows(const std::vector<KernelPart> &parts, const std::string &name,
                                                   bool strictFloat) {
  Fuser first(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = first.add(part))
      return std::move(e);
  return fuseInOneOf(first.spaces(), parts, name, strictFloat, "none of them has a thread for each row");
}

llvm::Expected<FusedLaunches> optiml::fuseOverElements(const std::vector<KernelPart> &parts, const std::string &name,
                                                       bool strictFloat) {
  Fuser first(name);
  for (const KernelPart &part : parts)
    if (llvm::Error e = first.add(part))
      return std::move(e);
  std::vector<std::pair<unsigned, RowSpace>> spaces;
  for (unsigned geometry : first.elementwise())
    spaces.emplace_back(geometry, elementSpace(Poly()));
  return fuseInOneOf(spaces, parts, name, strictFloat, "none of them has its elements along one axis alone");
}
