//===- Harness.h - host programs for functions without main() ---*- C++ -*-===//
//
// Kernels often stand in files without main(). A harness is a main() that is appended to such a file: it makes the
// buffers that one function takes, calls or launches it, and copies back what it may write. Integers among the
// parameters are the program's arguments, so that verification can change them.
//
// How many elements a buffer has is learnt from the original: it runs on the emulator with large buffers and a few
// sizes, and a formula of the integer parameters is sought that gives what it touched.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_EVALUATE_HARNESS_HARNESS_H
#define OPTIML_EVALUATE_HARNESS_HARNESS_H

#include "optiml/Frontend/Program.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace optiml {

struct CallableParameter {
  enum Kind { Buffer, Integer, Boolean, Floating, Stream, Unknown };
  Kind kind = Unknown;
  std::string name;        ///< never empty
  std::string type;        ///< without reference and qualifiers; of a buffer, that of its elements
  bool written = false;    ///< a buffer that is not const
  bool hostMemory = false; ///< a buffer that the function itself copies to or from the device
  uint64_t elementBytes = 0;
};

/// A function with a body in the main file that a host program can call, or a kernel that it can launch.
struct Callable {
  std::string name; ///< qualified
  unsigned line = 0;
  bool isKernel = false;
  unsigned axes = 1;          ///< kernels: 1 to 3, as threadIdx and blockIdx are used
  unsigned maxThreads = 1024; ///< kernels: by __launch_bounds__
  bool dynamicShared = false; ///< kernels: reads extern __shared__ memory
  std::vector<CallableParameter> parameters;
  /// Why no host program can be written for it; empty: one can.
  std::string obstacle() const;
  std::vector<const CallableParameter *> of(CallableParameter::Kind kind) const;
};

/// What stands in the main file of a program, which must live as long.
class FileFunctions {
public:
  explicit FileFunctions(const Program &program);
  ~FileFunctions();
  bool haveMain() const;
  /// The functions that launch kernels and that no other of them calls, and the kernels that none of them launches.
  /// Templates are left out.
  std::vector<Callable> callables() const;
  /// Unqualified names of the functions and kernels that a call of this one (qualified) may come to, with its own;
  /// empty where there is no such function.
  std::set<std::string> reachableFrom(llvm::StringRef function) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// How a function is called. Expressions are C++ over the names of its integer parameters.
struct CallSpec {
  std::map<std::string, std::string> extents; ///< elements, by the buffer's parameter
  std::string grid, block, shared;            ///< of a kernel's launch
  std::vector<int64_t> sizes;                 ///< of the integer parameters, where the program gets no arguments
};

/// The text to append to the source.
std::string harnessText(const Callable &callable, const CallSpec &spec);

/// Fills in what `known` leaves out. `text` is the original source in place of `path`. An Error says what could not be
/// found out, and which option would tell.
llvm::Expected<CallSpec> inferCall(const Callable &callable, CallSpec known, const std::string &path,
                                   const std::string &text, const CompileOptions &compile, const Toolchain &toolchain);

/// A formula over integer parameters.
struct ExtentFormula {
  std::string text;
  /// How much it explains: 3, it gives each number; 2, it is a constant; 1, it gives up to twice as much.
  unsigned quality = 0;
};

/// One that gives `elements[t]` for `sizes[t]`, all t, or a little more; exposed for tests. Nothing when there is none.
/// `blocks`: products may be divided by these, rounded up.
std::optional<ExtentFormula> fitExtent(const std::vector<std::string> &names,
                                       const std::vector<std::vector<int64_t>> &sizes,
                                       const std::vector<uint64_t> &elements, llvm::ArrayRef<int64_t> blocks);

} // namespace optiml

#endif
