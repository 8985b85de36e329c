"""The step of each loss: a function of a prediction, a label and a step length, with its conjugate beside it."""
