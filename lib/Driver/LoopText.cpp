//===- LoopText.cpp - CUDA for a loop of launches -------------------------===//
//
// The new kernels are skeletons: CUDA text in which names, the element's type and the operation are filled in.
//
// Scan: one pass (Merrill and Garland's decoupled look-back). Each block takes the next tile, scans it, and looks back at
// the sums of the tiles before it, 32 at a time, until one knows the sum of everything up to it. What another block reads
// is written before a fence and announced by an atomic after it.
//
// Sort: tiles are sorted in shared memory by a bitonic network whose comparisons all point one way, so that a tile may
// end anywhere; then runs are merged two by two, each element finding its place by a binary search in the other run.
//
//===----------------------------------------------------------------------===//
#include "LoopText.h"
#include "TimeStepText.h"
#include "llvm/ADT/StringRef.h"
#include <map>

using namespace optiml;

static const char scanKernels[] = R"(
__global__ void __launch_bounds__(256) @P_scan(const @T *in, @T *out, int n, unsigned *control, @T *sums, @T *prefixes) {
  // control[0]: the next tile; control[1 + tile]: 1 when its sum is known, 2 when the sum of all up to it is.
  constexpr int perThread = 16, tileSize = 256 * perThread;
  constexpr unsigned all = 0xffffffffu;
  __shared__ @T tile[tileSize + tileSize / 16]; // a gap after each 16 elements keeps banks apart
  __shared__ @T warpTotals[8];
  __shared__ @T before;
  __shared__ int taken;
  const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
  if (thread == 0)
    taken = (int)atomicAdd(&control[0], 1u);
  __syncthreads();
  const int self = taken, base = self * tileSize;
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    int at = k * 256 + thread;
    tile[at + at / 16] = at < n - base ? in[base + at] : @T();
  }
  __syncthreads();

  @T own[perThread];
  own[0] = tile[17 * thread];
#pragma unroll
  for (int k = 1; k < perThread; ++k) {
    @T a = own[k - 1], b = tile[17 * thread + k];
    own[k] = @OP;
  }
  @T upTo = own[perThread - 1];
  for (int step = 1; step < 32; step *= 2) {
    @T a = __shfl_up_sync(all, upTo, step), b = upTo;
    if (lane >= step)
      upTo = @OP;
  }
  @T lower = __shfl_up_sync(all, upTo, 1);
  if (lane == 31)
    warpTotals[warp] = upTo;
  __syncthreads();

  if (warp == 0) {
    @T total = warpTotals[0];
    for (int w = 1; w < 8; ++w) {
      @T a = total, b = warpTotals[w];
      total = @OP;
    }
    if (self == 0) {
      if (lane == 0) {
        *(volatile @T *)&prefixes[0] = total;
        __threadfence();
        atomicExch(&control[1], 2u);
      }
    } else {
      if (lane == 0) {
        *(volatile @T *)&sums[self] = total;
        __threadfence();
        atomicExch(&control[1 + self], 1u);
      }
      @T prefix = @T();
      bool first = true;
      for (int look = self - 1;; look -= 32) {
        const int other = look - lane;
        unsigned state = 0;
        if (other >= 0)
          do
            state = *(volatile unsigned *)&control[1 + other];
          while (state == 0);
        __threadfence();
        @T value = @T();
        if (other >= 0)
          value = state == 2 ? *(volatile @T *)&prefixes[other] : *(volatile @T *)&sums[other];
        const unsigned known = __ballot_sync(all, state == 2);
        const int last = known ? __ffs(known) - 1 : 31; // tile 0 is known, so that no lane beyond it counts
        for (int step = 1; step < 32; step *= 2) {
          @T a = __shfl_down_sync(all, value, step), b = value;
          if (lane + step <= last)
            value = @OP;
        }
        @T a = __shfl_sync(all, value, 0), b = prefix;
        prefix = first ? a : @OP;
        first = false;
        if (known)
          break;
      }
      if (lane == 0) {
        @T a = prefix, b = total;
        *(volatile @T *)&prefixes[self] = @OP;
        __threadfence();
        atomicExch(&control[1 + self], 2u);
        before = prefix;
      }
    }
  }
  __syncthreads();

  bool some = self > 0;
  @T sum = some ? before : @T();
  for (int w = 0; w < warp; ++w) {
    @T a = sum, b = warpTotals[w];
    sum = some ? @OP : b;
    some = true;
  }
  if (lane > 0) {
    @T a = sum, b = lower;
    sum = some ? @OP : b;
    some = true;
  }
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    @T a = sum, b = own[k];
    tile[17 * thread + k] = some ? @OP : b;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < perThread; ++k) {
    int at = k * 256 + thread;
    if (at < n - base)
      out[base + at] = tile[at + at / 16];
  }
}
)";

/// What the buffer holds that the last step read: sums over `distance` elements.
static const char scanBeforeKernel[] = R"(
__global__ void @P_before(const @T *sums, @T *out, int n, int distance) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n)
    out[i] = i >= distance ? @T(@UNDO) : sums[i];
}
)";

static const char sortKernels[] = R"(
__global__ void __launch_bounds__(1024) @P_tiles(const @T *from, @T *to, int n) {
  __shared__ @T tile[2048];
  const int thread = threadIdx.x, base = blockIdx.x * 2048, count = min(2048, n - base);
  for (int at = thread; at < count; at += 1024)
    tile[at] = from[base + at];
  for (int run = 2; run / 2 < count; run *= 2) {
    for (int step = run / 2; step > 0; step /= 2) {
      int low = thread / step * 2 * step + thread % step;
      int high = step == run / 2 ? low / run * run + run - 1 - low % run : low + step; // first against the mirror image
      __syncthreads();
      if (high < count && tile[high] < tile[low]) {
        @T t = tile[low];
        tile[low] = tile[high];
        tile[high] = t;
      }
    }
  }
  __syncthreads();
  for (int at = thread; at < count; at += 1024)
    to[base + at] = tile[at];
}

__global__ void __launch_bounds__(256) @P_merge(const @T *from, @T *to, int n, int run) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= n)
    return;
  const int start = i / (2 * run) * (2 * run), middle = min(start + run, n), end = min(middle + run, n);
  const @T key = from[i];
  const bool left = i < middle;
  const int other = left ? middle : start;
  int low = other, high = left ? end : middle;
  while (low < high) { // how many of the other run come first
    int at = low + (high - low) / 2;
    if (left ? from[at] < key : !(key < from[at]))
      low = at + 1;
    else
      high = at;
  }
  to[start + (i - (left ? start : middle)) + (low - other)] = key;
}
)";

static const char loopClass[] = R"(
// OptiML: @WHAT.
// The launches of a loop on the host are put off to its end. Those that make up the whole algorithm are replaced by it,
// all others run as they are.
class @LOOP {
public:
@CONSTRUCTOR  ~@LOOP() {
    if (!launches.empty() && !(path().enabled() && replaced()))
      runAll();
  }
  void add(dim3 launchGrid, dim3 launchBlock, size_t launchShared, cudaStream_t launchStream@PARAMETERS) {
    Launch launch{launchGrid, launchBlock, launchShared, launchStream@ARGUMENTS};
    if (!waiting) {
      run(launch);
      return;
    }
    launches.push_back(launch);
    waiting = path().enabled() && launches.size() < (1u << 22) && continues();
    if (!waiting)
      runAll();
  }
@ADDCOPY
private:
  struct Launch {
    dim3 launchGrid, launchBlock;
    size_t launchShared;
    cudaStream_t launchStream;
@FIELDS  };
  std::vector<Launch> launches;
@COPIES  bool waiting = true;

  /// The launches as they are, in their order.
  void runAll() {
    for (size_t i = 0; i < launches.size(); ++i) {
      run(launches[i]);
@RUNCOPY    }
    launches.clear();
@CLEARCOPIES  }

  static @HELPER &path() {
    static @HELPER counts("@KERNEL");
    return counts;
  }
  static void run(const Launch &launch) {
    @RUN
  }
  static long long threads(const Launch &launch) { return (long long)launch.launchGrid.x * launch.launchBlock.x; }
  static bool inARow(const Launch &launch) {
    return launch.launchGrid.y == 1 && launch.launchGrid.z == 1 && launch.launchBlock.y == 1 && launch.launchBlock.z == 1 &&
           launch.launchBlock.x <= 1024 && threads(launch) <= (1ll << 30);
  }
@MEMBERS};
)";

static const char scanMembers[] = R"(  bool dead = false; ///< nobody looks at the buffer that the last step reads

  /// What a launch does: over n elements, with elements this far apart.
  static bool understood(const Launch &launch, long long &n, long long &distance) {
@FORMS  }
  /// Whether the newest launch is the next step of the scan that the ones before it began.
  bool continues() const {
    const Launch &launch = launches.back();
    long long n = 0, distance = 0, n0 = 0, distance0 = 0;
    if (!understood(launch, n, distance) || !inARow(launch) || threads(launch) < n || n < 2 || n > (1ll << 30) || distance >= n)
      return false;
    if (launch.@IN < launch.@OUT ? launch.@OUT - launch.@IN < n : launch.@IN - launch.@OUT < n)
      return false; // the buffers overlap
    if (launches.size() == 1)
      return distance == 1;
    const Launch &last = launches[launches.size() - 2];
    return understood(last, n0, distance0) && n == n0 && distance == 2 * distance0 && launch.@IN == last.@OUT &&
           launch.@OUT == last.@IN && launch.launchStream == last.launchStream;
  }
  bool replaced() {
    const Launch &first = launches.front(), &last = launches.back();
    long long n = 0, distance = 0;
    if (@DEADlaunches.size() < 2 || !understood(last, n, distance) || 2 * distance < n)
      return false;
    cudaStream_t stream = last.launchStream;
    const unsigned tiles = unsigned((n + 4095) / 4096);
    const size_t control = (tiles + 1 + 63) / 64 * 64 * sizeof(unsigned);
    char *memory = nullptr;
    if (cudaMallocAsync((void **)&memory, control + 2 * tiles * sizeof(@T), stream) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    @T *sums = (@T *)(memory + control);
    cudaMemsetAsync(memory, 0, control, stream);
    @P_scan<<<tiles, 256, 0, stream>>>(first.@IN, last.@OUT, int(n), (unsigned *)memory, sums, sums + tiles);
    @BEFORE
    cudaFreeAsync(memory, stream);
    path().count(true);
    return true;
  }
)";

static const char sortMembers[] = R"(
  /// What a launch does: orders so many pairs, the first of which begins at element 0 or 1.
  static bool understood(const Launch &launch, long long &pairs, long long &first) {
@FORMS  }
  /// Whether the newest launch orders the pairs that the one before it left out.
  bool continues() const {
    const Launch &launch = launches.back();
    long long pairs = 0, first = 0, pairs0 = 0, first0 = 0;
    if (!understood(launch, pairs, first) || !inARow(launch) || pairs < 0 || (first & ~1ll) != 0)
      return false;
    if (launches.size() == 1)
      return true;
    const Launch &last = launches[launches.size() - 2];
    if (!understood(last, pairs0, first0) || first == first0 || launch.@OUT != last.@OUT || launch.launchStream != last.launchStream)
      return false;
    // Pairs from 0 and from 1 on belong to the same elements.
    long long more = first == 0 ? pairs - pairs0 : pairs0 - pairs;
    if (more != 0 && more != 1)
      return false;
    return launches.size() < 3 || understoodAlike(launch, launches[launches.size() - 3]);
  }
  static bool understoodAlike(const Launch &launch, const Launch &other) {
    long long pairs = 0, first = 0, otherPairs = 0, otherFirst = 0;
    return understood(launch, pairs, first) && understood(other, otherPairs, otherFirst) && pairs == otherPairs &&
           first == otherFirst;
  }
  bool replaced() {
    if (launches.size() < 4)
      return false;
    long long pairs = 0, first = 0, pairs0 = 0, first0 = 0;
    understood(launches[0], pairs0, first0);
    understood(launches[1], pairs, first);
    const long long n = pairs + pairs0 + 1;
    // n phases sort n elements, whatever they are.
    if ((long long)launches.size() < n || n > (1ll << 29))
      return false;
    cudaStream_t stream = launches[0].launchStream;
    @T *data = launches[0].@OUT, *other = nullptr;
    int levels = 0;
    for (long long run = 2048; run < n; run *= 2)
      ++levels;
    if (levels && cudaMallocAsync((void **)&other, n * sizeof(@T), stream) != cudaSuccess) {
      (void)cudaGetLastError();
      return false;
    }
    @T *from = levels % 2 ? other : data, *to = levels % 2 ? data : other; // so that the last level ends in `data`
    @P_tiles<<<unsigned((n + 2047) / 2048), 1024, 0, stream>>>(data, from, int(n));
    for (long long run = 2048; run < n; run *= 2) {
      @P_merge<<<unsigned((n + 255) / 256), 256, 0, stream>>>(from, to, int(n), int(run));
      @T *t = from;
      from = to;
      to = t;
    }
    if (other)
      cudaFreeAsync(other, stream);
    path().count(true);
    return true;
  }
)";

std::string optiml::filled(llvm::StringRef text, const std::map<std::string, std::string> &values) {
  std::string result;
  while (!text.empty()) {
    auto [before, rest] = text.split('@');
    result += before;
    const std::string *name = nullptr;
    for (const auto &[candidate, value] : values)
      if (rest.starts_with(candidate) && (!name || candidate.size() > name->size()))
        name = &candidate;
    if (name) {
      result += values.at(*name);
      rest = rest.drop_front(name->size());
    }
    text = rest;
  }
  return result;
}

/// Tests which form a launch has.
static std::string formTests(const LaunchIdiom &idiom) {
  std::string text;
  bool scan = idiom.kind == LaunchIdiom::Kind::ScanStep;
  for (const LaunchIdiom::Form &form : idiom.forms) {
    std::string when;
    for (const std::string &condition : form.when)
      when += (when.empty() ? "" : " && ") + condition;
    if (!when.empty())
      text += "    if (" + when + ") {\n";
    if (scan)
      text += "    n = " + form.count + ";\n    distance = " + form.distance + ";\n    return distance > 0;\n";
    else
      text += "    first = " + form.first + ";\n    pairs = " + form.count + ";\n    return threads(launch) >= " +
              (form.threadPerElement ? "2 * pairs + first - 1" : "pairs") + ";\n";
    if (when.empty())
      return text; // the only form
    text += "    }\n";
  }
  return text + "    return false;\n";
}

/// Members for a parameter list.
static std::string fields(const std::string &parameters) {
  std::string result, item;
  int depth = 0;
  for (char c : parameters + ",") {
    depth += c == '<' || c == '(' || c == '[' ? 1 : c == '>' || c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      if (!llvm::StringRef(item).trim().empty())
        result += "    " + llvm::StringRef(item).trim().str() + ";\n";
      item.clear();
    } else {
      item += c;
    }
  }
  return result;
}

static std::string arguments(const std::vector<std::string> &names) {
  std::string result;
  for (const std::string &name : names)
    result += ", " + name;
  return result;
}

/// Launches the kernel as it is, or through its dispatcher.
static std::string runText(const std::string &dispatcher, const std::string &callee, const std::vector<std::string> &names) {
  std::string config = "launch.launchGrid, launch.launchBlock, launch.launchShared, launch.launchStream", list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + ("launch." + name);
  if (!dispatcher.empty())
    return dispatcher + "(" + config + (list.empty() ? "" : ", " + list) + ");";
  return "path().count(false);\n    " + callee + "<<<" + config + ">>>(" + list + ");";
}

std::string optiml::loopText(const LaunchIdiom &idiom, const LoopTextNames &names, const LoopCopyNames &copy) {
  bool scan = idiom.kind == LaunchIdiom::Kind::ScanStep, steps = idiom.kind == LaunchIdiom::Kind::TimeStep;
  static const std::map<std::string, std::string> operations = {
      {"+", "a + b"}, {"*", "a * b"}, {"&", "a & b"}, {"|", "a | b"}, {"^", "a ^ b"}, {"min", "b < a ? b : a"}, {"max", "a < b ? b : a"}};
  std::map<std::string, std::string> values = {{"P", names.prefix}, {"T", idiom.element}, {"LOOP", names.loop},
                                               {"HELPER", names.helper}, {"KERNEL", names.kernel},
                                               {"IN", idiom.in}, {"OUT", idiom.out}};
  std::string alias; // "unsigned int()" is no expression
  if (idiom.element.find(' ') != std::string::npos) {
    values["T"] = names.prefix + "_element";
    alias = "\ntypedef " + idiom.element + " " + values["T"] + ";\n";
  }
  // Parenthesized, so that it can be an operand.
  if (scan) // CUDA's own min and max know what to do with NaN
    values["OP"] = "(" + (idiom.isFloat && (idiom.op == "min" || idiom.op == "max") ? idiom.op + "(a, b)" : operations.at(idiom.op)) + ")";
  bool undone = !idiom.isFloat && (idiom.op == "+" || idiom.op == "^");
  values["UNDO"] = idiom.op == "^" ? "sums[i] ^ sums[i - distance]"
                                   : "(unsigned long long)sums[i] - (unsigned long long)sums[i - distance]";
  values["WHAT"] = scan ? names.kernel + " is a step of Hillis and Steele's scan"
                   : steps ? names.kernel + " is a step of a stencil in time"
                           : names.kernel + " is a phase of a sort by odd-even transposition";
  values["PARAMETERS"] = names.parameters.empty() ? "" : ",\n           " + names.parameters;
  values["ARGUMENTS"] = arguments(names.names);
  values["FIELDS"] = fields(names.parameters);
  values["RUN"] = runText(names.launch, names.callee, names.names);
  for (const char *name : {"ADDCOPY", "COPIES", "RUNCOPY", "CLEARCOPIES"})
    values[name] = "";
  if (copy.step) {
    values["COPYPARAMETERS"] = copy.parameters.empty() ? "" : ",\n               " + copy.parameters;
    values["COPYARGUMENTS"] = arguments(copy.names);
    values["COPYFIELDS"] = fields(copy.parameters);
    values["COPYRUN"] = runText(copy.launch, copy.callee, copy.names);
    values["ADDCOPY"] = filled(addCopyText, values);
    values["COPIES"] = filled(copyMembersText, values);
    values["RUNCOPY"] = "      if (i < copies.size())\n        run(copies[i]);\n";
    values["CLEARCOPIES"] = "    copies.clear();\n";
  }
  values["FORMS"] = steps ? "" : formTests(idiom);
  values["CONSTRUCTOR"] = steps && !copy.step ? timeStepUsed(*idiom.step) : "";
  if (scan)
    values["CONSTRUCTOR"] = R"(  /// After the loop: only the memory that these point to is looked at again.
  void used(std::initializer_list<const void *> pointers) {
    dead = true;
    for (const void *pointer : pointers)
      dead = dead && (launches.empty() || pointer != launches.back().@IN);
  }
)";
  values["CONSTRUCTOR"] = filled(values["CONSTRUCTOR"], values);
  values["DEAD"] = undone ? "" : "!dead || ";
  values["BEFORE"] = !undone ? "" : "if (!dead) // the other buffer, as the last step finds it\n"
                     "      " + names.prefix + "_before<<<unsigned((n + 255) / 256), 256, 0, stream>>>(last." + idiom.out +
                     ", const_cast<" + values["T"] + " *>(last." + idiom.in + "), int(n), int(distance));";
  if (steps) {
    values["MEMBERS"] = timeStepMembers(*idiom.step, idiom.tile, names, copy);
    return timeStepKernel(*idiom.step, idiom.tile, names.prefix) + filled(loopClass, values);
  }
  values["MEMBERS"] = filled(scan ? scanMembers : sortMembers, values);
  std::string kernels = scan ? std::string(scanKernels) + (undone ? scanBeforeKernel : "") : sortKernels;
  return alias + filled(kernels, values) + filled(loopClass, values);
}
