//===- KernelName.h - the parts of a function's full name -------*- C++ -*-===//
#ifndef OPTIML_CORE_KERNELNAME_H
#define OPTIML_CORE_KERNELNAME_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace optiml {

/// "ns::scale<a::b>" -> "ns::"; empty without a namespace.
llvm::StringRef scopeOf(llvm::StringRef name);
/// "ns::scale<a::b>" -> "scale<a::b>": how a function is called beside its definition.
llvm::StringRef unqualified(llvm::StringRef name);
/// "ns::(anonymous namespace)::scale" -> "ns::scale": as a program names it.
std::string withoutNameless(std::string name);
/// "void ns::scale<a::b>(int)" -> "scale".
std::string plainName(llvm::StringRef declaration);
/// "void ns::scale<a::b>(int)" -> "ns::scale<a::b>": what a table says.
llvm::StringRef titleOf(llvm::StringRef declaration);
/// "ns::scale<a::b>" -> "scale_a_b".
std::string identifierOf(llvm::StringRef name);

} // namespace optiml

#endif
