// A server: the sum of the values in a CSV file, clipped to [0, 1], plus Laplace noise.
// Run: g++ -O2 -o noisy_sum noisy_sum.cpp && ./noisy_sum SCALE
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <random>

int main(int, char** arguments) {
    const char* request = "{\"data\": \"%4095[^\"]\", \"draws\": %ld, \"seed\": %llu}";
    for (std::string line, row; std::getline(std::cin, line); std::fflush(stdout)) {
        char path[4096];
        long draws;
        unsigned long long seed;
        if (std::sscanf(line.c_str(), request, path, &draws, &seed) != 3) {
            std::puts("{\"error\": \"the request is not understood\"}");
            continue;
        }
        double sum = 0;
        std::ifstream file(path);
        std::getline(file, row);
        while (std::getline(file, row))
            sum += std::clamp(std::stod(row.substr(row.find(',') + 1)), 0.0, 1.0);
        std::mt19937_64 generator(seed);
        std::exponential_distribution<double> noise(1 / std::stod(arguments[1]));
        for (long i = 0; i < draws; ++i)
            std::printf("%s%.17g", i ? ", " : "{\"draws\": [", sum + noise(generator) - noise(generator));
        std::puts("]}");
    }
}
