//===- Sandbox.cpp - for programs that a model wrote ----------------------===//
#include "optiml/Support/Sandbox.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

using namespace optiml;

namespace {

/// Of Landlock's interface what is used, since Debian's kernel headers are older than kernels that have it.
namespace landlock {
constexpr long createRuleset = 444, addRule = 445, restrictSelf = 446; // the same numbers on every architecture
constexpr unsigned versionFlag = 1, pathBeneath = 1;
constexpr uint64_t execute = 1 << 0, writeFile = 1 << 1, readFile = 1 << 2, readDir = 1 << 3;
struct Ruleset {
  uint64_t files, network, scopes;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed;
  int32_t folder;
};
int version() {
  static const int known = int(syscall(createRuleset, nullptr, size_t(0), versionFlag));
  return known;
}
/// Every right on files that this kernel knows, so that all of them are denied where no rule grants them.
uint64_t allFileRights() {
  int v = version();
  return (uint64_t(1) << (v >= 5 ? 16 : v >= 3 ? 15 : v >= 2 ? 14 : 13)) - 1;
}
constexpr uint64_t connectAndBind = 3, signalsAndAbstractSockets = 3;
} // namespace landlock

/// Compares a call's argument with `a`, or what the mask `a` leaves of it with `b`.
scmp_arg_cmp argument(unsigned index, scmp_compare how, uint64_t a, uint64_t b = 0) { return {index, how, a, b}; }

/// Collects the first failure, so that a list of rules reads as one.
class Filter {
public:
  Filter() : context(seccomp_init(SCMP_ACT_ERRNO(EPERM))) { failed = !context; }
  ~Filter() { seccomp_release(context); }
  template <typename... Conditions> void add(uint32_t action, int call, Conditions... conditions) {
    if (call < 0) // not on this architecture
      return;
    scmp_arg_cmp list[] = {conditions..., {}};
    failed = failed || seccomp_rule_add_array(context, action, call, sizeof...(conditions), list) != 0;
  }
  bool build(const unsigned long (&secret)[3], std::vector<unsigned char> &program);

private:
  bool write(std::vector<unsigned char> &program);
  scmp_filter_ctx context;
  bool failed = false;
};

bool Filter::build(const unsigned long (&secret)[3], std::vector<unsigned char> &program) {
  constexpr unsigned cloneThread = 0x10000, setName = 15, setVma = 0x53564d41, getTerminal = 0x5401;
#define ALLOWED(call) add(SCMP_ACT_ALLOW, call);
#define DEADLY(call) add(SCMP_ACT_KILL_PROCESS, call);
#include "SystemCalls.def"
  // Threads are allowed, processes are not. clone3 hides its flags in memory; without it the C library uses clone.
  add(SCMP_ACT_ALLOW, SCMP_SYS(clone), argument(0, SCMP_CMP_MASKED_EQ, cloneThread, cloneThread));
  add(SCMP_ACT_KILL_PROCESS, SCMP_SYS(clone), argument(0, SCMP_CMP_MASKED_EQ, cloneThread, 0));
  add(SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3));
  // The execve that starts the program shows a secret in arguments that the call does not use; the program starts with
  // cleared registers and never knows it.
  add(SCMP_ACT_ALLOW, SCMP_SYS(execve), argument(3, SCMP_CMP_EQ, secret[0]), argument(4, SCMP_CMP_EQ, secret[1]),
      argument(5, SCMP_CMP_EQ, secret[2]));
  add(SCMP_ACT_KILL_PROCESS, SCMP_SYS(execve), argument(3, SCMP_CMP_NE, secret[0]));
  add(SCMP_ACT_KILL_PROCESS, SCMP_SYS(execve), argument(4, SCMP_CMP_NE, secret[1]));
  add(SCMP_ACT_KILL_PROCESS, SCMP_SYS(execve), argument(5, SCMP_CMP_NE, secret[2]));
  // A signal to a thread of its own (abort, raise) cannot be told from one to another process: Landlock confines it.
  if (landlock::version() >= 6)
    add(SCMP_ACT_ALLOW, SCMP_SYS(tgkill));
  add(SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), argument(2, SCMP_CMP_EQ, 0)); // asks only
  add(SCMP_ACT_ALLOW, SCMP_SYS(prctl), argument(0, SCMP_CMP_EQ, setName));
  add(SCMP_ACT_ALLOW, SCMP_SYS(prctl), argument(0, SCMP_CMP_EQ, setVma));
  add(SCMP_ACT_ALLOW, SCMP_SYS(ioctl), argument(1, SCMP_CMP_EQ, getTerminal));
  return !failed && write(program);
}

bool Filter::write(std::vector<unsigned char> &program) {
  int fd = memfd_create("filter", MFD_CLOEXEC);
  auto closing = llvm::scope_exit([&] { close(fd); });
  struct stat status;
  if (fd < 0 || seccomp_export_bpf(context, fd) != 0 || fstat(fd, &status) != 0)
    return false;
  program.resize(size_t(status.st_size));
  return pread(fd, program.data(), program.size(), 0) == status.st_size &&
         program.size() / sizeof(sock_filter) <= BPF_MAXINSNS;
}

/// What does not exist is left out.
void allowPath(int ruleset, const std::string &path, uint64_t rights) {
  int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0)
    return;
  struct stat status;
  if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode)) // the other rights are those of folders
    rights &= landlock::execute | landlock::writeFile | landlock::readFile | (uint64_t(1) << 14);
  landlock::PathBeneath rule{rights & landlock::allFileRights(), fd};
  syscall(landlock::addRule, ruleset, landlock::pathBeneath, &rule, 0u);
  close(fd);
}

/// -1 where the kernel has no Landlock.
int makeRuleset(const Sandbox &sandbox, const std::string &program) {
  int version = landlock::version();
  if (version < 1)
    return -1;
  landlock::Ruleset rules{landlock::allFileRights(), version >= 4 ? landlock::connectAndBind : 0,
                          version >= 6 ? landlock::signalsAndAbstractSockets : 0};
  int ruleset = int(syscall(landlock::createRuleset, &rules, sizeof rules, 0u));
  if (ruleset < 0)
    return -1;
  constexpr uint64_t read = landlock::readFile | landlock::readDir;
  for (const char *libraries : {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib"})
    allowPath(ruleset, libraries, read | landlock::execute); // the loader is executed
  for (const char *system : {"/usr/share", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/zero",
                             "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"})
    allowPath(ruleset, system, read);
  allowPath(ruleset, "/dev/null", read | landlock::writeFile);
  allowPath(ruleset, program, read | landlock::execute);
  for (const std::string &path : sandbox.readable)
    allowPath(ruleset, path, read);
  for (const std::string &path : sandbox.writable)
    allowPath(ruleset, path, landlock::allFileRights() & ~landlock::execute);
  return ruleset;
}

} // namespace

bool optiml::sandboxConfinesFiles() { return landlock::version() >= 1; }

llvm::Expected<PreparedSandbox> PreparedSandbox::prepare(const Sandbox &sandbox, const std::string &program) {
  PreparedSandbox result;
  result.variables = {"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_NUMERIC", "TZ"};
  llvm::append_range(result.variables, sandbox.environment);
  if (getrandom(result.secret, sizeof result.secret, 0) != ssize_t(sizeof result.secret))
    return makeError("a sandbox needs random numbers, and the kernel gives none: {0}", strerror(errno));
  Filter filter;
  if (!filter.build(result.secret, result.filter))
    return makeError("a system-call filter cannot be built on this machine");
  result.ruleset = makeRuleset(sandbox, program);
  return result;
}

PreparedSandbox::PreparedSandbox(PreparedSandbox &&other) noexcept
    : ruleset(std::exchange(other.ruleset, -1)), filter(std::move(other.filter)),
      variables(std::move(other.variables)) {
  std::copy(std::begin(other.secret), std::end(other.secret), secret);
}

PreparedSandbox::~PreparedSandbox() {
  if (ruleset >= 0)
    close(ruleset);
}

bool PreparedSandbox::keepsVariable(const std::string &name) const { return llvm::is_contained(variables, name); }

/// What this process has open (a connection to a model's server, say) is not for the child.
static void closeAllOnExec() {
  constexpr unsigned setCloseOnExec = 4;
  if (syscall(SYS_close_range, 3u, ~0u, setCloseOnExec) == 0)
    return;
  for (int fd = 3; fd < 65536; ++fd) // a kernel before 5.11
    fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void PreparedSandbox::execute(const char *path, char **argv, char **envp) const {
  sock_fprog program{static_cast<unsigned short>(filter.size() / sizeof(sock_filter)),
                     reinterpret_cast<sock_filter *>(const_cast<unsigned char *>(filter.data()))};
  closeAllOnExec();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return;
  if (ruleset >= 0 && syscall(landlock::restrictSelf, ruleset, 0u) != 0)
    return;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0)
    return;
  syscall(SYS_execve, path, argv, envp, secret[0], secret[1], secret[2]);
}
