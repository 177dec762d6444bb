//===- Texts.h - the CUDA that rewrites become ------------------*- C++ -*-===//
#ifndef OPTIML_LIB_EMIT_TEXTS_H
#define OPTIML_LIB_EMIT_TEXTS_H

#include "optiml/Core/LaunchRewrites.h"
#include "optiml/Core/Variant.h"
#include "llvm/ADT/ArrayRef.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace clang {
class FunctionDecl;
}

namespace optiml {

/// A file of the folder texts with each "$NAME" replaced by its value (the longest name that fits). The program ends
/// where there is no such file: that is a bug.
std::string filledText(const char *file, const std::map<std::string, std::string> &values);

/// A function template that deduces what a launch of `kernel`'s template deduces, and hands its arguments, after grid,
/// block, shared bytes and stream, to `chooser` for that instantiation (Emitter::chooser). It has to stand behind the
/// kernel's definition, in its namespace. Empty when that cannot be written: parameter packs, constraints, parameters
/// without a name, or text that a macro makes.
std::string deducingLauncher(const clang::FunctionDecl &kernel, const std::string &name, const std::string &chooser);

// A dispatcher is a host function with the original's parameters behind grid, block, shared bytes and stream. It tests
// the recorded conditions, and launches the twin or the original.

/// How the original is called where the twin stands.
std::string nameThere(const KernelRewrite &rewrite);

/// "static void name(dim3 grid, …)", without a body.
std::string dispatcherSignature(const KernelRewrite &rewrite, const std::string &name);
/// The whole function. `helper` is the class that counts paths; `summary` goes into its comment. `followsAttributes`:
/// the program may set attributes of the original, which its twin then gets too.
std::string dispatcherText(const KernelRewrite &rewrite, const std::string &name, const std::string &helper,
                           const std::string &summary, bool followsAttributes);
/// Without anything of OptiML: where the conditions do not hold, the original runs, unless they are accepted, here or
/// by whoever compiles the file and defines acceptMacro.
std::string plainLauncherText(const KernelRewrite &rewrite, const std::string &name, bool accepted);
inline constexpr const char *acceptMacro = "ACCEPT_LAUNCH_CONDITIONS";

// An entry is a host function with the parameters of cudaLaunchKernel. It calls a dispatcher.

/// "static cudaError_t name(…)", without a body; `exported`: other files can call it.
std::string entrySignature(const std::string &name, bool exported);
/// The whole function; empty where a parameter cannot be read from its address.
std::string entryText(const KernelRewrite &rewrite, const std::string &name, const std::string &dispatcher,
                      bool exported);
/// The name of the entry that other files call.
std::string entryName(const std::string &symbol);
/// What a file needs that calls the entries of other files: their declarations, and the function template `name`, which
/// takes an entry, a kernel and its configuration, and gives an object to call with the kernel's arguments.
std::string farLaunchSupport(const std::string &name, const std::set<std::string> &symbols);

/// The text, in which the bodies of kernels are empty but in code for this compute capability × 10.
std::string compiledFor(unsigned arch, llvm::StringRef text);

/// A rewrite and the name of its dispatcher.
using Dispatcher = std::pair<const KernelRewrite *, std::string>;
/// What launches within templates call, with the instantiation they name: name(kernel<T>)(grid, block, shared, stream,
/// arguments…). It launches that one, but where a choice says otherwise.
std::string chooserText(const std::string &name);
/// For the chooser `name`: takes the launches of these instantiations, which have the same parameters. Which one it is
/// shows only at run time.
std::string choiceText(const std::string &name, llvm::ArrayRef<Dispatcher> dispatchers);

/// What is written beside kernels that are fused.
struct FuseTextNames {
  struct Part {
    std::string callee;                ///< the original, as it is called beside its definition
    std::string kernel;                ///< ... and for people
    std::vector<Parameter> parameters; ///< the original's
    unsigned maxThreads;               ///< ... threads a block that it may be launched with
  };
  std::string name;   ///< the fused kernel
  std::string helper; ///< class that counts paths (Emit.cpp)
  std::vector<Part> parts;
  std::string launchType(size_t part) const { return name + "_launch" + std::to_string(part); }
  std::string loopType(size_t loop) const { return name + "_loop" + std::to_string(loop); }
  std::string launcher() const { return name + "_launch"; }
  std::string kernels() const; ///< for people: "a, b and c"
};

/// C++: whether two values of the parameter's type are the same, byte by byte where == is something else.
std::string sameValue(const Parameter &parameter, const std::string &a, const std::string &b);

/// A class for the launches of a part; `waits`: they are put off.
std::string launchClass(const FuseTextNames &names, size_t part, bool waits);

/// The fused kernel, a class for the launch of each part, and the function that takes an object of each and launches
/// the fused kernel, or the parts where that is not right.
std::string fuseText(const FusedKernel &fused, const FuseTextNames &names);

/// The same for a kernel in which a block has a row (RowBlocks), with a class for the launches of each loop.
std::string blockText(const FusedKernel &fused, const FuseTextNames &names);

/// What is written beside a kernel whose loops of launches are replaced.
struct LoopTextNames {
  std::string loop;                  ///< the class that takes the launches
  std::string prefix;                ///< of the new kernels
  std::string helper;                ///< class that counts paths (Emit.cpp)
  std::string kernel;                ///< the original, for people
  std::string launch;                ///< the function that launches one: a dispatcher, or empty: `callee`<<<…>>>
  std::string callee;                ///< the original, as it is called beside its definition
  std::vector<Parameter> parameters; ///< the original's
};

/// The kernel that copies a stencil's cells back.
struct LoopCopyNames {
  std::shared_ptr<const TimeStep> step; ///< null: there is none
  std::string launch, callee;           ///< as above
  std::vector<Parameter> parameters;
};

/// The class and its kernels. An object of the class takes the launches of one loop (`add`), puts them off to the end
/// of its life, and then runs the algorithm that they are the steps of, or, where they are not, the launches
/// themselves. Those of the copying kernel go to `addCopy`.
std::string loopText(const LaunchIdiom &idiom, const LoopTextNames &names, const LoopCopyNames &copy = {});

/// The kernel that does up to `tile.steps` steps of a tile, under the name PREFIX_steps.
std::string timeStepKernel(const TimeStep &step, const TimeTile &tile, const std::string &prefix);
/// Members of the class that takes a loop's launches (LoopText.cpp): how launches follow one another, and what replaces
/// them.
std::string timeStepMembers(const TimeStep &step, const TimeTile &tile, const LoopTextNames &names,
                            const LoopCopyNames &copy);
/// Its member `used`.
std::string timeStepUsed(const TimeStep &step);

} // namespace optiml

#endif
