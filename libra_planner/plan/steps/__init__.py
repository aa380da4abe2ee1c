"""Steps of whole models in plans: strategy, memory, kernels (C15 to C19)."""
