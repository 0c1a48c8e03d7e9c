// dlib's linear RankSVM on data that svm.py wrote: CPU seconds, then the weights.
//   svm_peer FILE C EPSILON
// FILE: int64 queries, features; then for each query int64 relevant, others, and their rows (float64).
#include <dlib/svm_threaded.h>
#include <ctime>
#include <cstdint>
#include <fstream>
#include <iomanip>
#include <iostream>

typedef dlib::matrix<double, 0, 1> sample;

static std::int64_t whole(std::istream& in) {
  std::int64_t value;
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

int main(int, char** arguments) {
  std::ifstream in(arguments[1], std::ios::binary);
  const std::int64_t queries = whole(in), features = whole(in);
  std::vector<dlib::ranking_pair<sample>> data(queries);
  for (auto& query : data) {
    const std::int64_t relevant = whole(in), others = whole(in);
    for (std::int64_t i = 0; i < relevant + others; ++i) {
      sample row(features);
      in.read(reinterpret_cast<char*>(&row(0)), features * sizeof(double));
      (i < relevant ? query.relevant : query.nonrelevant).push_back(row);
    }
  }
  dlib::svm_rank_trainer<dlib::linear_kernel<sample>> trainer;
  trainer.set_c(std::stod(arguments[2]));
  trainer.set_epsilon(std::stod(arguments[3]));
  const std::clock_t start = std::clock();
  const auto found = trainer.train(data);
  std::cout << std::setprecision(17) << double(std::clock() - start) / CLOCKS_PER_SEC << "\n";
  for (long i = 0; i < features; ++i) std::cout << found.basis_vectors(0)(i) << "\n";
}
