//===- SandboxProbe.cpp - does what its argument says ---------------------===//
//
// For the tests of the sandbox. Exit code 0: it could; 1: it could not.
//
//===----------------------------------------------------------------------===//
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char **environ;

static int writeTo(const char *path) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  return fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1;
}

int main(int argc, char **argv) {
  std::string what = argc > 1 ? argv[1] : "";
  const char *operand = argc > 2 ? argv[2] : "";
  if (what == "compute") {
    double sum = 0;
    std::thread worker([&] {
      for (int i = 1; i < 1000; ++i)
        sum += 1.0 / i;
    });
    worker.join();
    char line[64] = "";
    if (fgets(line, sizeof line, stdin))
      printf("read %s", line);
    printf("%.3f\n", sum);
    return 0;
  }
  if (what == "socket")
    return socket(AF_INET, SOCK_STREAM, 0) < 0;
  if (what == "io_uring")
    return syscall(SYS_io_uring_setup, 8, nullptr) < 0;
  if (what == "fork") {
    for (int i = 0; i < 100; ++i)
      if (fork() == 0)
        pause();
    return 0;
  }
  if (what == "exec") {
    execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
    return 1;
  }
  if (what == "system")
    return system("true");
  if (what == "kill")
    return kill(getppid(), 0) != 0;
  if (what == "signal") // of another process, by the call that abort uses
    return syscall(SYS_tgkill, getppid(), getppid(), 0) != 0;
  if (what == "abort")
    abort();
  if (what == "environment") {
    for (char **e = environ; *e; ++e)
      puts(*e);
    return 0;
  }
  if (what == "descriptor")
    return fcntl(atoi(operand), F_GETFD) < 0;
  if (what == "read") {
    FILE *file = fopen(operand, "r");
    return !file || fgetc(file) == EOF;
  }
  if (what == "write")
    return writeTo(operand);
  fprintf(stderr, "what is '%s'?\n", what.c_str());
  return 2;
}
