//===- LoopText.h - CUDA for a loop of launches -----------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_LOOPTEXT_H
#define OPTIML_LIB_DRIVER_LOOPTEXT_H

#include "optiml/Transforms/LaunchIdioms.h"
#include <map>
#include <string>
#include <vector>

namespace optiml {

/// What is written beside a kernel whose loops of launches are replaced.
struct LoopTextNames {
  std::string loop;    ///< the class that takes the launches
  std::string prefix;  ///< of the new kernels
  std::string helper;  ///< class that counts paths (Emit.cpp)
  std::string kernel;  ///< the original, for people
  std::string launch;  ///< the function that launches one: a dispatcher, or empty: `callee`<<<…>>>
  std::string callee;  ///< the original, as it is called beside its definition
  std::string parameters;              ///< the original's, as C++ text
  std::vector<std::string> names;      ///< of these
};

/// The kernel that copies a stencil's cells back.
struct LoopCopyNames {
  std::shared_ptr<const TimeStep> step; ///< null: there is none
  std::string launch, callee, parameters; ///< as above
  std::vector<std::string> names;
};

/// The class and its kernels. An object of the class takes the launches of one loop (`add`), puts them off to the end of
/// its life, and then runs the algorithm that they are the steps of, or, where they are not, the launches themselves. Those of
/// the copying kernel go to `addCopy`.
std::string loopText(const LaunchIdiom &idiom, const LoopTextNames &names, const LoopCopyNames &copy = {});

/// Replaces "@NAME" by its value; the longest name that fits.
std::string filled(llvm::StringRef text, const std::map<std::string, std::string> &values);

} // namespace optiml

#endif
