//===- RecipeFile.h - recipes that are kept beside the source ---*- C++ -*-===//
//
// A text file for people and for version control: JSON lines, a header and then one record for each kernel, GPU
// architecture, floating-point mode and class of launches (docs/formats.md). A build applies what it holds, without a
// search.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_RECIPEFILE_H
#define OPTIML_LIB_DRIVER_RECIPEFILE_H

#include "optiml/Analysis/KernelState.h"
#include "optiml/Core/Variant.h"
#include "optiml/Support/ThreadRange.h"
#include "llvm/Support/Error.h"
#include <nlohmann/json.hpp>
#include <set>

namespace optiml {

struct KernelRecipe {
  std::string file;   ///< of the kernel, relative to the recipes file's folder
  std::string symbol; ///< mangled
  std::string kernel; ///< for people
  unsigned arch = 0;  ///< compute capability × 10
  std::string fp;     ///< FloatRule::str
  Recipe recipe;
  LaunchHints hints;         ///< of the launches that it was found on: grid, block, arguments
  uint64_t leastThreads = 0; ///< of these; launches of less than half as many run the original
  ThreadRange threads;       ///< the class of launches that it is for; others run what other records say
  /// Of language models, by name, that the recipe takes, and the launches that these were tested on, as a condition.
  nlohmann::json texts;
  std::string exercised;
  std::string outcome; ///< Variant::key of what the recipe made of the kernel, in which its source's layout is lost
  std::string flags;   ///< deviceFlags
  std::string gpu;     ///< for people, as what follows
  double speedup = 0;  ///< of the kernels that were searched together
  bool isMeasured = false;
  double before = 0, after = 0; ///< seconds of these
  double low = 0, high = 0;     ///< the speed-up's 95 % interval; 0: none
  std::string toolkit, date;    ///< "13.0", "2026-11-26"
  std::string version;          ///< of OptiML
  /// Other files, named as `file` is: those that instantiate the kernel, a template, too, and those that launch a
  /// kernel which they do not define.
  std::vector<std::string> instantiatedIn, launchedIn;
};

class RecipeFile {
public:
  /// A file that does not exist is empty. The error names the line.
  static llvm::Expected<RecipeFile> read(const std::string &path);
  /// `text` is what stands in the file at `path`.
  static llvm::Expected<RecipeFile> parse(const std::string &path, llvm::StringRef text);
  /// Takes the place of records of the same kernel, architecture and mode for some of the same launches, of its file or
  /// of one that it is instantiated in, too.
  void add(KernelRecipe recipe);
  /// In an order that does not depend on when something was added. All at once, or not at all.
  llvm::Error write() const;
  /// Of kernels that the source at `source` defines.
  std::vector<const KernelRecipe *> of(const std::string &source) const;
  /// Symbols of kernels that it launches and others define.
  std::set<std::string> launchedBy(const std::string &source) const;
  /// Whether it is compiled in another way than without this file.
  bool concerns(const std::string &source) const { return !of(source).empty() || !launchedBy(source).empty(); }
  /// A hash of all that these hold.
  std::string fingerprintOf(const std::string &source) const;
  /// Whether it has exactly this record, but for the other files that it names.
  bool holds(const KernelRecipe &recipe) const;
  /// For those who fill in what a search of one file cannot know.
  std::vector<KernelRecipe> &all() { return recipes; }
  /// As a record names the source.
  std::string nameOf(const std::string &source) const;

private:
  std::string path;
  std::vector<KernelRecipe> recipes;
};

} // namespace optiml

#endif
