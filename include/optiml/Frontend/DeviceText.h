//===- DeviceText.h - what of a program its kernels need --------*- C++ -*-===//
//
// A program's kernels, with the types, functions, variables and macros that they use, and nothing of its host code: the
// text that NVRTC takes. It is cut out of the source, so that conditions of the preprocessor stay as they are.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_DEVICETEXT_H
#define OPTIML_FRONTEND_DEVICETEXT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <string>
#include <vector>

namespace optiml {

class Program;

class DeviceText {
public:
  /// Of a program in the device's view.
  static DeviceText of(const Program &program);

  struct Insertion {
    unsigned at; ///< byte offset in the program's text
    std::string text;
  };
  /// With texts put in, and without the kernels (KernelDecl::name, KernelDecl::symbol) that are not wanted.
  std::string with(const std::vector<Insertion> &insertions,
                   llvm::function_ref<bool(const std::string &name)> wantsKernel) const;
  bool empty() const { return parts.empty(); }
  /// With all kernels.
  std::string whole() const;
  /// What every such text begins with: declarations, and the directives before the first of the program's own. Empty
  /// where that includes no file.
  std::string head() const;
  /// Of templates: instantiations that the program has, which the text does not ask for (KernelDecl::name).
  const std::vector<std::string> &instantiations() const { return templates; }

private:
  /// A declaration at namespace scope, or what stands between.
  struct Part {
    unsigned begin = 0, end = 0;      ///< in the program's text
    std::string text;                 ///< what is left of it
    std::vector<std::string> kernels; ///< whose definition it is: of a template, all instantiations
  };
  friend class DeviceTextCutter;
  std::vector<Part> parts; ///< in order, without gaps
  std::vector<std::string> templates;
};

} // namespace optiml

#endif
