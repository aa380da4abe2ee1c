"""What an optimum buys: purchasable speeds, or options at the money of a bill."""
