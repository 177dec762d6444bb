//===- GenerateTest.cpp - words, the library, program texts ---------------===//
#include "optiml/Generate/ProgramText.h"
#include "gtest/gtest.h"

using namespace optiml::gen;

namespace {

Understood read(const std::string &request) {
  llvm::Expected<Understood> result = understand(request, Library::builtin(), Vocabulary::builtin());
  EXPECT_TRUE(bool(result)) << request << ": " << (result ? "" : llvm::toString(result.takeError()));
  return result ? *result : Understood();
}

TEST(Words, NumbersHaveUnitsAndShapesAreOneToken) {
  std::vector<Token> tokens = Vocabulary::builtin().tokenize("2^20 1M 64k 1,000,000 4096x1024 [3, 4] 512 by 256 -1.5 2d");
  std::vector<std::vector<double>> values;
  for (const Token &token : tokens)
    values.push_back(token.values);
  EXPECT_EQ(values, (std::vector<std::vector<double>>{
                        {1048576}, {1048576}, {65536}, {1000000}, {4096, 1024}, {3, 4}, {512, 256}, {-1.5}, {}}));
}

TEST(Words, OneFormForManySpellings) {
  const Vocabulary &words = Vocabulary::builtin();
  EXPECT_EQ(words.words("normalise"), words.words("Normalization"));
  EXPECT_EQ(words.words("largest"), words.words("maximum"));
  EXPECT_EQ(words.words("neighbours"), words.words("neighbor"));
}

TEST(Words, AMistakeInTheVocabularyNamesItsLine) {
  llvm::Expected<Vocabulary> result = Vocabulary::parse("filler: a\nnonsense x: y\n");
  ASSERT_FALSE(bool(result));
  EXPECT_EQ(llvm::toString(result.takeError()), "words.txt:2: unknown kind 'nonsense'");
}

TEST(Operations, AMistakeInAFileNamesItsLine) {
  Library library;
  llvm::Error error = library.add("x.op", "op: x\ntitle: y\nsizes n: 3\n");
  ASSERT_TRUE(bool(error));
  EXPECT_EQ(llvm::toString(std::move(error)), "x.op:3: unknown key 'sizes n'");
}

TEST(Operations, EveryOneIsAProgramInEveryTypeAndChoice) {
  unsigned count = 0;
  for (const Operation &op : Library::builtin().operations()) {
    if (op.isFamily || op.isSnippet || op.isStage || op.says.empty())
      continue;
    ++count;
    for (const std::string &type : op.types) {
      Understood request;
      request.operation = &op;
      request.type = type;
      for (const Size &size : op.sizes)
        request.sizes[size.name] = size.value;
      for (const Real &real : op.reals)
        request.reals[real.name] = real.value;
      for (size_t value = 0; value < 3; ++value) {
        for (const Choice &choice : op.choices)
          request.choices[choice.name] = choice.values[std::min(value, choice.values.size() - 1)];
        llvm::Expected<std::string> text = writeProgram(request, op.name, Library::builtin());
        ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
        EXPECT_EQ(text->find("${"), std::string::npos) << op.name;
        EXPECT_EQ(text->find("@if"), std::string::npos) << op.name;
        EXPECT_EQ(text->find("SEED"), std::string::npos) << op.name;
      }
    }
  }
  EXPECT_GE(count, 100u);
}

TEST(Requests, OfReversesAndThenKeepsTheOrderOfStages) {
  Understood of = read("exp of the square of each element");
  ASSERT_EQ(of.before.size(), 2u);
  EXPECT_EQ(of.before[0].operation->name, "square");
  Understood then = read("matmul followed by bias and then GELU");
  ASSERT_EQ(then.after.size(), 2u);
  EXPECT_EQ(then.after[1].operation->name, "gelu");
}

TEST(Requests, TwoShapesOfAMatrixProductMustFit) {
  Understood request = read("multiply a 512x256 matrix by a 256x128 matrix");
  EXPECT_EQ(request.sizes["m"], 512);
  EXPECT_EQ(request.sizes["k"], 256);
  EXPECT_EQ(request.sizes["n"], 128);
  llvm::Expected<Understood> wrong =
      understand("multiply a 512x256 matrix by a 512x128 matrix", Library::builtin(), Vocabulary::builtin());
  ASSERT_FALSE(bool(wrong));
  EXPECT_NE(llvm::toString(wrong.takeError()).find("does not fit"), std::string::npos);
}

TEST(Requests, NumbersGoWhereTheyBelong) {
  struct Case {
    const char *request;
    std::map<std::string, int64_t> sizes;
  };
  for (const Case &c : std::vector<Case>{
           {"dot product (size 1<<20)", {{"n", 1048576}}},
           {"jacobi on a (512,256) grid, 10 sweeps", {{"height", 512}, {"width", 256}, {"steps", 10}}},
           {"sum of (1,000,000 floats)", {{"n", 1000000}}},
           {"7-pt stencil on a 64^3 grid", {{"depth", 64}, {"height", 64}, {"width", 64}}},
           {"exclusive scan of 2^22 ints", {{"n", 4194304}}},
           {"layernorm over the last dim, shape (32, 128, 768)", {{"rows", 4096}, {"cols", 768}}},
           {"avgpool 3x3 NHWC, batch 4, 28x20, 64 channels", {{"window", 3}, {"height", 28}, {"width", 20}, {"batch", 4}, {"channels", 64}}},
           {"find the first occurrence of 5 in an array of 1000 integers", {{"n", 1000}}},
           {"distance between every pair of points for 300 points in 3 dimensions", {{"m", 300}, {"n", 300}, {"dim", 3}}},
           {"bfs from vertex 0 of a graph with 10000 nodes and 50000 edges", {{"vertices", 10000}, {"degree", 5}}},
           {"CSR SpMV with 5000 rows", {{"rows", 5000}, {"cols", 5000}}},
           {"one step of game of life on a 9x9 board", {{"height", 9}, {"width", 9}}}}) {
    Understood understood = read(c.request);
    for (const auto &[name, value] : c.sizes)
      EXPECT_EQ(understood.sizes[name], value) << c.request << ": " << name;
  }
}

TEST(Requests, TypesInNamesAndOrdersInShort) {
  EXPECT_EQ(read("dgemm 64x64x64").type, "double");
  EXPECT_EQ(read("DAXPY of 1000 elements").type, "double");
  EXPECT_EQ(read("saxpy of 1000 doubles").type, "double");
  EXPECT_EQ(read("sort 1M floats desc").choices["order"], "descending");
  EXPECT_EQ(read("softmax(dim=-1) on a [64, 1000] tensor").choices["axis"], "row");
}

TEST(Requests, WhatIsSpelledWrongIsReadAndTold) {
  for (auto [request, operation] : {std::pair("histogramm with 128 bins", "histogram"), std::pair("sumof squares", "sum-of-squares"),
                                    std::pair("pre-fix sum", "scan"), std::pair("Euclidian distance between two vectors", "vector-distance"),
                                    std::pair("convolution2d with a 5x5 filter", "conv2d")}) {
    Understood understood = read(request);
    EXPECT_EQ(understood.operation->name, operation) << request;
  }
  EXPECT_EQ(read("histogramm with 128 bins").notes, std::vector<std::string>{"'histogramm' is read as 'histogram'"});
}

TEST(Requests, AFormulaMeansWhatHasItsValues) {
  for (auto [request, operation] :
       {std::pair("C[i][j] = sum_k A[i][k]*B[k][j]", "gemm"), std::pair("c_ij = sum_k a_ik b_kj", "gemm"), std::pair("s += x[i]*y[i]", "dot"),
        std::pair("hist[bin(x[i])] += w[i]", "weighted-histogram"), std::pair("out[idx[i]] += v[i]", "scatter-add"),
        std::pair("y[perm[i]] = x[i]", "scatter"), std::pair("out[i] = x[idx[i]]", "gather"), std::pair("p[i] = p[i-1] + x[i]", "scan"),
        std::pair("d[i][j] = min(d[i][j], d[i][k] + d[k][j])", "floyd-warshall"), std::pair("exp(x) / sum(exp(x)) for every row", "softmax"),
        std::pair("u_new[i] = u[i] + r*(u[i-1] - 2*u[i] + u[i+1])", "heat-1d"), std::pair("s[c] = sum_r A[r*C+c]", "sum-by-axis")})
    EXPECT_EQ(read(request).operation->name, operation) << request;
  struct Case {
    const char *request;
    std::vector<std::string> stages;
  };
  for (const Case &c : std::vector<Case>{{"y[i] = a*x[i] + y[i]", {"saxpy"}},
                                         {"y = 1/(1+exp(-(x*w)))", {"multiply", "sigmoid"}},
                                         {"torch.where(x > 0, x, 0.01 * x)", {"leaky-relu"}},
                                         {"c[i] = exp(-(a[i]-b[i])^2)", {"squared-difference", "negate", "exp"}},
                                         {"y = sin(x)^2", {"sin", "square"}}}) {
    std::vector<std::string> stages;
    Understood understood = read(c.request);
    for (const Stage &stage : understood.before)
      stages.push_back(stage.operation->name);
    EXPECT_EQ(stages, c.stages) << c.request;
  }
  Understood constants = read("y[i] += 3*x[i] for 1e6 doubles");
  ASSERT_EQ(constants.before.size(), 1u);
  EXPECT_EQ(constants.before[0].reals["alpha"], 3);
  EXPECT_EQ(constants.sizes["n"], 1000000);
}

TEST(Requests, WhatIsSaidBesideThePointIsNoSize) {
  EXPECT_EQ(read("sum of an array. Example: input [3, 4] output 7").sizes["n"], read("sum of an array").sizes["n"]);
  EXPECT_EQ(read("DFT in O(n^2), 500 points").sizes["n"], 500);
  EXPECT_EQ(read("relu(x[i]) for all i in 0..n-1, n = 4096").sizes["n"], 4096);
  EXPECT_EQ(read("sum of 500k floats").sizes["n"], 500000);
  EXPECT_EQ(read("sobel of a 1920x1080 image").sizes["width"], 1920);
  EXPECT_EQ(read("sobel of a 2048x1024 field").sizes["height"], 2048);
  EXPECT_EQ(read("sparse matrix-vector product with 32000 nonzeros").sizes["rows"], 2000);
}

TEST(Requests, NumbersFindWhatTheyCount) {
  EXPECT_EQ(read("DGEMM with M=N=K=1000").sizes["m"], 1000);
  EXPECT_EQ(read("maximum over a sliding window of 8 elements").sizes["window"], 8);
  EXPECT_EQ(read("distance matrix between 500 and 700 points").sizes["m"], 500);
  EXPECT_EQ(read("100 matrix products of 16x16 in one batch").sizes["batch"], 100);
  EXPECT_EQ(read("variance of a million doubles").sizes["rows"], 1);
  EXPECT_EQ(read("max pooling of a 32x32 image, window 2").sizes["window"], 2);
  EXPECT_EQ(read("batched matmul, batch 96, 128x64 by 64x32").sizes["n"], 32);
  EXPECT_EQ(read("C = A^T B^T, A is 300x400, B is 500x300").sizes["m"], 400);
  EXPECT_EQ(read("histogram of floats in [-5, 5)").reals["low"], -5);
}

TEST(Requests, ConstantsOfFormulasAreExact) {
  EXPECT_EQ(read("y[i] = 0.0625*x[i]").before.at(0).reals.at("factor"), 0.0625);
  EXPECT_EQ(shortestNumber(0.1), "0.1");
  EXPECT_EQ(shortestNumber(1e-5), "1e-05");
  EXPECT_EQ(shortestNumber(1.0 / 3), "0.3333333333333333");
}

TEST(Requests, ProductsInNotationAreProducts) {
  EXPECT_EQ(read("y = A^T x").choices["op"], "transposed");
  EXPECT_EQ(read("C = A B^T").choices["b"], "transposeb");
  EXPECT_EQ(read("Y = X W + b").after.at(0).operation->name, "bias");
  EXPECT_EQ(read("y = A x where A is sparse, CSR format").operation->name, "spmv-csr");
}

TEST(Requests, NamesOfDataAndOfMeansAreNoOperations) {
  EXPECT_EQ(read("softmax of the attention scores").operation->name, "softmax");
  EXPECT_EQ(read("nbody accelerations by direct summation").operation->name, "nbody");
  EXPECT_TRUE(read("matmul without bias").after.empty());
  EXPECT_EQ(read("scan of exon differences").before.size(), 0u);
}

TEST(Requests, StepsAreOneOperation) {
  EXPECT_EQ(read("square every entry, add each row up, take roots").operation->name, "l2-norm-by-axis");
  Understood softmax = read("for every row of a 64x100 double matrix, subtract the maximum, exponentiate, divide by the sum");
  EXPECT_EQ(softmax.operation->name, "softmax");
  EXPECT_EQ(softmax.type, "double");
  EXPECT_EQ(softmax.sizes.at("cols"), 100);
  EXPECT_EQ(read("subtract two float arrays, square, average and take the root").operation->name, "rmse");
  Understood root = read("square root of the average of 1M floats");
  EXPECT_EQ(root.operation->name, "mean");
  ASSERT_EQ(root.after.size(), 1u);
  EXPECT_EQ(root.after[0].operation->name, "sqrt");
}

TEST(Requests, ValuesOfSeveralKindsAreOneStage) {
  Understood clamp = read("anything above 1 becomes 1 and anything below -1 becomes -1, array of 1000 floats");
  ASSERT_EQ(clamp.before.size(), 1u);
  EXPECT_EQ(clamp.before[0].operation->name, "clamp");
  EXPECT_EQ(clamp.before[0].reals.at("low"), -1);
  EXPECT_EQ(clamp.sizes.at("n"), 1000);
  // The limit is told from the other numbers.
  EXPECT_EQ(read("1 where the value is above 0.25, otherwise 0").before[0].reals.at("limit"), 0.25);
}

TEST(Requests, OneOutputTellsTheScan) {
  EXPECT_EQ(read("each output is the sum of all earlier inputs").choices.at("kind"), "exclusive");
  EXPECT_EQ(read("for each position the largest value so far").operation->name, "max-scan");
}

TEST(Requests, StagesThatBelongToNothingAreRefused) {
  for (const char *request : {"sort the squares", "dot product of the squares", "transpose plus one", "for each row, divide by the largest value",
                              "sum of squares of the row sums", "multiply by the row and apply ReLU", "mean divided by the standard deviation",
                              "values above 5 become their square, the rest becomes zero", "each output is the mean of all inputs so far"}) {
    llvm::Expected<Understood> result = understand(request, Library::builtin(), Vocabulary::builtin());
    EXPECT_FALSE(bool(result)) << request << (result ? " is taken for " + result->operation->name : "");
    llvm::consumeError(result.takeError());
  }
}

TEST(Requests, WhatWouldBeSomethingElseIsRefused) {
  for (const char *request : {"sort an array of structs",
                              "number of pixels in each bin of width 10",
                              "sparse CSR matrix times a sparse matrix",
                              "bilinearly interpolate two arrays",
                              "sum of each diagonal of a matrix",
                              "length of the shortest path from source to dest",
                              "laplace transform of a signal",
                              "bfs with 10000 nodes and 50001 edges",
                              "gaussian blur 9x9",
                              "y = alpha*A*x + beta*z",
                              "out[i] = x[i+1] - x[i]",
                              "histogram equalization",
                              "sum of every other element",
                              "softmax with temperature",
                              "gaussian elimination with complete pivoting",
                              "k nearest neighbours",
                              "mean of the local maxima",
                              "sum of the values below 3",
                              "count distinct values of each row",
                              "max unpooling",
                              "geometric mean of an array"}) {
    llvm::Expected<Understood> result = understand(request, Library::builtin(), Vocabulary::builtin());
    EXPECT_FALSE(bool(result)) << request << (result ? " is taken for " + result->operation->name : "");
    llvm::consumeError(result.takeError());
  }
}

} // namespace
