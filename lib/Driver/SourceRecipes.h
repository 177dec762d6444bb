//===- SourceRecipes.h - recipes, applied to a source -----------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_SOURCERECIPES_H
#define OPTIML_LIB_DRIVER_SOURCERECIPES_H

#include "RecipeFile.h"
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Emit/Emit.h"
#include "optiml/Frontend/Program.h"
#include "optiml/Support/FloatRule.h"
#include "optiml/Support/StopWatch.h"
#include <memory>
#include <optional>
#include <set>

namespace optiml {

/// Flags of nvcc that change device code and not the source's meaning, in order.
std::string deviceFlags(const CompileOptions &options);

/// What transforms may do.
void setRules(LaunchHints &hints, const FloatRule &floats, const CompileOptions &options);

/// What stands above a new kernel: "program's kernels 3.20 times faster, measured on NVIDIA H200". `testedOnly`: and
/// that nobody has proven it.
std::string gainText(double speedup, bool isMeasured, const std::string &gpu, bool testedOnly);

/// The launches that may take a new kernel. Far below the size that was searched on, a tiling that wins on large
/// launches may lose: at least half of `leastThreads`.
ThreadRange limitsOf(uint64_t leastThreads, ThreadRange launchClass);

/// The variant, dispatched only for these launches, by original symbol.
Variant limitedTo(Variant variant, const std::map<std::string, ThreadRange> &limits);

/// The kernels of these records, with the launches that they were searched on, and the texts that they take.
llvm::Expected<std::unique_ptr<KernelSpace>> spaceOf(const Program &device, const CompileOptions &options,
                                                     const Toolchain &toolchain, const FloatRule &floats,
                                                     llvm::ArrayRef<const KernelRecipe *> records);

/// Some of these kernels, rewritten as the records say. The error tells why one cannot be read, or names the first
/// action that does not apply.
llvm::Expected<std::shared_ptr<const Variant>> replay(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records);

/// Applies what a file of recipes holds for one source. No GPU is used, and nothing is run.
class SourceRecipes {
public:
  /// `path` is the source's, as on the command line that `options` come from.
  SourceRecipes(const RecipeFile &file, const CompileOptions &options, const Toolchain &toolchain,
                const FloatRule &floats, const std::string &path, bool nearest = false)
      : file(file), options(options), toolchain(toolchain), floats(floats), nearest(nearest), path(path) {}
  /// The rewritten text; nothing where no recipe applies.
  llvm::Expected<std::optional<std::string>> run();
  /// What stands around the new kernels; Guarded unless this is called. Others want one architecture.
  void setStyle(EmitStyle wanted) { style = wanted; }
  /// Records for the architectures and the mode of this compilation, and those of them that apply.
  unsigned considered() const { return number; }
  const std::set<const KernelRecipe *> &applied() const { return used; }
  /// Seconds of reading, proving and writing programs.
  const StopWatch &times() const { return watch; }
  /// Why kernels that the file names are compiled as they are: "file: kernel k is compiled as it is: …".
  const std::vector<std::string> &stale() const { return complaints; }
  /// Launches that keep the original, "file:line: …", and what else a user should know.
  const std::vector<std::string> &remarks() const { return told; }

private:
  /// The architectures that the object may hold and there are records for, and whose records these are.
  std::map<unsigned, unsigned> architectures() const;
  /// Applies the records of architecture `from` to `text`, for `arch`.
  llvm::Error apply(unsigned arch, unsigned from);
  /// ... of which none are for the same kernel.
  llvm::Error apply(const Program &device, const CompileOptions &only, const CompileOptions &rules,
                    std::vector<const KernelRecipe *> records);
  bool isIn(unsigned arch) const;
  /// The records of this architecture and mode whose kernels are still there and compiled alike.
  std::vector<const KernelRecipe *> wanted(unsigned arch, const Program &device);
  /// Those of them that still make what they made.
  std::vector<const KernelRecipe *> applicable(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records);
  llvm::Error emit(KernelSpace &space, llvm::ArrayRef<const KernelRecipe *> records, const CompileOptions &only);
  llvm::Error redirect(const std::set<std::string> &symbols);
  llvm::Error take(llvm::Expected<EmittedProgram> emitted);
  void tell(const KernelRecipe &r, const std::string &why);
  void remark(const std::string &line); ///< once

  const RecipeFile &file;
  const CompileOptions &options;
  const Toolchain &toolchain;
  const FloatRule floats;
  EmitStyle style = EmitStyle::Guarded;
  const bool nearest; ///< records of lower architectures may do
  const std::string path;
  std::string original, text;
  bool isChanged = false; ///< by recipes
  std::vector<std::string> complaints, told;
  StopWatch watch;
  unsigned number = 0;
  std::set<const KernelRecipe *> used;
};

} // namespace optiml

#endif
