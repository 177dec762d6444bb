//===- NoPolly.cpp - an empty plugin in Polly's place ---------------------===//
//
// Debian's static libclangCodeGen registers Polly with every pipeline. Nothing here uses Polly, so a plugin that
// registers no passes stands in for its archives (and for their own copy of isl).
//
//===----------------------------------------------------------------------===//
#include "llvm/Passes/PassBuilder.h"
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "none", LLVM_VERSION_STRING, [](llvm::PassBuilder &) {}};
}
