//===- Program.h - one parsed CUDA translation unit -------------*- C++ -*-===//
#ifndef OPTIML_FRONTEND_PROGRAM_H
#define OPTIML_FRONTEND_PROGRAM_H

#include "optiml/Frontend/CompileOptions.h"
#include "llvm/Support/Error.h"
#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace clang {
class ASTContext;
class ASTUnit;
class FunctionDecl;
} // namespace clang

namespace optiml {

/// A parameter that is a pointer, or a pointer within a parameter of class type.
struct PointerField {
  unsigned parameter = 0;
  uint64_t offset = 0; ///< in bytes, in the parameter
  std::string pointee; ///< what it points to, without qualifiers, as elementName (PointerFields.h) has it: "float",
                       ///< also for a structure of floats
};

/// A __device__, __constant__ or __managed__ variable.
struct DeviceVariable {
  std::string symbol;  ///< mangled; compilers append to that of a static one
  std::string element; ///< type of its elements, where it is an array or a structure, without qualifiers: "float"
};

/// What a source asks for at a kernel.
struct KernelDirective {
  bool isOff = false, isOn = false; ///< it stays as it is; kernels that do not say this stay as they are
  std::string recipe;               ///< to try first; empty: none
};

/// A __global__ function with a body: a plain one, or one instantiation of a template.
struct KernelDecl {
  std::string name;   ///< qualified, with template arguments: "ns::scale<float>"
  std::string symbol; ///< mangled
  unsigned line = 0;
  std::string file;
  bool isTemplate = false;
  bool inMainFile = false;
  /// Byte offset in the main file just after the definition's closing brace (of the template, for an instantiation).
  unsigned endOffset = 0;
  /// The same, or further on, behind the types that are arguments of the template; 0: there is no such place, or none
  /// is known.
  unsigned placeOffset = 0;
  std::string enter, leave; ///< lines that lead from the namespace there into the kernel's, and back
  std::string source; ///< the definition as written, of a template for its instantiations; empty when a macro makes it
  std::vector<PointerField> pointers;
  KernelDirective directive;
  const clang::FunctionDecl *decl = nullptr;
};

/// One kernel<<<…>>>(…) in the main file, one cudaLaunchKernel(kernel, …), or one cudaLaunchKernelEx(config, kernel, …)
/// or cudaLaunchKernelExC.
struct LaunchSite {
  std::string kernel; ///< KernelDecl::name
  std::string symbol; ///< KernelDecl::symbol; empty when it depends on template parameters
  unsigned line = 0;
  unsigned begin = 0, end = 0;     ///< byte range of the whole call expression; 0,0 when it stands in a macro
  std::string callee;              ///< text before <<<
  std::vector<std::string> config; ///< grid, block[, shared[, stream]] as written, or the configuration's address
  bool byConfiguration = false;    ///< ... which it is
  bool passesValues = false;       ///< not by kernel<<<…>>>, but its arguments are as they are there
  std::array<int64_t, 3> block = {0, 0, 0}; ///< its threads, where constants or variables that begin with them tell
  std::vector<std::string> arguments;       ///< as written, or the array of their addresses
  unsigned parameters = 0;                  ///< that the kernel has
  bool namesOne = false;                    ///< `callee` as an address can mean this kernel only
  unsigned topLevelBegin = 0;               ///< byte offset where the enclosing declaration at namespace scope starts
  unsigned outermostBegin = 0;              ///< ... and the one at global scope, which may be the namespace
  bool inTemplate = false;                  ///< in a function template or its instantiation
  bool isPattern = false;                   ///< in a template itself, which is no code yet
  bool inMacro = false;                     ///< made by a macro, not just an argument of one
  /// Grid, block, shared bytes or stream: 0 where it is not written.
  std::string configAt(size_t i) const { return i < config.size() ? config[i] : "0"; }
};

class Program {
public:
  /// Parses `text` as the content of `path` (other files are read from disk) in one view. A program with errors is
  /// an Error whose message holds Clang's diagnostics.
  static llvm::Expected<std::unique_ptr<Program>> parse(const std::string &path, const std::string &text,
                                                        const CompileOptions &options, const Toolchain &toolchain,
                                                        View view);
  /// The same with the content of headers that launch kernels in place of the lines that include them, so that their
  /// launches can be rewritten, and with classes in place of device lambdas that are arguments of kernels. The user
  /// calls the file `name`.
  static llvm::Expected<std::unique_ptr<Program>> parseWithLaunches(const std::string &path, llvm::StringRef name,
                                                                    const std::string &text,
                                                                    const CompileOptions &options,
                                                                    const Toolchain &toolchain, View view);
  ~Program();
  const std::string &path() const { return filePath; }
  const std::string &text() const { return fileText; }
  const std::vector<KernelDecl> &kernels() const { return kernelDecls; }
  const std::vector<LaunchSite> &launches() const { return launchSites; }
  /// Calls of cudaLaunchKernel, cudaLaunchKernelEx and cudaLaunchKernelExC with a kernel's name.
  const std::vector<LaunchSite> &addressLaunches() const { return addressLaunchSites; }
  /// Other uses of a kernel's address in the main file, but by CUDA's questions about it: symbols and lines.
  const std::vector<std::pair<std::string, unsigned>> &takenAddresses() const { return addressesTaken; }
  const std::vector<DeviceVariable> &variables() const { return deviceVariables; }
  /// The user's headers that it includes, directly or not; the system's and CUDA's are left out.
  const std::vector<std::string> &headers() const { return userHeaders; }
  /// Names of macros that the file, the user's headers or the command line define, wherever they do.
  const std::set<std::string> &macros() const { return macroNames; }
  /// Directives at kernels that mean nothing: "file:line: …".
  const std::vector<std::string> &wrongDirectives() const { return directiveErrors; }
  /// Classes stand for lambdas in the text: kernels have other symbols than those of the file.
  bool namesLambdas() const { return hasNamedLambdas; }
  /// By qualified name or symbol; null when there is none.
  const KernelDecl *findKernel(llvm::StringRef nameOrSymbol) const;
  /// Whether its main() looks at the command line; true where main() is in another file.
  bool readsArguments() const;
  clang::ASTContext &ast() const;

private:
  Program();
  void collect();
  std::string filePath, fileText;
  std::unique_ptr<clang::ASTUnit> unit;
  std::vector<KernelDecl> kernelDecls;
  std::vector<LaunchSite> launchSites, addressLaunchSites;
  std::vector<std::pair<std::string, unsigned>> addressesTaken;
  std::vector<DeviceVariable> deviceVariables;
  std::vector<std::string> directiveErrors;
  std::vector<std::string> userHeaders;
  std::set<std::string> macroNames;
  bool hasNamedLambdas = false;
};

/// Whether the file or a header of the user's sets attributes of kernels (cudaFuncSetAttribute).
bool setsKernelAttributes(const Program &program);

} // namespace optiml

#endif
