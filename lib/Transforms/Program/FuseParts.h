//===- FuseParts.h - kernels with names of their own ------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEPARTS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEPARTS_H

#include "FuseKernels.h"

namespace optiml {

/// Parameters and locals.
std::set<std::string> declaredIn(const Kernel &kernel);

/// Where threads of a kernel may meet: nowhere, or at barriers that all threads of a block come to, and within warps.
enum class Meetings { None, OfAll };

/// Refuses memory that is accessed in other ways than by subscripts, and other meetings of threads.
llvm::Error requireVisible(const Kernel &kernel, const KernelModel &model, Meetings meetings);

/// The kernels that are to become one. No two declare the same name, and those that are given the same argument have
/// one parameter for it.
struct FuseParts {
  explicit FuseParts(const std::string &name);

  /// Takes a part in, with names of its own. Early returns become conditions.
  llvm::Error add(const KernelPart &given);

  std::shared_ptr<Kernel> fused;                                ///< with all parameters, and an empty body
  std::vector<std::shared_ptr<Kernel>> parts;                   ///< their bodies in terms of these parameters
  std::vector<std::vector<std::string>> names;                  ///< FusedKernel::names
  std::map<std::string, std::pair<unsigned, unsigned>> sources; ///< FusedKernel::sources
  std::set<std::string> mentioned;                              ///< every name in the parts
  std::set<std::string> declared;                               ///< parameters and locals
  std::set<std::string> dead;                                   ///< parameters whose memory is not looked at again
  std::set<std::string> fresh;                                  ///< ... in whose memory nothing has been written before
  /// A parameter may be a pointer in a record that another part is given: its name is "image.data" then.
  bool sharesFields = false;
  std::vector<Condition> same; ///< that pointers in records are the parameters that stand for them

private:
  std::map<std::string, std::vector<std::string>> argumentsOf; ///< of the fused kernel's parameters, as written

  llvm::Error rename(Kernel &part, const std::vector<std::string> &arguments);
  std::optional<std::string> pointerFor(const Type &field, const std::string &argument) const;
  std::optional<std::string> fieldFor(const Type &pointer, const std::string &argument) const;
  std::string parameterFor(const Param &param, const std::string &argument, std::set<std::string> &taken);
};

} // namespace optiml

#endif
