// A daemon that the program leaves behind, in a session of its own, is ended with it.
// REQUIRES: optiml-run
// RUN: rm -f %t.pid && optiml-run %s -- %t.pid | FileCheck %s
// RUN: not kill -0 `cat %t.pid`
// CHECK: left behind
#include <cstdio>
#include <unistd.h>

__global__ void nothing() {}

int main(int, char **argv) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0)
      _exit(0);
    FILE *file = fopen(argv[1], "w");
    fprintf(file, "%d\n", int(getpid()));
    fclose(file);
    sleep(60);
    _exit(0);
  }
  while (access(argv[1], R_OK) != 0)
    usleep(1000);
  usleep(20000);
  nothing<<<1, 1>>>();
  cudaDeviceSynchronize();
  printf("left behind\n");
}
