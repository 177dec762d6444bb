//===- LineProcess.cpp - a program that answers line by line --------------===//
#include "optiml/Support/LineProcess.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace optiml;
using Clock = std::chrono::steady_clock;

extern char **environ;

static constexpr size_t longestLine = 64 << 20, keptErrors = 4096;

llvm::Expected<std::unique_ptr<LineProcess>> LineProcess::start(const std::vector<std::string> &argv) {
  std::string path = findOnPath(argv.at(0));
  if (path.empty())
    return makeError("cannot run '{0}': no such program", argv[0]);
  // A socket for the input, so that writing to a process that is gone is an error and no signal.
  int input[2], output[2], errors[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0)
    return makeError("cannot run '{0}': {1}", argv[0], strerror(errno));
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
    return makeError("cannot run '{0}': {1}", argv[0], strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[1], 0);
  posix_spawn_file_actions_adddup2(&actions, output[1], 1);
  posix_spawn_file_actions_adddup2(&actions, errors[1], 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char *> words;
  for (const std::string &word : argv)
    words.push_back(const_cast<char *>(word.c_str()));
  words.push_back(nullptr);
  std::unique_ptr<LineProcess> p(new LineProcess);
  pid_t pid = -1;
  int code = posix_spawn(&pid, path.c_str(), &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  for (int fd : {input[1], output[1], errors[1]})
    close(fd);
  p->in = input[0];
  p->out = output[0];
  p->err = errors[0];
  fcntl(p->err, F_SETFL, O_NONBLOCK);
  if (code)
    return makeError("cannot run '{0}': {1}", argv[0], strerror(code));
  p->process = pid;
  return p;
}

LineProcess::~LineProcess() {
  kill();
  for (int fd : {in, out, err})
    if (fd >= 0)
      close(fd);
}

void LineProcess::kill() {
  if (process < 0)
    return;
  // A process that was asked nothing more ends by itself when its input ends; this is for all others.
  ::kill(-process, SIGKILL);
  ::kill(process, SIGKILL);
  waitpid(process, &status, 0);
  readErrors();
  process = -1;
}

void LineProcess::readErrors() {
  char text[4096];
  for (ssize_t n; (n = read(err, text, sizeof text)) > 0;) {
    errors.append(text, size_t(n));
    if (errors.size() > keptErrors)
      errors.erase(0, errors.size() - keptErrors);
  }
}

bool LineProcess::send(const std::string &text) {
  std::string line = text + "\n";
  for (size_t done = 0; done < line.size();) {
    ssize_t n = ::send(in, line.data() + done, line.size() - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    done += size_t(n);
  }
  return true;
}

LineProcess::Answer LineProcess::receive(std::string &line, double seconds, const std::atomic<bool> *cancel) {
  auto begin = Clock::now();
  while (true) {
    if (size_t end = buffered.find('\n'); end != std::string::npos) {
      line = buffered.substr(0, end);
      buffered.erase(0, end + 1);
      return Answer::Line;
    }
    double left = seconds - std::chrono::duration<double>(Clock::now() - begin).count();
    if (cancel && *cancel)
      return Answer::Cancelled;
    if (left <= 0)
      return Answer::TimedOut;
    pollfd polled[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
    poll(polled, 2, int(std::min(left * 1000 + 1, 50.0)));
    if (polled[1].revents & POLLIN)
      readErrors();
    if (!(polled[0].revents & (POLLIN | POLLHUP)))
      continue;
    char text[65536];
    ssize_t n = read(out, text, sizeof text);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (n <= 0 || buffered.size() > longestLine) {
      // Give it a moment to end by itself, so that describe() can tell how it did.
      bool ended = false;
      for (int i = 0; i < 100 && !(ended = process < 0 || waitpid(process, &status, WNOHANG) != 0); ++i)
        usleep(10000);
      if (!ended)
        kill();
      readErrors();
      process = -1;
      return Answer::Ended;
    }
    buffered.append(text, size_t(n));
  }
}

std::string LineProcess::describe() {
  std::string text =
      WIFSIGNALED(status)
          ? llvm::formatv("killed by signal {0} ({1})", WTERMSIG(status), strsignal(WTERMSIG(status))).str()
          : llvm::formatv("exit code {0}", WEXITSTATUS(status)).str();
  llvm::StringRef said = llvm::StringRef(errors).trim();
  if (!said.empty())
    text += ": " + said.substr(said.rfind('\n') + 1).str(); // npos + 1 is the beginning
  return text;
}
