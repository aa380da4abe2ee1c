"""What is bought for a design: which part where several fit, and the steps to its price."""
