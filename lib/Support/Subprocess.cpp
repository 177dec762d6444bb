//===- Subprocess.cpp - running other programs under limits ---------------===//
#include "optiml/Support/Subprocess.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/ScopeExit.h"
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace optiml;
using Clock = std::chrono::steady_clock;

extern char **environ;

std::string ProcessResult::describe() const {
  if (timedOut)
    return llvm::formatv("ran longer than its limit and was stopped after {0:f1} s", seconds).str();
  if (overMemory)
    return "used more memory than its limit and was stopped";
  if (cancelled)
    return "was cancelled";
  if (signal == SIGSYS)
    return "stopped, because it made a system call that its sandbox forbids";
  if (signal)
    return llvm::formatv("killed by signal {0} ({1})", signal, strsignal(signal)).str();
  return llvm::formatv("exit code {0}", exitCode).str();
}

/// Resident bytes of every process in group `pgid`, from /proc.
static uint64_t groupResidentBytes(pid_t pgid) {
  uint64_t pages = 0;
  DIR *proc = opendir("/proc");
  if (!proc)
    return 0;
  while (dirent *entry = readdir(proc)) {
    pid_t pid = atoi(entry->d_name);
    if (pid <= 0 || getpgid(pid) != pgid)
      continue;
    std::ifstream statm("/proc/" + std::string(entry->d_name) + "/statm");
    uint64_t total = 0, resident = 0;
    if (statm >> total >> resident)
      pages += resident;
  }
  closedir(proc);
  return pages * uint64_t(sysconf(_SC_PAGESIZE));
}

/// In the environment of a process and, unless they clear it, of all its descendants.
static constexpr llvm::StringLiteral markName = "OPTIML_STARTED_BY";

/// Kills every process of this user that has `mark` in its environment.
static void killMarked(const std::string &mark) {
  const std::string entry = markName.str() + "=" + mark;
  bool found = true;
  for (unsigned pass = 0; found && pass < 20; ++pass) { // one of them may start another meanwhile
    found = false;
    DIR *proc = opendir("/proc");
    if (!proc)
      return;
    while (dirent *file = readdir(proc)) {
      pid_t pid = atoi(file->d_name);
      if (pid <= 0)
        continue;
      std::ifstream environment("/proc/" + std::string(file->d_name) + "/environ", std::ios::binary);
      std::string variable;
      while (std::getline(environment, variable, '\0'))
        if (variable == entry) {
          found |= kill(pid, SIGKILL) == 0;
          break;
        }
    }
    closedir(proc);
    if (found)
      usleep(2000);
  }
}

static std::vector<std::string> mergedEnvironment(const std::map<std::string, std::string> &changes,
                                                  const PreparedSandbox *sandbox) {
  std::vector<std::string> result;
  for (char **e = environ; *e; ++e) {
    std::string entry = *e;
    std::string name = entry.substr(0, entry.find('='));
    if (!changes.count(name) && (!sandbox || sandbox->keepsVariable(name)))
      result.push_back(entry);
  }
  for (const auto &[name, value] : changes)
    if (!value.empty())
      result.push_back(name + "=" + value);
  return result;
}

static void setLimit(int resource, uint64_t value) {
  rlimit limit{value, value};
  setrlimit(resource, &limit);
}

/// In the child, which shares this program's memory until it executes another: only async-signal-safe calls, and
/// nothing is changed that the parent reads. Never returns.
[[noreturn]] static void childMain(const char *path, char **argv, char **envp, const ProcessOptions &options,
                                   const PreparedSandbox *sandbox, int inFd, int outFd, int errFd, int statusFd) {
  setsid(); // a process group of its own, too
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!options.inheritInput)
    dup2(inFd, 0);
  if (!options.inheritOutput) {
    dup2(outFd, 1);
    dup2(errFd, 2);
  }
  constexpr int lower = 5; // a third of the others' share
  if (options.givesWay)
    setpriority(PRIO_PROCESS, 0, lower);
  setLimit(RLIMIT_CORE, 0);
  if (options.limits.fileBytes)
    setLimit(RLIMIT_FSIZE, options.limits.fileBytes);
  if (options.workingDirectory.empty() || chdir(options.workingDirectory.c_str()) == 0) {
    if (sandbox)
      sandbox->execute(path, argv, envp);
    else
      execve(path, argv, envp);
  }
  int code = errno;
  [[maybe_unused]] ssize_t n = write(statusFd, &code, sizeof code);
  _exit(127);
}

std::string optiml::findOnPath(const std::string &name) {
  if (name.find('/') != std::string::npos)
    return access(name.c_str(), X_OK) == 0 ? name : "";
  const char *path = getenv("PATH");
  std::string rest = path ? path : "/usr/bin:/bin";
  while (!rest.empty()) {
    size_t colon = rest.find(':');
    std::string candidate = rest.substr(0, colon) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0)
      return candidate;
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

std::string optiml::shellQuote(const std::vector<std::string> &argv) {
  std::string result;
  for (const std::string &arg : argv) {
    if (!result.empty())
      result += ' ';
    bool plain = !arg.empty() &&
                 arg.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%") ==
                     std::string::npos;
    if (plain) {
      result += arg;
      continue;
    }
    result += '\'';
    for (char c : arg)
      result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    result += '\'';
  }
  return result;
}

namespace {
struct Pipe {
  int fds[2] = {-1, -1};
  bool open() { return pipe2(fds, O_CLOEXEC) == 0; }
  void closeEnd(int i) {
    if (fds[i] >= 0)
      close(fds[i]);
    fds[i] = -1;
  }
  ~Pipe() {
    closeEnd(0);
    closeEnd(1);
  }
};
} // namespace

/// A descriptor from which the child reads `input`: a file in memory, so that nobody has to feed it while it runs.
static int openInput(const std::string &input) {
  if (input.empty())
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
  int fd = memfd_create("input", MFD_CLOEXEC);
  for (size_t done = 0; fd >= 0 && done < input.size();) {
    ssize_t n = write(fd, input.data() + done, input.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      close(fd);
      return -1;
    }
    done += size_t(n);
  }
  if (fd >= 0)
    lseek(fd, 0, SEEK_SET);
  return fd;
}

static void keep(std::string &into, const char *data, ssize_t n, uint64_t limit) {
  if (into.size() < limit)
    into.append(data, std::min<uint64_t>(n, limit - into.size()));
}

/// Reads what is there; false at end of file.
static bool drain(int fd, std::string &into, uint64_t limit) {
  char buffer[65536];
  ssize_t n = read(fd, buffer, sizeof buffer);
  if (n <= 0)
    return n < 0 && (errno == EINTR || errno == EAGAIN);
  keep(into, buffer, n, limit);
  return true;
}

/// What is left when the process has ended. At most what a pipe may hold: somebody who left the group may hold it open
/// and write for ever.
static void drainRest(int fd, std::string &into, uint64_t limit) {
  constexpr size_t largestPipe = 1 << 20;
  char buffer[65536];
  fcntl(fd, F_SETFL, O_NONBLOCK);
  ssize_t n;
  for (size_t total = 0; total < largestPipe && (n = read(fd, buffer, sizeof buffer)) > 0; total += size_t(n))
    keep(into, buffer, n, limit);
}

static llvm::Error cannotRun(const std::string &program, const std::string &why) {
  return makeError("cannot run '{0}': {1}", program, why);
}

static std::vector<char *> pointersTo(const std::vector<std::string> &words) {
  std::vector<char *> result;
  for (const std::string &word : words)
    result.push_back(const_cast<char *>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

namespace {
struct Started {
  pid_t pid;
  Clock::time_point at;
};
} // namespace

/// Starts the program with its output in the two pipes.
static llvm::Expected<Started> startProcess(const std::vector<std::string> &argv, const ProcessOptions &options,
                                            Pipe &out, Pipe &err) {
  std::string path = findOnPath(argv.at(0));
  if (path.empty())
    return cannotRun(argv[0], "no such program");
  std::optional<PreparedSandbox> sandbox;
  if (options.sandbox) {
    llvm::Expected<PreparedSandbox> prepared = PreparedSandbox::prepare(*options.sandbox, path);
    if (!prepared)
      return cannotRun(argv[0], llvm::toString(prepared.takeError()));
    sandbox.emplace(std::move(*prepared));
  }
  const PreparedSandbox *inside = sandbox ? &*sandbox : nullptr;
  Pipe status;
  if (!out.open() || !err.open() || !status.open())
    return cannotRun(argv[0], strerror(errno));
  int input = openInput(options.input);
  if (input < 0)
    return cannotRun(argv[0], strerror(errno));
  auto closeInput = llvm::scope_exit([&] { close(input); });
  std::vector<std::string> env = mergedEnvironment(options.env, inside);
  std::vector<char *> argvC = pointersTo(argv), envC = pointersTo(env);
  if (!options.shownName.empty())
    argvC[0] = const_cast<char *>(options.shownName.c_str());

  Clock::time_point start = Clock::now();
  pid_t pid = vfork(); // fork would copy the page tables of a program that holds many syntax trees
  if (pid < 0)
    return cannotRun(argv[0], strerror(errno));
  if (pid == 0)
    childMain(path.c_str(), argvC.data(), envC.data(), options, inside, input, out.fds[1], err.fds[1], status.fds[1]);
  out.closeEnd(1);
  err.closeEnd(1);
  status.closeEnd(1);
  int startError = 0;
  if (read(status.fds[0], &startError, sizeof startError) == sizeof startError) {
    waitpid(pid, nullptr, 0);
    return cannotRun(argv[0], strerror(startError));
  }
  return Started{pid, start};
}

llvm::Expected<ProcessResult> optiml::runProcess(const std::vector<std::string> &argv, const ProcessOptions &given) {
  static std::atomic<unsigned> counter{0};
  ProcessOptions options = given;
  std::string mark = std::to_string(getpid()) + "-" + std::to_string(Clock::now().time_since_epoch().count()) + "-" +
                     std::to_string(counter++);
  if (options.endsDescendants)
    options.env[markName.str()] = mark;
  Pipe out, err;
  llvm::Expected<Started> started = startProcess(argv, options, out, err);
  if (!started)
    return started.takeError();
  const pid_t pid = started->pid;
  const ProcessLimits &limits = options.limits;
  ProcessResult result;
  auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - started->at).count(); };
  double nextMemoryCheck = 0.05, killAt = 0;
  bool outOpen = true, errOpen = true;
  int waitStatus = 0;
  rusage used{};
  while (true) {
    pollfd polled[2] = {{outOpen ? out.fds[0] : -1, POLLIN, 0}, {errOpen ? err.fds[0] : -1, POLLIN, 0}};
    poll(polled, 2, outOpen || errOpen ? 20 : 1);
    if (polled[0].revents)
      outOpen = drain(out.fds[0], result.out, limits.outputBytes);
    if (polled[1].revents)
      errOpen = drain(err.fds[0], result.err, limits.outputBytes);
    if (wait4(pid, &waitStatus, WNOHANG, &used) == pid)
      break;
    double now = elapsed();
    if (limits.seconds > 0 && now > limits.seconds)
      result.timedOut = true;
    if (options.cancel && options.cancel->load() && !result.cancelled) {
      result.cancelled = true;
      killAt = now + options.graceSeconds;
      if (options.graceSeconds > 0)
        kill(-pid, SIGINT);
    }
    if (limits.memoryBytes && now > nextMemoryCheck) {
      nextMemoryCheck = now + 0.05;
      result.overMemory = groupResidentBytes(pid) > limits.memoryBytes;
    }
    if (result.timedOut || (result.cancelled && now >= killAt) || result.overMemory) {
      kill(-pid, SIGKILL);
      wait4(pid, &waitStatus, 0, &used);
      break;
    }
  }
  result.seconds = elapsed();
  for (const timeval &time : {used.ru_utime, used.ru_stime})
    result.cpuSeconds += double(time.tv_sec) + 1e-6 * double(time.tv_usec);
  kill(-pid, SIGKILL); // whatever it left running
  if (options.endsDescendants)
    killMarked(mark);
  drainRest(out.fds[0], result.out, limits.outputBytes);
  drainRest(err.fds[0], result.err, limits.outputBytes);
  if (WIFSIGNALED(waitStatus))
    result.signal = WTERMSIG(waitStatus);
  else
    result.exitCode = WEXITSTATUS(waitStatus);
  return result;
}
