//===- InferCall.cpp - how a function is called, learnt from the original --===//
#include "optiml/Emulator/ABI.h"
#include "optiml/Emulator/Build.h"
#include "optiml/Emulator/Run.h"
#include "optiml/Evaluate/Harness/Harness.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "optiml/Workload/RuntimeSettings.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include <array>
#include <sstream>

using namespace optiml;

namespace {

/// Buffers are that large while it is found out what a run touches.
constexpr uint64_t probeBytes = uint64_t(16) << 20;
constexpr double probeSeconds = 10;

using Sizes = std::vector<int64_t>;

/// Sizes that no two parameters share, so that a product tells its factors. The fewer there are, the larger, so that
/// there are several blocks.
std::vector<Sizes> trialSizes(size_t parameters, bool even) {
  static constexpr int64_t one[] = {1037, 3053, 571}, two[] = {137, 353, 211, 97, 271, 173},
                           three[] = {37, 53, 71, 43, 61, 47, 67, 31, 59}, many[] = {7, 11, 13, 5, 17, 19, 23, 29};
  const llvm::ArrayRef<int64_t> odd = parameters <= 1   ? llvm::ArrayRef(one)
                                      : parameters == 2 ? llvm::ArrayRef(two)
                                      : parameters == 3 ? llvm::ArrayRef(three)
                                                        : llvm::ArrayRef(many);
  std::vector<Sizes> trials;
  for (size_t trial = 0; trial < 3; ++trial) {
    Sizes sizes;
    for (size_t i = 0; i < parameters; ++i) {
      const int64_t step = parameters == 1 ? 256 : parameters <= 3 ? 32 : 16;
      sizes.push_back(even ? step * (1 + int64_t((i * 2 + trial * 3) % 7))
                           : odd[(parameters <= 3 ? i + trial * parameters : i + 2 * trial) % odd.size()]);
    }
    trials.push_back(std::move(sizes));
  }
  return trials;
}

/// The sizes that a user would begin with: a multiple of what tiles and vectors want.
Sizes usualSizes(size_t parameters) {
  static constexpr int64_t few[] = {160, 128}, three[] = {96, 64, 32}, many[] = {32, 16, 24, 8, 12, 4, 3, 2};
  Sizes sizes;
  for (size_t i = 0; i < parameters; ++i)
    sizes.push_back(parameters <= 2 ? few[i] : parameters == 3 ? three[i] : many[i % std::size(many)]);
  return sizes;
}

/// How a kernel is launched: a thread for each element of the product or of the largest size, or a block for each of
/// one parameter.
struct LaunchShape {
  enum Kind { Product, Largest, BlockFor } kind = Product;
  size_t parameter = 0; ///< BlockFor
  std::array<unsigned, 3> block{256, 1, 1};
};

std::vector<LaunchShape> launchShapes(const Callable &callable, size_t parameters) {
  std::vector<std::array<unsigned, 3>> blocks;
  if (callable.axes == 1)
    blocks = {{256, 1, 1}, {128, 1, 1}, {64, 1, 1}, {32, 1, 1}, {512, 1, 1}, {1024, 1, 1}};
  else if (callable.axes == 2)
    blocks = {{16, 16, 1}, {32, 32, 1}, {32, 8, 1}, {8, 8, 1}};
  else
    blocks = {{8, 8, 4}, {4, 4, 4}, {16, 8, 8}};
  llvm::erase_if(blocks, [&](const auto &b) { return b[0] * b[1] * b[2] > callable.maxThreads; });
  std::vector<LaunchShape> shapes;
  for (const std::array<unsigned, 3> &block : blocks) {
    if (callable.axes == 1)
      shapes.push_back({LaunchShape::Product, 0, block});
    shapes.push_back({LaunchShape::Largest, 0, block});
    if (callable.axes == 1)
      for (size_t i = 0; i < parameters; ++i)
        shapes.push_back({LaunchShape::BlockFor, i, block});
  }
  return shapes;
}

std::array<unsigned, 3> gridOf(const LaunchShape &shape, unsigned axes, llvm::ArrayRef<int64_t> sizes) {
  int64_t threads = 1;
  for (int64_t size : sizes)
    threads = shape.kind == LaunchShape::Product ? threads * size : std::max(threads, size);
  if (shape.kind == LaunchShape::BlockFor)
    return {unsigned(sizes[shape.parameter]), 1, 1};
  std::array<unsigned, 3> grid{1, 1, 1};
  for (unsigned axis = 0; axis < axes; ++axis)
    grid[axis] = unsigned(llvm::divideCeil(uint64_t(threads), shape.block[axis]));
  return grid;
}

/// The same as C++ text.
std::string gridText(const LaunchShape &shape, unsigned axes, const std::vector<std::string> &names) {
  if (shape.kind == LaunchShape::BlockFor)
    return "unsigned(" + names[shape.parameter] + ")";
  std::string threads = "1LL";
  for (const std::string &name : names)
    threads += (shape.kind == LaunchShape::Product ? " * " : ", 1LL * ") + name;
  if (shape.kind == LaunchShape::Largest && !names.empty())
    threads = "std::max<long long>({" + threads + "})";
  std::vector<std::string> along;
  for (unsigned axis = 0; axis < axes; ++axis)
    along.push_back(llvm::formatv("unsigned(({0} + {1}) / {2})", threads, shape.block[axis] - 1, shape.block[axis]));
  return axes == 1 ? along.front() : "dim3(" + llvm::join(along, ", ") + ")";
}

std::string tripleText(const std::array<unsigned, 3> &v) {
  return llvm::formatv("dim3({0}, {1}, {2})", v[0], v[1], v[2]);
}

/// Builds a harness with large buffers once, and runs it.
class Prober {
public:
  Prober(const Callable &callable, const Toolchain &toolchain, TempDir dir)
      : callable(callable), toolchain(toolchain), dir(std::move(dir)) {
    for (const CallableParameter *p : callable.of(CallableParameter::Integer))
      names.push_back(p->name);
    buffers = callable.of(CallableParameter::Buffer);
  }

  llvm::Error build(const CallSpec &spec, const std::string &path, const std::string &text,
                    const CompileOptions &compile) {
    CallSpec wide = spec;
    for (const CallableParameter *p : buffers)
      wide.extents.try_emplace(p->name, std::to_string(probeBytes / p->elementBytes));
    if (callable.isKernel && spec.grid.empty()) {
      // The integers behind the sizes.
      const size_t first = names.size() + 1;
      auto argument = [&](size_t i) { return llvm::formatv("unsigned(std::atoi(argv[{0}]))", first + i).str(); };
      wide.grid = "dim3(" + argument(0) + ", " + argument(1) + ", " + argument(2) + ")";
      wide.block = "dim3(" + argument(3) + ", " + argument(4) + ", " + argument(5) + ")";
    }
    program = dir.file("probe");
    return emu::buildProgram(compile, {{path, text + harnessText(callable, wide)}}, toolchain, emu::ModeBounds,
                             program);
  }

  /// `spec` with its extents, and how well they fit: the least ExtentFormula::quality. 0, with `why`, when the original
  /// does not run or nothing fits.
  llvm::Expected<std::pair<CallSpec, unsigned>> learn(const CallSpec &spec, const LaunchShape *shape,
                                                      std::string &why) {
    std::pair<CallSpec, unsigned> best{spec, 0};
    for (bool even : {false, true}) {
      llvm::Expected<std::pair<CallSpec, unsigned>> found = fit(spec, shape, trialSizes(names.size(), even), why);
      if (!found)
        return found.takeError();
      if (even) // these products are less telling
        found->second = std::min(found->second, 2u);
      if (found->second > best.second)
        best = *found;
      if (best.second)
        break;
    }
    return best;
  }

private:
  llvm::Expected<std::pair<CallSpec, unsigned>> fit(const CallSpec &spec, const LaunchShape *shape,
                                                    const std::vector<Sizes> &trials, std::string &why) {
    std::vector<std::vector<uint64_t>> elements(buffers.size());
    for (const Sizes &sizes : trials) {
      llvm::Expected<std::vector<uint64_t>> touched = run(sizes, shape, why);
      if (!touched)
        return touched.takeError();
      if (touched->size() < 2 * buffers.size())
        return std::pair(spec, 0u);
      for (size_t i = 0; i < buffers.size(); ++i) {
        const uint64_t bytes = std::max((*touched)[i], (*touched)[buffers.size() + i]);
        elements[i].push_back(llvm::divideCeil(bytes, buffers[i]->elementBytes));
      }
    }
    std::pair<CallSpec, unsigned> found{spec, 3};
    const int64_t block = shape ? shape->block[0] : 0;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (spec.extents.count(buffers[i]->name))
        continue;
      static constexpr int64_t usual[] = {32, 64, 128, 256, 512, 1024};
      std::optional<ExtentFormula> formula =
          fitExtent(names, trials, elements[i], block ? llvm::ArrayRef(block) : llvm::ArrayRef(usual));
      if (!formula) {
        why = "no product of its integer parameters tells how many elements '" + buffers[i]->name +
              "' has; --extent=" + buffers[i]->name + "=EXPRESSION does";
        return std::pair(spec, 0u);
      }
      found.first.extents[buffers[i]->name] = formula->text;
      found.second = std::min(found.second, formula->quality);
    }
    return found;
  }

  /// The bytes that kernels and copies touched, by allocation. Fewer than there are when the program fails.
  llvm::Expected<std::vector<uint64_t>> run(const Sizes &sizes, const LaunchShape *shape, std::string &why) {
    emu::RunOptions options;
    for (int64_t size : sizes)
      options.args.push_back(std::to_string(size));
    const std::string shown = llvm::join(options.args, " ");
    if (shape) {
      for (unsigned n : gridOf(*shape, callable.axes, sizes))
        options.args.push_back(std::to_string(n));
      for (unsigned n : shape->block)
        options.args.push_back(std::to_string(n));
    }
    options.seconds = probeSeconds;
    const std::string file = dir.file("touched");
    options.env[emu::envTouched] = file;
    llvm::sys::fs::remove(file);
    llvm::Expected<ProcessResult> process = emu::runProgram(program, options);
    if (!process)
      return process.takeError();
    if (process->signal || process->timedOut || process->overMemory || process->exitCode) {
      const llvm::StringRef said = process->err.empty() ? process->out : process->err;
      why = "the original fails with the sizes " + shown + ": " +
            (process->exitCode ? said.split('\n').first.str() : process->describe());
      return std::vector<uint64_t>();
    }
    llvm::Expected<std::string> lines = readFile(file);
    if (!lines)
      return lines.takeError();
    std::vector<uint64_t> touched;
    std::istringstream in(*lines);
    for (uint64_t number = 0, bytes = 0; in >> number >> bytes;)
      touched.push_back(bytes);
    return touched;
  }

  const Callable &callable;
  const Toolchain &toolchain;
  TempDir dir;
  std::vector<std::string> names;
  std::vector<const CallableParameter *> buffers;
  std::string program;
};

} // namespace

llvm::Expected<CallSpec> optiml::inferCall(const Callable &callable, CallSpec known, const std::string &path,
                                           const std::string &text, const CompileOptions &compile,
                                           const Toolchain &toolchain) {
  llvm::Expected<TempDir> dir = TempDir::create("optiml-harness");
  if (!dir)
    return dir.takeError();
  std::vector<std::string> names;
  for (const CallableParameter *p : callable.of(CallableParameter::Integer))
    names.push_back(p->name);
  if (known.sizes.empty())
    known.sizes = usualSizes(names.size());
  if (callable.isKernel && callable.dynamicShared && known.shared.empty())
    known.shared = "48 << 10";
  Prober prober(callable, toolchain, std::move(*dir));
  if (llvm::Error error = prober.build(known, path, text, compile))
    return std::move(error);
  std::string why, firstWhy;
  std::pair<CallSpec, unsigned> best{known, 0};
  constexpr unsigned exact = 3;
  const bool looksForLaunch = callable.isKernel && known.grid.empty();
  if (!looksForLaunch) {
    if (llvm::Error error = prober.learn(known, nullptr, firstWhy).moveInto(best))
      return std::move(error);
  } else {
    for (const LaunchShape &shape : launchShapes(callable, names.size())) {
      CallSpec spec = known;
      spec.grid = gridText(shape, callable.axes, names);
      spec.block = tripleText(shape.block);
      llvm::Expected<std::pair<CallSpec, unsigned>> found = prober.learn(spec, &shape, why);
      if (!found)
        return found.takeError();
      if (firstWhy.empty())
        firstWhy = why;
      if (found->second > best.second)
        best = *found;
      if (best.second == exact)
        break;
    }
  }
  if (!best.second)
    return makeError("{0}:{1}: cannot find out how to call '{2}': {3}{4}", path, callable.line, callable.name, firstWhy,
                     looksForLaunch ? "; --launch=GRID;BLOCK[;SHARED] gives its launch" : "");
  return best.first;
}
