library(stats)

threshold <- 0.05

#' Mean without the extremes.
#' @param x numbers
trimmed <- function(x, share = 0.1) {
  x <- sort(x)
  k <- floor(length(x) * share)
  mean(x[(k + 1):(length(x) - k)])
}

plot_fit = function(model, data) {
  plot(data$x, data$y)
  abline(model, col = "red")
  invisible(model)
}

model <- lm(y ~ x, data = cars)
summary(model)
