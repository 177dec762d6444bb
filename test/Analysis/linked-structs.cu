// Structures that point to their own kind, and to one another: lists, trees, graphs.
// RUN: %opt --passes='block-shape[sums]{x=64,y=1};block-shape[depths]{x=64,y=1}' %s | FileCheck %s
// RUN: optiml-opt --emit --passes='block-shape[sums]{x=64,y=1};block-shape[depths]{x=64,y=1}' %s > %t.cu
// RUN: %nvcc -arch=sm_90 -c %t.cu -o %t.o
// RUN: %if verify %{ optiml-run --coverage=off --verify=%t.cu %s -- 300 | %check=SAME %}
// SAME: the same results
#include <cstdio>
#include <cstdlib>

struct Node {
  int value;
  Node *next;
};
struct Child;
struct Parent {
  Child *child;
  int depth;
};
struct Child {
  Parent *parent;
};

// CHECK: sums_optiml
// CHECK: for (Node *p = heads[i]; p; p = p->next) {
__global__ void sums(Node **heads, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int s = 0;
    for (Node *p = heads[i]; p; p = p->next)
      s += p->value;
    out[i] = s;
  }
}

// CHECK: depths_optiml
__global__ void depths(Parent *all, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Parent own = all[i];
    out[i] = own.depth + (own.child ? own.child->parent->depth : 0);
  }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 300;
  Node *nodes, **heads;
  Parent *parents;
  Child *children;
  int *out;
  cudaMallocManaged(&nodes, n * sizeof(Node));
  cudaMallocManaged(&heads, n * sizeof(Node *));
  cudaMallocManaged(&parents, n * sizeof(Parent));
  cudaMallocManaged(&children, n * sizeof(Child));
  cudaMallocManaged(&out, 2 * n * sizeof(int));
  for (int i = 0; i < n; ++i) {
    nodes[i] = {i, i % 7 && i + 1 < n ? &nodes[i + 1] : nullptr};
    heads[i] = &nodes[i];
    children[i] = {&parents[(i * 31 + 7) % n]};
    parents[i] = {i % 3 ? &children[i] : nullptr, i % 11};
  }
  sums<<<(n + 127) / 128, 128>>>(heads, out, n);
  depths<<<(n + 127) / 128, 128>>>(parents, out + n, n);
  cudaDeviceSynchronize();
  unsigned h = 0;
  for (int i = 0; i < 2 * n; ++i)
    h = h * 31 + out[i];
  printf("%u\n", h);
}
