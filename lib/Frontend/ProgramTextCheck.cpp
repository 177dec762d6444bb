//===- ProgramTextCheck.cpp - a whole program from a model ----------------===//
#include "optiml/Frontend/ProgramTextCheck.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Words.h"
#include "clang/Basic/LangOptions.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using llvm::StringRef;
namespace tok = clang::tok;

static bool isAllowedHeader(StringRef name) {
  static const std::set<StringRef> headers =
      words("algorithm array assert.h bitset cassert cctype cfloat chrono climits cmath complex cstddef cstdint "
            "cstdio cstdlib cstring ctime deque float.h functional initializer_list iomanip iostream iterator limits "
            "limits.h list map math.h memory numeric queue random set sstream stack stddef.h stdint.h stdio.h "
            "stdlib.h string string.h tuple type_traits unordered_map unordered_set utility vector "
            "cooperative_groups.h cooperative_groups/reduce.h cuda_bf16.h cuda_fp16.h cuda_runtime.h "
            "device_launch_parameters.h math_constants.h mma.h vector_types.h");
  return headers.count(name) != 0;
}

/// Why an identifier is not allowed, or null. Words that are also good names for variables (open, thread, link) are
/// left to the sandbox.
static const char *forbidden(StringRef name) {
  static const std::set<StringRef> compiler =
      words("asm __asm __asm__ __attribute__ __attribute __declspec _Pragma __pragma __has_include __has_include_next "
            "__has_embed import module export __constructor__");
  static const std::set<StringRef> files =
      words("fopen freopen fdopen openat creat ifstream ofstream fstream filebuf basic_filebuf basic_ifstream "
            "basic_ofstream basic_fstream filesystem tmpfile tmpnam mkstemp mkdtemp unlink symlink rmdir mkdir chdir "
            "chmod chown opendir readlink mmap mprotect shm_open remove rename renameat unlinkat truncate ftruncate");
  static const std::set<StringRef> processes =
      words("system popen fork vfork execl execlp execle execv execvp execve execvpe posix_spawn posix_spawnp ptrace "
            "syscall prctl dlopen dlsym sigaction setrlimit pthread_create");
  static const std::set<StringRef> outside =
      words("getenv secure_getenv setenv putenv unsetenv environ __environ socket sendto recvfrom getaddrinfo "
            "gethostbyname gethostname");
  static const std::set<StringRef> shared = words("cudaMallocManaged __managed__ cudaHostGetDevicePointer");
  return compiler.count(name)    ? "it is not allowed"
         : files.count(name)     ? "the program must not touch files"
         : processes.count(name) ? "the program must not start processes or threads, or load code"
         : outside.count(name)   ? "the program must not look at its environment or at a network"
         : shared.count(name)    ? "results are copied back by cudaMemcpy"
                                 : nullptr;
}

namespace {

class ProgramCheck {
public:
  /// `original`: whose lines are trusted; may be null.
  ProgramCheck(StringRef source, const StringRef *original) : source(source), isChange(original) {
    if (original)
      for (StringRef line : llvm::split(*original, '\n'))
        trusted.insert(line.trim());
    options.CPlusPlus = options.CPlusPlus11 = options.CPlusPlus14 = options.CPlusPlus17 = options.CUDA = true;
    options.LineComment = options.RawStringLiterals = options.Digraphs = true; // %: is #
  }
  llvm::Expected<WrittenProgram> run();
  llvm::Error checkTokens();

private:
  bool isTrusted(size_t offset) const;
  llvm::Error fail(size_t offset, const llvm::Twine &why) const {
    return makeError(("line " + llvm::Twine(1 + source.take_front(offset).count('\n')) + ": " + why).str());
  }
  llvm::Error checkBytes() const;
  std::vector<clang::Token> lex();
  size_t offsetOf(const clang::Token &token) const { return token.getLocation().getRawEncoding() - base; }
  StringRef spelling(const clang::Token &token) const { return source.substr(offsetOf(token), token.getLength()); }
  llvm::Error checkDirective(size_t hash);
  llvm::Error checkInclude(size_t hash);
  llvm::Error checkToken(size_t at);
  void findKernel(size_t global);

  StringRef source;
  bool isChange;
  std::set<StringRef> trusted; ///< lines without blanks around them
  clang::LangOptions options;
  unsigned base = 1;
  std::vector<clang::Token> tokens;
  WrittenProgram result;
};

} // namespace

llvm::Error ProgramCheck::checkBytes() const {
  const size_t most = isChange ? maxChangedBytes : maxProgramBytes;
  if (source.size() > most)
    return makeError("the program has {0} bytes; at most {1} are allowed", source.size(), most);
  for (size_t i = 0; i < source.size(); ++i)
    if (!llvm::isPrint(source[i]) && !StringRef("\n\t\r").contains(source[i]) && !isTrusted(i))
      return fail(i, "only printable ASCII characters are allowed");
  if (size_t at = source.find("?\?"); at != StringRef::npos && !isTrusted(at))
    return fail(at, "\"?\?\" is not allowed");
  return llvm::Error::success();
}

/// Whether the line there is the original's, too, and stands alone.
bool ProgramCheck::isTrusted(size_t offset) const {
  const size_t begin = source.rfind('\n', offset) + 1; // 0 where there is none
  const StringRef line = source.slice(begin, source.find('\n', offset)).trim();
  return isChange && trusted.count(line) && !source.take_front(begin).trim().ends_with("\\");
}

std::vector<clang::Token> ProgramCheck::lex() {
  std::string copy = source.str(); // ends with a zero, as the lexer wants
  clang::Lexer lexer(clang::SourceLocation::getFromRawEncoding(base), options, copy.data(), copy.data(),
                     copy.data() + copy.size());
  std::vector<clang::Token> all;
  for (bool last = false; !last;) {
    clang::Token token;
    last = lexer.LexFromRawLexer(token);
    if (token.is(tok::eof))
      break;
    all.push_back(token);
  }
  return all;
}

llvm::Error ProgramCheck::checkInclude(size_t hash) {
  size_t begin = offsetOf(tokens[hash]), end = source.find('\n', begin);
  StringRef line = source.slice(begin, end).drop_front(1).ltrim();
  line.consume_front("include");
  StringRef header = line.ltrim().split("//").first.split("/*").first.trim();
  bool angled = header.consume_front("<") && header.consume_back(">");
  if (!angled || !isAllowedHeader(header))
    return fail(begin, "only standard C++ headers and cuda_runtime.h and the like may be included, not '" +
                           header.take_front(80) + "'");
  result.includes.push_back(header.str());
  for (size_t i = begin; i < std::min(end, source.size()); ++i)
    result.body[i] = ' ';
  return llvm::Error::success();
}

llvm::Error ProgramCheck::checkDirective(size_t hash) {
  StringRef name =
      hash + 1 < tokens.size() && tokens[hash + 1].is(tok::raw_identifier) ? spelling(tokens[hash + 1]) : "";
  if (name == "include")
    return checkInclude(hash);
  if (name == "pragma" && hash + 2 < tokens.size()) {
    StringRef what = spelling(tokens[hash + 2]);
    if (what == "unroll" || what == "once")
      return llvm::Error::success();
    return fail(offsetOf(tokens[hash]), "of pragmas only '#pragma unroll' is allowed");
  }
  static const std::set<StringRef> allowed = {"define", "undef", "if",    "ifdef", "ifndef",
                                              "else",   "elif",  "endif", "error"};
  if (allowed.count(name))
    return llvm::Error::success();
  return fail(offsetOf(tokens[hash]), "'#" + name + "' is not allowed");
}

llvm::Error ProgramCheck::checkToken(size_t at) {
  const clang::Token &token = tokens[at];
  if (isTrusted(offsetOf(token)))
    return llvm::Error::success();
  if (token.is(tok::hash) && token.isAtStartOfLine())
    return checkDirective(at);
  if (token.is(tok::hashhash))
    return fail(offsetOf(token), "'##' is not allowed");
  if (token.is(tok::unknown) && spelling(token) != "\\")
    return fail(offsetOf(token), "this is no token of C++");
  if (!token.is(tok::raw_identifier))
    return llvm::Error::success();
  StringRef name = spelling(token);
  if (name.contains('\\'))
    return fail(offsetOf(token), "a name must not be broken or written with escapes");
  if (const char *why = forbidden(name))
    return fail(offsetOf(token), "'" + name + "': " + why);
  if (name == "extern") {
    bool shared = false;
    for (size_t i = at + 1; i < tokens.size() && i < at + 6; ++i)
      shared |= tokens[i].is(tok::raw_identifier) && spelling(tokens[i]) == "__shared__";
    if (!shared)
      return fail(offsetOf(token), "'extern' is allowed for __shared__ arrays only");
  }
  if (name == "__global__")
    findKernel(at);
  return llvm::Error::success();
}

/// The name before the first bracket after __global__ that is not one of an attribute.
void ProgramCheck::findKernel(size_t global) {
  for (size_t i = global + 1; i + 1 < tokens.size(); ++i) {
    if (tokens[i].isOneOf(tok::semi, tok::l_brace))
      return;
    if (!tokens[i].is(tok::raw_identifier) || !tokens[i + 1].is(tok::l_paren))
      continue;
    StringRef name = spelling(tokens[i]);
    if (name == "__launch_bounds__") {
      while (i + 1 < tokens.size() && !tokens[i].is(tok::r_paren))
        ++i;
      continue;
    }
    if (!llvm::is_contained(result.kernels, name))
      result.kernels.push_back(name.str());
    return;
  }
}

llvm::Error ProgramCheck::checkTokens() {
  if (llvm::Error error = checkBytes())
    return error;
  result.text = result.body = source.str();
  tokens = lex();
  for (size_t i = 0; i < tokens.size(); ++i)
    if (llvm::Error error = checkToken(i))
      return error;
  // An assembler reads files, too. Its text may stand on other lines than the word.
  if (size_t at = source.find("incbin"); at != StringRef::npos && isChange && !isTrusted(at))
    return fail(at, "'incbin' is not allowed");
  return llvm::Error::success();
}

llvm::Expected<WrittenProgram> ProgramCheck::run() {
  if (llvm::Error error = checkTokens())
    return std::move(error);
  if (result.kernels.empty())
    return makeError("there is no kernel (__global__) in it");
  if (result.kernels.size() > 16)
    return makeError("it has {0} kernels; at most 16 are allowed", result.kernels.size());
  return std::move(result);
}

llvm::Expected<WrittenProgram> optiml::checkWrittenProgram(StringRef text) { return ProgramCheck(text, nullptr).run(); }

llvm::Error optiml::checkChangedProgram(StringRef changed, StringRef original) {
  return ProgramCheck(changed, &original).checkTokens();
}
