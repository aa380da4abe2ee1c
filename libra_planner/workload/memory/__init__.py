"""Memory of an NPU in training: tensors, stages, libraries (C19)."""
