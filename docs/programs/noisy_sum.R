# A server: the sum of all values, clipped to [0, 1], plus Laplace noise.
# Run: Rscript noisy_sum.R SCALE
library(jsonlite)
scale <- as.numeric(commandArgs(trailingOnly = TRUE)[1])

start <- function(seed) {
  # set.seed() takes only 31 bits. The state of L'Ecuyer's generator takes all 53.
  RNGkind("L'Ecuyer-CMRG")
  set.seed(1)
  parts <- as.integer(c(seed %/% 2^27, seed %% 2^27) + 1)
  state <- get(".Random.seed", globalenv())
  assign(".Random.seed", c(state[1], rep(parts, 3)), globalenv())
  runif(12) # the first numbers still resemble the seed
}

answer <- function(line) {
  request <- fromJSON(line)
  start(request$seed)
  total <- sum(pmin(pmax(unlist(request$data), 0), 1))
  noise <- scale * (rexp(request$draws) - rexp(request$draws))
  list(draws = I(total + noise))
}

input <- file("stdin", "r")
while (length(line <- readLines(input, n = 1)) > 0) {
  result <- tryCatch(answer(line), error = function(e) list(error = unbox(conditionMessage(e))))
  cat(toJSON(result, digits = NA), "\n", sep = "")
  flush(stdout())
}
