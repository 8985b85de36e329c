"""Data as it comes → blocks of rows, labels and weights as the kernels read them, checked."""
